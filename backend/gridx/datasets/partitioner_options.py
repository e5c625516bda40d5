"""The options of each partitioner as pydantic models. Imports no NumPy and no pandas: the web process validates with it."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

_Column = Annotated[str, Field(min_length=1, max_length=1000)]


class PartitionerOptions(BaseModel):
    """Base of all options: unknown names are refused, NaN and infinity too."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def problem(self, chunks: int) -> str | None:
        """What does not fit a job of so many chunks."""
        return None


class NoOptions(PartitionerOptions):
    pass


class ColumnOptions(PartitionerOptions):
    column: _Column
    """The column whose values decide, compared as text."""


class DirichletOptions(ColumnOptions):
    alpha: Annotated[float, Field(gt=0, le=1000)] = 0.5
    """Small: each chunk has few of the values. Large: all chunks are alike."""


class ShardsOptions(ColumnOptions):
    shards_per_chunk: Annotated[int, Field(ge=1, le=1000)] = 2


class SizesOptions(PartitionerOptions):
    proportions: Annotated[list[Annotated[float, Field(gt=0, le=1e9)]], Field(min_length=1, max_length=1000)]
    """One number for each chunk; only their ratios count."""

    def problem(self, chunks: int) -> str | None:
        if len(self.proportions) != chunks:
            return f"proportions: {len(self.proportions)} numbers for {chunks} chunks"
        return None


OPTIONS: Final[dict[str, type[PartitionerOptions]]] = {
    "iid": NoOptions,
    "contiguous": NoOptions,
    "stratified": ColumnOptions,
    "dirichlet": DirichletOptions,
    "shards": ShardsOptions,
    "by_column": ColumnOptions,
    "sizes": SizesOptions,
}


def parse_options(partitioner: str, options: dict[str, Any]) -> PartitionerOptions:
    """The validated options; raises KeyError for an unknown partitioner, pydantic.ValidationError."""
    return OPTIONS[partitioner].model_validate(options)
