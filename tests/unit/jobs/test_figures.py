"""Sums and rates of a run."""

from dataclasses import dataclass, field, replace

from jobs.figures import Figures, beginning
from joinlib.engine.receipt import Receipt

RECEIPT = Receipt(
    unit=0,
    batch=0,
    rows_in=(10, 20),
    late=(1, 0),
    late_total=(1, 0),
    rows_out=5,
    files=(),
    state_rows=30,
    state_bytes=300,
    retired_bytes=30,
    index_bytes=100,
    segments=2,
    watermark=7,
    highest=(8, 9),
    seconds=0.1,
)


@dataclass(frozen=True)
class Report:
    """As the engine's, without Spark."""

    batch: int
    receipts: tuple[Receipt, ...] = field(default=(RECEIPT, replace(RECEIPT, unit=1, watermark=5)))

    @property
    def rows_out(self) -> int:
        return sum(r.rows_out for r in self.receipts)


def after(*moments: float) -> Figures:
    """Figures after a batch at each moment; rows could flow from 0 on."""
    figures = beginning(2, 0.0)
    for batch, now in enumerate(moments):
        figures = figures.after(Report(batch), now)
    return figures


def test_sums_over_units_and_batches() -> None:
    """Rows add up over batches; state is what the latest receipt of each unit says."""
    figures = after(1.0, 2.0)
    assert (figures.rows_in, figures.rows_out, figures.late) == ((40, 80), 20, (4, 0))
    assert (figures.state_rows, figures.state_bytes, figures.index_bytes) == (60, 660, 200)
    assert (figures.batches, figures.batch, figures.watermark) == (2, 1, 5)


def test_a_batch_without_receipts_changes_no_sum() -> None:
    """The first batch of an empty input wakes no unit."""
    figures = after(1.0).after(Report(1, ()), 2.0)
    assert (figures.rows_in, figures.rows_out, figures.batches) == ((20, 40), 10, 2)


def test_rates_are_over_the_last_seconds() -> None:
    """A slow beginning is forgotten."""
    assert after(2.0).rates(2.0) == ((10.0, 20.0), 5.0)
    assert after(100.0, 101.0, 102.0).rates(102.0) == ((20.0, 40.0), 10.0)


def test_rates_fall_to_nothing_in_silence() -> None:
    """What flowed long ago is not a rate; a batch longer than the window still has one."""
    assert after(2.0).rates(11.0) == ((10.0, 20.0), 5.0)
    assert after(2.0).rates(13.0) == ((0.0, 0.0), 0.0)
    assert after(50.0).rates(120.0) == ((0.4, 0.8), 0.2)


def test_marks_do_not_grow() -> None:
    """A run that never ends keeps the last few seconds only."""
    assert len(after(*range(1, 100)).marks) <= 12


def test_nothing_flows_at_first() -> None:
    """No division by zero before the first batch."""
    assert beginning(2, 5.0).rates(5.0) == ((0.0, 0.0), 0.0)
