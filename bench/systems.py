"""Which commands are compared? Each joins the same files and prints one JSON line; a further system is one
more entry here.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

HERE = Path(__file__).parent
Command = Callable[[Path, Path], list[str]]  # (data folder, work folder) -> command line


def script(path: str, *options: str) -> Command:
    """A Python script of this folder, run by the interpreter that runs us."""

    def command(data: Path, work: Path) -> list[str]:
        return [sys.executable, str(HERE / path), *options, "--data", str(data), "--work", str(work)]

    return command


OURS = "streamjoin"
JOIN, SPARK, FLINK = "streamjoin_join.py", "peers/spark_join.py", "peers/flink/flink.py"
SYSTEMS: Mapping[str, Command] = {
    OURS: script(JOIN),
    "spark-rocksdb": script(SPARK, "--provider", "rocksdb"),
    "spark-memory": script(SPARK, "--provider", "memory"),
    "flink-rocksdb": script(FLINK, "--state", "rocksdb"),
    "flink-heap": script(FLINK, "--state", "heap"),
}
