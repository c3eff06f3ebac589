"""Which batches does a checkpoint know? Read from Spark's own logs, without Spark.

    CHECKPOINT/spark/offsets/N    batch N was begun: a line with the version, one with Spark's settings, one for each source
    CHECKPOINT/spark/commits/N    batch N is done

All functions take the folder `CHECKPOINT/spark`, which need not be there.
"""

import contextlib
import json
from pathlib import Path

_PARTITIONS = "spark.sql.shuffle.partitions"


def begun(spark: Path) -> int | None:
    """The latest batch that was begun."""
    return _latest(spark / "offsets")


def done(spark: Path) -> int | None:
    """The latest batch that is done."""
    return _latest(spark / "commits")


def cut_off(spark: Path) -> int | None:
    """The batch that was begun and is not done: it runs again."""
    latest = begun(spark)
    return None if latest == done(spark) else latest


def partitions(spark: Path) -> int | None:
    """The state partitions that the query goes on with; None: nothing was begun, or it cannot be read."""
    latest = begun(spark)
    return None if latest is None else _of(spark, latest)


def half_repartitioned(spark: Path) -> int | None:
    """The state partitions that a repartition was to lead to which was begun and is not done."""
    latest = cut_off(spark)
    if latest is None or latest == 0:
        return None
    before, now = _of(spark, latest - 1), _of(spark, latest)
    return now if before is not None and before != now else None


def _latest(log: Path) -> int | None:
    return max((int(f.name) for f in log.glob("*") if f.name.isdigit()), default=None)


def _of(spark: Path, batch: int) -> int | None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        _, settings, *_ = (spark / "offsets" / str(batch)).read_text().splitlines()
        return int(json.loads(settings)["conf"][_PARTITIONS])
    return None
