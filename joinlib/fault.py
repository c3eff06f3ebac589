"""Named points at which a test may end this process.

STREAMJOIN_FAULTS names a folder; a file `segment:3` in it kills whoever first reaches the point `segment` of batch 3,
and is gone then, so that the batch that runs again lives. The law under test: kill any process at any moment and run
again, the output is the same. Without the variable a point costs one comparison.

    spooled                         in a map task: one block is written for its unit
    segment, index, joined          in a unit's task: rows are logged, indexed, all is done but the state's update
    sealed, piece, merged           in a unit's task: a head takes no more, a piece of a merge is written, runs have become one
    handed                          in a unit's task of a later stage: the stage before is done with the batch
    grouped                         in a unit of groups: all is done but the state's update
    cached                          in a unit's task: a cache of a table is half changed; its number is of the queries so far
    loaded                          where batches are planned: a table is read; its number is of the version to be
    written                         in a task of the last stage: all its results are whole, the state is not
    produced, sent                  in a task that writes to Kafka: rows are not committed yet, the state is not
    gathered, released              in the driver: batches that waited are one folder, and readers see it; they wait still
    collected, staged, published    in the driver: tasks are done, files gathered, the batch visible but not committed
"""

import os
import signal
from pathlib import Path

_FAULTS = os.environ.get("STREAMJOIN_FAULTS", "")


def point(name: str, batch: int) -> None:
    """Dies here by SIGKILL if a test says so."""
    if not _FAULTS:
        return
    try:
        Path(_FAULTS, f"{name}:{batch}").unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
