"""FedProx, Li et al. 2020, "Federated Optimization in Heterogeneous Networks", Algorithm 2: the script's loss does the work."""

from gridx.aggregation.strategies.fedavg import FedAvg


class FedProx(FedAvg):
    """FedAvg on the server; scripts add mu/2 * ||w - w_global||^2 to their loss (`gridx_task.proximal_term`)."""
