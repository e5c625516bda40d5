"""The merging rules by name. A new one is a file here, its options in `options.py`, and one line below."""

from collections.abc import Callable
from typing import Any, Final

from gridx.aggregation.strategies.base import Strategy
from gridx.aggregation.strategies.bulyan import Bulyan
from gridx.aggregation.strategies.diloco import DiLoCo
from gridx.aggregation.strategies.fedadagrad import FedAdagrad
from gridx.aggregation.strategies.fedadam import FedAdam
from gridx.aggregation.strategies.fedavg import FedAvg
from gridx.aggregation.strategies.fedavgm import FedAvgM
from gridx.aggregation.strategies.fedmedian import FedMedian
from gridx.aggregation.strategies.fedprox import FedProx
from gridx.aggregation.strategies.fedtrimmedavg import FedTrimmedAvg
from gridx.aggregation.strategies.fedyogi import FedYogi
from gridx.aggregation.strategies.krum import Krum, MultiKrum

STRATEGIES: Final[dict[str, Callable[[Any], Strategy]]] = {
    "fedavg": FedAvg,
    "fedprox": FedProx,
    "fedavgm": FedAvgM,
    "fedadagrad": FedAdagrad,
    "fedadam": FedAdam,
    "fedyogi": FedYogi,
    "fedmedian": FedMedian,
    "fedtrimmedavg": FedTrimmedAvg,
    "krum": Krum,
    "multikrum": MultiKrum,
    "bulyan": Bulyan,
    "diloco": DiLoCo,
}


def make_strategy(name: str, options: dict[str, Any]) -> Strategy:
    """The strategy with validated options; raises UnknownStrategy, pydantic.ValidationError."""
    if name == "fedavg" and not options:
        return FedAvg()  # nothing to check, and pydantic takes as long to import as NumPy
    from gridx.aggregation.strategies.options import parse_options

    parsed = parse_options(name, options)
    return STRATEGIES[name](parsed)
