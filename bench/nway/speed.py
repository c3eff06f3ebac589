"""Which systems run the query of four inputs, and how fast were they?"""

import sys
from collections.abc import Sequence
from pathlib import Path

from outcome import WARM_UP_BATCHES, Batch

HERE = Path(__file__).parent
BENCH = HERE.parent
OURS, OUR_CHAIN = "streamjoin", "streamjoin-chain"
LIMITS = {OURS: 300, OUR_CHAIN: 120}  # seconds; whoever needs longer is stopped
LIMIT = 110


def command(name: str, data: Path, work: Path) -> list[str]:
    """What runs a system."""
    limit = str(LIMITS.get(name, LIMIT))
    return [sys.executable, *SYSTEMS[name], "--limit", limit, "--data", str(data), "--work", str(work)]


def _ours(query: str) -> list[str]:
    return [str(BENCH / "streamjoin_join.py"), "--query", str(HERE / query)]


def _spark(provider: str) -> list[str]:
    return [
        str(BENCH / "peers" / "spark_join.py"), "--provider", provider, "--query", str(HERE / "query.sql")
    ]  # fmt: skip


def _flink(*options: str) -> list[str]:
    script = BENCH / "peers" / "flink" / "flink.py"
    return [str(script), "--state", "heap", "--query", str(HERE / "query.sql"), *options]


SYSTEMS = {
    OURS: _ours("query.sql"),
    "flink-multi-join": _flink("--multi-join"),
    "spark-chain-memory": _spark("memory"),
    "spark-chain-rocksdb": _spark("rocksdb"),
    "flink-chain": _flink(),
    OUR_CHAIN: _ours("chain.sql"),
}


def rate(batches: Sequence[Batch], upto: int | None = None) -> float:
    """Rows a second after the warm-up; `upto`: only so many batches, as many as another system has done."""
    counted = batches[WARM_UP_BATCHES:upto]
    seconds = sum(batch.seconds for batch in counted)
    return sum(batch.rows for batch in counted) / seconds if seconds else float("nan")
