"""The models of no-code jobs and their hyperparameters: names, defaults and ranges, in one place. Imports no torch."""

import re
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field


class Hyperparameters(BaseModel):
    """Of every model. Unknown names are refused, and so is a number of another type: "5" is no 5."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    learning_rate: Annotated[float, Field(gt=0, le=10)] = 0.001
    epochs: Annotated[int, Field(ge=1, le=1000)] = 10
    """In each round."""
    batch_size: Annotated[int, Field(ge=1, le=65536)] = 32


class NetworkHyperparameters(Hyperparameters):
    hidden_layers: Annotated[list[Annotated[int, Field(ge=1, le=4096)]], Field(max_length=10)] = [128, 64]
    """Neurons of each layer; of a CNN those of the dense layers behind its convolutions."""
    activation: Literal["relu", "tanh", "sigmoid", "gelu", "leaky_relu"] = "relu"


MODELS: Final[dict[str, type[Hyperparameters]]] = {
    "mlp": NetworkHyperparameters,
    "cnn": NetworkHyperparameters,
    "logistic_regression": Hyperparameters,
    "linear_regression": Hyperparameters,
}


def canonical(name: str) -> str:
    """A name as people write it: MLP, Fashion-MNIST, FashionMNIST."""
    joined = re.sub(r"[\s_-]+", "_", name.strip()).lower()
    return {"fashionmnist": "fashion_mnist", "logisticregression": "logistic_regression", "linearregression": "linear_regression"}.get(
        joined, joined
    )


def parse(model_type: str, hyperparameters: dict[str, Any]) -> Hyperparameters:
    """The validated hyperparameters; raises KeyError for an unknown model, pydantic.ValidationError naming every wrong field."""
    return MODELS[model_type].model_validate(hyperparameters)
