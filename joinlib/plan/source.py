"""An input as the planner knows it: plain values, whether a spec or a DataFrame describes the input."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr.behind import Rising
from joinlib.expr.types import TIMESTAMP, TIMESTAMP_NTZ, name
from joinlib.model.joins import Caching
from joinlib.model.maps import Map
from joinlib.spec.inputs import Role


@dataclass(frozen=True)
class Inflow:
    """Where rows of a named part of the query come from: an input of the spec, or a stage; and what becomes of them."""

    source: str  # name of the input; "$stage3" for the rows of stage 3
    schema: pa.Schema  # of the source's rows, without weights
    upstream: int | None = None  # the number of the stage
    maps: tuple[Map, ...] = ()
    clock: str | None = None  # the event-time column of an input, whose watermark counts
    delay_us: int = 0
    idle_us: int | None = None
    behind_us: int = 0  # how far behind the stage's watermark the event time may be
    changes: bool = False
    skip_unknown: bool = False
    settled: bool = False  # rows of a stage that drops no late ones: those behind the watermark are late here
    united: bool = False  # rows of a stage that only passes on what sources have


@dataclass(frozen=True)
class InputStatistics:
    """What is known of an input before it is read."""

    rows: float | None = None  # that are kept of it
    distinct: Mapping[str, float] = field(default_factory=dict)  # values of a column
    most: Mapping[str, float] = field(default_factory=dict)  # values that a column has at most


@dataclass(frozen=True)
class SourceInput:
    """The schema, event time and role of an input, or of a named part of the query, which has `feeds`.

    Raises:
        SpecError: if the event time is not a TIMESTAMP column of the schema.
    """

    schema: pa.Schema
    time: str | None = None  # its event-time column
    delay_us: int = 0  # how far rows may be behind the highest event time
    idle_us: int | None = None  # an input that is silent for this long no longer holds the watermark back
    role: Role = "stream"
    numbered: bool = False  # every row has a number that does not depend on how it is read
    caching: Caching = Caching()  # noqa: RUF009 - frozen; of a table
    changes: bool = False  # rows come with weights: they may be deleted
    upsert: tuple[
        str, ...
    ] = ()  # the columns of which each value has one row, the last; empty: not an upsert
    partial: bool = False  # upserts come with a column `UNCHANGED`: some values may not have been sent
    skip_unknown: bool = False  # a deletion without its row is left out and counted
    keeps_failed: bool = False  # rows for which an expression over them alone fails become dead letters
    behind_us: int = 0  # of a part of the query: how far behind the watermark its event time may be
    rising: tuple[
        Rising, ...
    ] = ()  # of a part of the query: columns that follow an event time, `time` among them
    feeds: tuple[Inflow, ...] = ()  # of a part of the query; several are united
    title: str = ""  # of a part of the query, for messages
    statistics: InputStatistics = InputStatistics()

    @property
    def times(self) -> dict[str, Rising]:
        """The columns that are or follow an event time, by name."""
        if not self.rising and self.time is not None:
            return {self.time: Rising(self.time, self.behind_us, "")}
        return {rising.column: rising for rising in self.rising}

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
