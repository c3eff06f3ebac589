"""Which systems run the query of four inputs, and how fast were they?"""

from collections.abc import Sequence
from pathlib import Path

from outcome import WARM_UP_BATCHES, Batch
from systems import FLINK, JOIN, SPARK, script

HERE = Path(__file__).parent
OURS, OUR_BINARY, OUR_STAGES = "streamjoin", "streamjoin-binary", "streamjoin-chain"
LIMITS = {OURS: 300, OUR_BINARY: 300, OUR_STAGES: 120}  # seconds; whoever needs longer is stopped
LIMIT = 110


def command(name: str, data: Path, work: Path) -> list[str]:
    """What runs a system."""
    return [*SYSTEMS[name](data, work), "--limit", str(LIMITS.get(name, LIMIT))]


QUERY = ("--query", str(HERE / "query.sql"))
SYSTEMS = {
    OURS: script(JOIN, *QUERY),
    OUR_BINARY: script(JOIN, *QUERY, "--join", "strategy=binary"),
    "flink-multi-join": script(FLINK, *QUERY, "--state", "heap", "--multi-join"),
    "spark-chain-memory": script(SPARK, *QUERY, "--provider", "memory"),
    "spark-chain-rocksdb": script(SPARK, *QUERY, "--provider", "rocksdb"),
    "flink-chain": script(FLINK, *QUERY, "--state", "heap"),
    OUR_STAGES: script(JOIN, "--query", str(HERE / "chain.sql")),
}


def rate(batches: Sequence[Batch], upto: int | None = None) -> float:
    """Rows a second after the warm-up; `upto`: only so many batches, as many as another system has done."""
    counted = batches[WARM_UP_BATCHES:upto]
    seconds = sum(batch.seconds for batch in counted)
    return sum(batch.rows for batch in counted) / seconds if seconds else float("nan")
