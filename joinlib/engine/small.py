"""A small batch is one task: it reads all slices and runs all levels, without an exchange between processes.

    slices ─► exchange rows ─► units of the first level ─► … ─► of the last ─► receipts

Each wave of Spark's tasks costs some tens of milliseconds, whatever it does, so few rows are done sooner by one
process. Units, manifests and sinks are those of any other batch with one partition, and are committed in the same
order: a level has written its manifests before the next one begins. The envelope says which batches are small
(`engine.composer`), so a batch that runs again is one, too.
"""

from collections.abc import Iterable

import pyarrow as pa

from joinlib.engine import receipt
from joinlib.engine.operators import forwarded, receipts
from joinlib.engine.partition import turns
from joinlib.engine.reading import read
from joinlib.engine.sources import MapInput, SourceTask
from joinlib.engine.task import JoinTask


def run(source: SourceTask, join: JoinTask, part: MapInput, batch: int, attempt: int) -> bytes:
    """Run the batch; return what it says of all units (`receipt.told`).

    `part` is all that the batch reads; `attempt` is the number of this attempt at the task, by which Spark counts them.
    """
    rows: Iterable[pa.RecordBatch] = read(source, part, batch)
    *links, last = join.levels()
    for link in links:
        rows = list(forwarded(turns(link, batch), iter(rows)))
    return receipt.told(receipts(turns(last, batch), attempt, iter(rows)))
