"""What the planner knows of an input: plain values, whoever describes it (a spec or a DataFrame)."""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr.types import TIMESTAMP, TIMESTAMP_NTZ, name
from joinlib.join.config import Caching

Role = Literal["stream", "table"]


@dataclass(frozen=True)
class SourceInput:
    """An input as the spec describes it."""

    schema: pa.Schema
    time: str | None = None  # its event-time column
    delay_us: int = 0  # how far rows may be behind the highest event time
    idle_us: int | None = None  # silent for so long: out of the watermark's minimum
    role: Role = "stream"
    numbered: bool = False  # every row has a number that does not depend on how it is read
    caching: Caching = Caching()  # noqa: RUF009 - frozen; of a table

    def __post_init__(self) -> None:
        if self.time is None:
            return
        if self.time not in self.schema.names:
            raise SpecError(
                f"eventTime: there is no column {self.time!r}, there is {', '.join(self.schema.names)}"
            )
        kind = self.schema.field(self.time).type
        if kind not in (TIMESTAMP, TIMESTAMP_NTZ):
            raise SpecError(f"eventTime: {self.time} is {name(kind)}; it must be TIMESTAMP")
