"""Fault injection: named points at which a test may kill this process.

STREAMJOIN_FAULTS names a folder. A file `segment:3` in it kills the first process that reaches the point
`segment` of batch 3, and is deleted by that, so that the batch survives when it runs again; with `stop` in it, the
process stops there and holds all that it has. The law
under test: kill any process at any moment and run again, the output is the same. Without the variable a
point costs one comparison.

    spooled                         map task: one block is written for its unit
    segment, index, joined          unit's task: rows are logged; indexed; all is done but the state's update
    sealed, piece, merged           unit's task: a head is sealed; a piece of a merge is written; merged
    handed                          unit's task of a later stage: the stage before is done with the batch
    tidied, arranged                unit where rows of a path join come in: what the last batch has left is merged;
                                    the batch's rows are stored, and none of them has probed
    hopped                          unit of a later level of a path join: all is done but its manifest
    grouped                         unit of groups: all is done but the state's update
    cached                          unit's task: a table's cache is half changed (number: queries so far)
    created, peeked, logged         where batches are planned: a slot of PostgreSQL is made; rows of a peek are on
                                    the disk; and in the log (number: peeks so far)
    loaded                          where batches are planned: a table is read (number: its new version)
    written                         task of the last stage: all its results are complete, the state is not; of several
                                    outputs: those of the first
    lettered                        task of the last level: its dead letters are staged, the state is not
    produced, sent                  task that writes to Kafka: before the commit; after it, without the state
    copied                          task that writes to PostgreSQL: its rows are staged, the state is not
    applied                         driver: a batch is in its table, but not committed
    gathered, released              driver: waiting batches are one folder; it is visible, but they wait still
    divided, replacing, replaced    driver: a unit of the divided state is written (number: the unit); the old manifests are
                                    gone; the new ones count
    collected, staged, published    driver: tasks are done; files gathered; batch visible but not committed
    published_directly              driver: a batch without Spark is visible but not committed
    switching, switched             `streamjoin switch`: the new spec is written aside; it is the job's (number: its last batch)
    taken                           driver: the first of several outputs has the batch, the others do not
"""

import os
import signal
from pathlib import Path

_FAULTS = os.environ.get("STREAMJOIN_FAULTS", "")


def point(name: str, batch: int) -> None:
    """Kill this process by SIGKILL, or stop it, if a test says so."""
    if not _FAULTS:
        return
    file = Path(_FAULTS, f"{name}:{batch}")
    try:
        said = file.read_text()
        file.unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGSTOP if said == "stop" else signal.SIGKILL)
