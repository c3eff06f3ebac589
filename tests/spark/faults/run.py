"""The process that a fault test kills: runs a spec until it is done and says what happens, one JSON line at a time.

    {"batch": 3, "receipts": [...], "indexes": {...}}    {"error": "..."}    {"done": ..., "manifests": {...}}

It runs in a session (setsid) of its own, by which the test finds everything that it has started.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from joinlib.compiled import Compiled, compiled
from joinlib.direct.report import Report
from joinlib.errors import StreamJoinError
from joinlib.model.tuning import Tuning
from joinlib.spark.job import started
from joinlib.spark.spread import Spread
from joinlib.spec import load
from joinlib.state.location import local_folder
from joinlib.state.manifests import Manifests, kept_batches
from tests.spark.faults import processes

CORES = 2
Kept = dict[int, list[str]]  # by batch: every unit's manifest, as text, by unit; one stage after the other


@dataclass(frozen=True)
class Order:
    """What to do, as the test passes it on the command line."""

    spec: str
    tuning: dict[str, int]
    conf: dict[str, str] = field(default_factory=dict)
    idle_kills: Sequence[int] = ()  # batches after which every idle worker is killed
    partitions: int | None = CORES  # that units are spread over; None: a small batch is one task
    last: int | None = None  # stop once this batch is done; None: when the inputs are
    direct: bool = False  # small batches are run without Spark as soon as one was; there is no end but `last`
    first: bool = False  # the first one, too: Spark does not start


class Teller:
    """Prints what batches did."""

    def __init__(self, order: Order, plan: Compiled) -> None:
        self.order, self.indexes = order, local_folder(plan.join.state)
        self.batch = -1  # that was reported last
        self.direct = False  # whether the batches are run without Spark
        self._open: list[int] = []  # indexes stay open, so that no new file gets an old one's inode

    def __call__(self, report: Report) -> None:
        self.batch = report.batch
        killed = processes.end_workers(os.getsid(0)) if report.batch in self.order.idle_kills else 0
        tell(
            batch=report.batch,
            receipts=[asdict(r) for r in report.receipts],
            indexes=self._inodes(),
            killed=killed,
            direct=self.direct,
        )

    def _inodes(self) -> dict[str, int]:
        if not self.order.idle_kills:
            return {}
        found = sorted(self.indexes.glob("*/*.index"))
        self._open += [os.open(path, os.O_RDONLY) for path in found]
        return {str(path.relative_to(self.indexes)): os.stat(path).st_ino for path in found}


def tell(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def main(order: Order) -> None:
    tuning = {**order.tuning, "direct_first": order.first, **({"direct_after": 1} if order.direct else {})}
    plan = compiled(load(Path(order.spec)), CORES, Tuning(**tuning))
    try:
        teller, spread = Teller(order, plan), Spread(order.partitions) if order.partitions else None
        with started(
            plan, teller, until_done=not order.direct, cores=CORES, conf=order.conf, spread=spread
        ) as job:
            teller.direct = job.direct
            tell(flowing=True, application=None if job.direct else job.spark.sparkContext.applicationId)
            while not job.wait(0.01 if order.direct else 0.1):
                teller.direct = job.direct
                if order.last is not None and teller.batch >= order.last:
                    return
            tell(done=True, manifests=last_manifests(plan, job.partitions))
    except StreamJoinError as error:
        tell(error=str(error), kind=type(error).__name__)
        sys.exit(1)


def last_manifests(plan: Compiled, partitions: int) -> Kept:
    """Those of the last batch, and of the one before it, when nothing was closed yet; that is gone if the state was divided since."""
    last = kept_batches(plan.join.states)[-2:]
    return {batch: _manifests(plan, partitions, batch) for batch in last}


def _manifests(plan: Compiled, partitions: int, batch: int) -> list[str]:
    found = []
    for stage in range(len(plan.pipeline.stateful)):
        saved: dict[int, bytes] = {}
        for partition in range(partitions):
            saved |= Manifests(plan.join.states, stage, partition, partitions).after(batch)
        found += [saved[unit].decode("latin-1") for unit in range(plan.pipeline.units)]
    return found


if __name__ == "__main__":
    main(Order(**json.loads(sys.argv[1])))
