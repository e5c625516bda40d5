"""The options of each strategy as pydantic models. Imports no NumPy and no torch: the web process validates with it."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

_Momentum = Annotated[float, Field(ge=0, lt=1)]
_Rate = Annotated[float, Field(gt=0, le=10)]
_Share = Annotated[float, Field(ge=0, lt=0.5)]
_Count = Annotated[int, Field(ge=0, le=10_000)]


class StrategyOptions(BaseModel):
    """Base of all options: unknown names are refused, NaN and infinity too."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def least_updates(self) -> int:
        """With fewer updates the rule means nothing."""
        return 1

    def for_script(self) -> dict[str, float | int]:
        """What the script needs to know, as hyperparameters; those that the buyer gave win."""
        return {}


class FedAvgOptions(StrategyOptions):
    """FedAvg has none."""


class FedProxOptions(StrategyOptions):
    mu: Annotated[float, Field(ge=0, le=1000)] = 0.01
    """Weight of the distance to the global model in the script's loss."""

    def for_script(self) -> dict[str, float | int]:
        return {"mu": self.mu}


class FedAvgMOptions(StrategyOptions):
    server_lr: _Rate = 1.0
    momentum: _Momentum = 0.9


class AdaptiveOptions(StrategyOptions):
    """Of FedAdagrad, FedAdam and FedYogi; `tau` keeps the step finite where nothing moved yet."""

    eta: _Rate = 0.1
    tau: Annotated[float, Field(gt=0, le=1)] = 1e-3
    beta1: _Momentum = 0.9
    beta2: _Momentum = 0.99


class FedYogiOptions(AdaptiveOptions):
    eta: _Rate = 0.01


class FedMedianOptions(StrategyOptions):
    """The median has none."""


class FedTrimmedAvgOptions(StrategyOptions):
    trim: _Share = 0.2
    """Share of the updates that is left out at each end, for each element."""


class KrumOptions(StrategyOptions):
    f: _Count = 1
    """How many updates may be wrong in any way."""

    def least_updates(self) -> int:
        return 2 * self.f + 3


class BulyanOptions(KrumOptions):
    def least_updates(self) -> int:
        return 4 * self.f + 3


class DiLoCoOptions(StrategyOptions):
    outer_lr: _Rate = 0.7
    momentum: _Momentum = 0.9
    local_steps: Annotated[int, Field(ge=1, le=1_000_000)] = 500
    """H: optimizer steps that the script takes on its chunk in each round."""

    def for_script(self) -> dict[str, float | int]:
        return {"local_steps": self.local_steps}


OPTIONS: Final[dict[str, type[StrategyOptions]]] = {
    "fedavg": FedAvgOptions,
    "fedprox": FedProxOptions,
    "fedavgm": FedAvgMOptions,
    "fedadagrad": AdaptiveOptions,
    "fedadam": AdaptiveOptions,
    "fedyogi": FedYogiOptions,
    "fedmedian": FedMedianOptions,
    "fedtrimmedavg": FedTrimmedAvgOptions,
    "krum": KrumOptions,
    "multikrum": KrumOptions,
    "bulyan": BulyanOptions,
    "diloco": DiLoCoOptions,
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
