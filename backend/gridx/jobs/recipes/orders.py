"""From the buyer's words to an ordinary order: a no-code job is one of our scripts with arguments, over a dataset like any other."""

import math
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files

from gridx.accounts.service import Actor
from gridx.core.db import Database
from gridx.core.errors import Invalid, NotFound
from gridx.datasets import catalogue, preview
from gridx.datasets import service as datasets
from gridx.datasets.catalogue import Catalogue
from gridx.datasets.models import Dataset
from gridx.jobs.options import JobRequest
from gridx.jobs.recipes import options as recipes
from gridx.storage.base import ObjectStore

_LOOKED_AT = 20
_LEAST_SIDE = 4
"""Of a picture: a CNN halves it twice."""


@dataclass(frozen=True)
class Order:
    """What a request comes to: the files, the command line, and what is to be said beforehand."""

    dataset_id: int
    script: bytes
    requirements: bytes
    arguments: list[str]
    warnings: list[str]


def recipe_script() -> bytes:
    """The script of no-code jobs, as it lies in the repository."""
    return files("gridx.jobs.recipes").joinpath("train.py").read_bytes()


def order_of(database: Database, store: ObjectStore, offered: Catalogue, actor: Actor, request: JobRequest, now: datetime) -> Order:
    """Find the dataset, and for a no-code job its script and command line. A dataset of the catalogue is made when it is first asked for.

    Raises:
        NotFound: the dataset is not this buyer's.
        Invalid: its columns do not suit the model; names the column and what to do.
        CatalogueUnavailable: the catalogue's data cannot be had now.
    """
    name = recipes.canonical(request.dataset_name or "")
    if name in catalogue.NAMES:
        dataset = offered.get(name, now)
    else:
        with database.read() as session:
            if request.dataset_id is not None:
                dataset = datasets.get_dataset(session, actor, request.dataset_id)
            else:
                try:
                    dataset = datasets.find_by_name(session, actor, request.dataset_name or "")
                except NotFound as error:
                    raise NotFound(f"dataset_name: {error.detail}; the server offers {', '.join(catalogue.NAMES)}") from None
    warnings = dataset.warnings if dataset.catalogue is not None else []
    if request.model_type is None:
        return Order(dataset.id, (request.script or "").encode(), request.requirements.encode(), request.arguments, warnings)
    target = _target(request, dataset)
    _check_columns(store, request.model_type, dataset, target)
    arguments = [f"--model={request.model_type}", f"--target={target}"]
    if dataset.delimiter != ",":
        arguments.append(f"--delimiter={dataset.delimiter}")
    return Order(dataset.id, recipe_script(), b"", arguments, warnings)


def _target(request: JobRequest, dataset: Dataset) -> str:
    columns = ", ".join(dataset.columns[:50])
    if request.target_column is None and dataset.catalogue is not None:
        return catalogue.TARGET
    if request.target_column is None:
        raise Invalid(f"target_column: name the column that the model is to predict; the dataset has: {columns}"[:2000])
    if request.target_column not in dataset.columns:
        raise Invalid(f"target_column: the dataset has no column {request.target_column!r}; it has: {columns}"[:2000])
    if dataset.columns.count(request.target_column) > 1:
        raise Invalid(f"target_column: {request.target_column!r} is the name of several columns; give each a name of its own")
    return request.target_column


def _check_columns(store: ObjectStore, model_type: str, dataset: Dataset, target: str) -> None:
    """What the header and the first rows tell; the rest shows when the rows are read."""
    features = len(dataset.columns) - 1
    if features < 1:
        raise Invalid("target_column: the dataset has no other column to learn from")
    side = math.isqrt(features)
    if model_type == "cnn" and (side * side != features or side < _LEAST_SIDE):
        raise Invalid(
            f"model_type: a CNN needs square pictures of {_LEAST_SIDE} x {_LEAST_SIDE} pixels or more, one pixel a column; "
            f"beside the target there are {features} columns. Take mlp"
        )
    rows = preview.first_rows(store, dataset, _LOOKED_AT)
    names = dataset.columns
    if model_type == "linear_regression" and (text := _some_text(rows, names.index(target))):
        raise Invalid(
            f"target_column: {target!r} holds texts such as {text!r}; linear_regression predicts numbers. Take logistic_regression"
        )
    if model_type == "cnn":
        for place, name in enumerate(names):
            if name != target and (text := _some_text(rows, place)):
                raise Invalid(f"model_type: a CNN reads pixels, and column {name!r} holds texts such as {text!r}. Take mlp")


def _some_text(rows: list[list[str]], place: int) -> str | None:
    """A value of the column that is no number, cut to be shown; None where all of these are numbers, or missing."""
    for row in rows:
        value = row[place].strip() if place < len(row) else ""
        try:
            float(value or 0)
        except ValueError:
            if value.upper() not in ("NA", "N/A", "NULL", "NONE"):
                return value[:40]
    return None
