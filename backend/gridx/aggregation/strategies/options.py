"""The options of each strategy as pydantic models. Imports no NumPy and no torch: the web process validates with it."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class StrategyOptions(BaseModel):
    """Base of all options: unknown names are refused, NaN and infinity too."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class FedAvgOptions(StrategyOptions):
    """FedAvg has none."""


OPTIONS: dict[str, type[StrategyOptions]] = {
    "fedavg": FedAvgOptions,
}


def parse_options(strategy: str, options: dict[str, Any]) -> StrategyOptions:
    """The validated options; raises UnknownStrategy, pydantic.ValidationError."""
    if strategy not in OPTIONS:
        raise UnknownStrategy(strategy)
    return OPTIONS[strategy].model_validate(options)


class UnknownStrategy(ValueError):
    """No strategy has this name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"no strategy is called {name!r}; there are: {', '.join(sorted(OPTIONS))}")

    def __reduce__(self) -> tuple[type["UnknownStrategy"], tuple[str]]:
        return type(self), (self.name,)
