"""The options that a query is planned with, besides its text and its inputs."""

from dataclasses import dataclass, field
from typing import get_args

from joinlib.errors import SpecError
from joinlib.model.stored import StoredColumns
from joinlib.spec.model import JoinSettings, Strategy

STRATEGIES = get_args(Strategy)
_DEFAULT = JoinSettings()


@dataclass(frozen=True)
class JoinOptions:
    """The options of `join` in the spec, whose defaults they have.

    Raises:
        SpecError: if a value is out of its range.
    """

    units: int = _DEFAULT.units  # a power of two: the number of partitions of the state
    # Rows further apart in event time than this many microseconds do not match.
    retention_us: int | None = None
    strategy: str = _DEFAULT.strategy  # one of STRATEGIES
    subgroups: int | None = None  # of a biclique; None: the planner decides
    window_rows: int | None = None  # rows whose numbers differ by more do not match
    # Rows of a band lie by their values; False: at random, as a checkpoint of an earlier version has them.
    cells: bool = True
    # A self-join stores its stream once; False: once for each name, as a checkpoint of an earlier version has it.
    once: bool = True
    # What the checkpoint stores, and the plan is to store as well.
    stored: StoredColumns = field(default_factory=StoredColumns)

    def __post_init__(self) -> None:
        if self.units < 1 or self.units & (self.units - 1):
            raise SpecError(f"join.units is {self.units}; it must be a power of two")
        if self.retention_us is not None and self.retention_us <= 0:
            raise SpecError(f"join.retention is {self.retention_us} µs; it must be positive")
        if self.strategy not in STRATEGIES:
            raise SpecError(f"join.strategy is {self.strategy!r}; it must be one of {', '.join(STRATEGIES)}")
