"""What a flow takes from the progress of a batch."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobs.flow import Flow
from joinlib.metric.heap import Heap


def progress(start: Any, read: int, rows: int) -> dict[str, Any]:
    """As Spark tells it; offsets are text, or are parsed already."""
    end = {"inputs": {"orders": 3}, "lag": {"orders": {"slices": 1, "rows": rows, "read": read}}, "loads": {}}
    return {
        "batchId": 4,
        "timestamp": "2026-01-01T00:00:10.000Z",
        "durationMs": {"triggerExecution": 1500, "addBatch": 1000},
        "sources": [{"startOffset": start, "endOffset": json.dumps(end)}],
    }


BEFORE = {"inputs": {"orders": 2}, "lag": {"orders": {"slices": 2, "rows": 900, "read": 100}}}


@pytest.mark.parametrize(
    ("start", "rows"),
    [(BEFORE, 250), (json.dumps(BEFORE), 250), (None, None), ("null", None), ({"lag": {}}, None)],
)
def test_a_batch_is_told_by_its_offsets(start: Any, rows: int | None) -> None:
    """How many rows it read, and how many wait; of the first batch only the latter is known."""
    flow = Flow(cast("Any", None), until_done=False, conf={})
    last = progress(start, 350, 650)
    flow._look(cast("Any", SimpleNamespace(busy=True, last=lambda: last, heap=lambda: Heap(3, 8, 0.5))))
    took = flow.took
    assert (took.batch, took.seconds, took.steps) == (4, 1.5, {"addBatch": 1.0})
    assert took.lap is not None
    assert (took.lap.at, took.lap.seconds, took.lap.rows) == (1_767_225_610.0, 1.5, rows)
    assert (took.lap.read, took.lap.waiting, flow.busy) == ({"orders": 350}, {"orders": 650}, True)
    assert flow.heap == Heap(3, 8, 0.5)
