"""The merging rules by name. A new one is a file here, its options in `options.py`, and one line below."""

from collections.abc import Callable
from typing import Any

from gridx.aggregation.strategies.base import Strategy
from gridx.aggregation.strategies.fedavg import FedAvg
from gridx.aggregation.strategies.options import parse_options

STRATEGIES: dict[str, Callable[[Any], Strategy]] = {
    "fedavg": FedAvg,
}


def make_strategy(name: str, options: dict[str, Any]) -> Strategy:
    """The strategy with validated options; raises UnknownStrategy, pydantic.ValidationError."""
    parsed = parse_options(name, options)
    return STRATEGIES[name](parsed)
