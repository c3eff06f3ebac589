"""Which batches does a checkpoint know? Read from Spark's own logs, without Spark.

    CHECKPOINT/spark/offsets/N    batch N was begun: a line with the version, one with Spark's settings, one for each source
    CHECKPOINT/spark/commits/N    batch N is done
    CHECKPOINT/partitions         among so many tasks the units of the latest batch were spread; written before it ran

All functions take the folder `CHECKPOINT/spark`, which need not be there.
"""

from pathlib import Path

import xxhash

PARTITIONS = "partitions"


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


def mark(spark: Path, batch: int) -> str:
    """Tells a batch that was begun from others of its number: sixteen hexadecimal digits, of what steers it (see `source`)."""
    *_, offset = (spark / "offsets" / str(batch)).read_bytes().splitlines()
    return xxhash.xxh3_64_hexdigest(offset)


def partitions(spark: Path) -> int | None:
    """Those of the latest batch; None: nothing was begun, or they cannot be read."""
    try:
        return int((spark.parent / PARTITIONS).read_text())
    except (OSError, ValueError):
        return None


def _latest(log: Path) -> int | None:
    return max((int(f.name) for f in log.glob("*") if f.name.isdigit()), default=None)
