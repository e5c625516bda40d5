"""The query of a dataset's preview: what may be asked about a deal."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from gridx.core.errors import Invalid
from gridx.core.text import Text
from gridx.datasets.partitioner_options import OPTIONS, parse_options
from gridx.datasets.preview import MOST_ROWS


class DealChoice(BaseModel):
    rows: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 5
    chunks: Annotated[int, Field(ge=1, le=1000)] | None = None
    partitioner: Annotated[Text, Field(max_length=32)] = "iid"
    column: Annotated[Text, Field(min_length=1, max_length=1000)] | None = None
    """Whose values are counted in each chunk; also the partitioner's, where it goes by one."""
    alpha: float | None = None
    shards_per_chunk: int | None = None
    proportions: Annotated[list[float], Field(max_length=1000)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0

    def parsed_options(self, chunks: int) -> dict[str, Any]:
        """The partitioner's own options, with defaults. Raises Invalid naming each wrong one."""
        if self.partitioner not in OPTIONS:
            raise Invalid(f"partitioner: {self.partitioner!r} is not one of {', '.join(OPTIONS)}")
        wanted = OPTIONS[self.partitioner].model_fields
        given = {name: value for name in wanted if (value := getattr(self, name, None)) is not None}
        try:
            parsed = parse_options(self.partitioner, given)
        except ValidationError as error:
            raise Invalid(
                "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False))
            ) from None
        if problem := parsed.problem(chunks):
            raise Invalid(problem)
        return parsed.model_dump()
