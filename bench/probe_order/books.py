"""What do the books cost? CPU seconds of batches with and without them, side by side.

Two runs of one kind differ by more than the books cost. So both take the same batch in turns, each over a
state of its own; now the one begins, now the other. The one without books is given the orders that the other
one chose: it does the same work, and nothing is counted, smoothed, searched or kept.
"""

import shutil
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.probe_order.data import Batches
from bench.probe_order.play import Play
from joinlib.join.order.orders import first
from joinlib.model.tuning import Tuning
from joinlib.state.manifest import decode


def paired(order: Sequence[str], batches: Batches, tuning: Tuning, warm: int) -> list[tuple[float, float]]:
    """CPU seconds of each batch behind the first `warm`, with books and without."""
    folder, found = Path(tempfile.mkdtemp()), []
    kept, bare = (Play(order, folder / n, tuning) for n in "12")
    try:
        for number, rows in enumerate(batches):
            orders = decode(kept.data).probes[0]["orders"] if number else first(len(order)).orders
            turns = [partial(kept.batch, rows), partial(bare.batch, rows, orders)]
            took = [0.0, 0.0]
            for at in (0, 1) if number % 2 else (1, 0):
                began = time.process_time()
                turns[at]()
                took[at] = time.process_time() - began
            if number >= warm:
                found.append((took[0], took[1]))
    finally:
        shutil.rmtree(folder)
    return found
