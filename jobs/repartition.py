"""`streamjoin repartition`: more, or fewer, tasks that can join at once, for a checkpoint that nobody runs."""

import time

from jobs.summary import near
from joinlib.errors import SpecError
from joinlib.route.slots import check
from joinlib.spark import batches
from joinlib.spark.compiled import compiled
from joinlib.spec.model import StreamJoin


def repartition(document: StreamJoin, partitions: int) -> str:
    """What was done, in a line. A batch that was cut off is finished first: its results may be in the output already."""
    from joinlib.spark.job import default_cores, opened

    check(document.spec.join.units, partitions)
    checkpoint = document.spec.checkpoint.folder
    if batches.done(checkpoint / "spark") is None:
        raise SpecError(
            f"{near(checkpoint)} holds no finished batch, so there is nothing to repartition; start the job first"
        )
    began, cores = time.monotonic(), default_cores()
    before = batches.partitions(checkpoint / "spark")
    with opened(compiled(document, cores), lambda _: None, cores=cores) as ready:
        changed = ready.repartition(partitions)
    if not changed and before == partitions:
        return f"{near(checkpoint)} has {partitions} state partitions already"
    return f"{before} -> {partitions} state partitions in {time.monotonic() - began:.1f} s; the job goes on where it was"
