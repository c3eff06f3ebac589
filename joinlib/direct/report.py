"""What is told of a batch that is published."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from joinlib.engine import receipt
from joinlib.engine.receipt import Receipt


class Sample(NamedTuple):
    """The first rows of a batch's result."""

    rows: pa.Table
    of: int  # so many there are


class BatchPhase(NamedTuple):
    """What a part of a batch took, in seconds since 1970."""

    name: str
    began: float
    ended: float


@dataclass(frozen=True)
class Report:
    """The outcome of one batch."""

    batch: int
    receipts: tuple[Receipt, ...]
    samples: Mapping[str, Sample] = field(default_factory=dict)  # by output: for the console and the page
    phases: tuple[BatchPhase, ...] = ()  # tasks, publish; more than once if they had to run again

    @property
    def rows_in(self) -> int:
        return sum(sum(r.rows_in) for r in self.receipts)

    @property
    def rows_out(self) -> int:
        return sum(r.rows_out for r in self.receipts)

    @property
    def watermark(self) -> int:
        """The watermark (µs) of the unit that is furthest behind."""
        return min(r.watermark for r in self.receipts)

    @property
    def bad(self) -> tuple[int, ...]:
        """Messages left out in this batch, by input."""
        return receipt.bad_messages(self.receipts)

    def late(self) -> tuple[int, ...]:
        """Return the rows left out since the checkpoint began, by input."""
        return tuple(sum(column) for column in zip(*(r.late_total for r in self.receipts), strict=True))
