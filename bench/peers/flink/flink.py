"""Flink's regular SQL join on our rows, with heap or RocksDB state: built from Main.java, run in one JVM.

Flink's jars come from its PyPI wheel, kept apart from our environment in ~/.cache/streamjoin; parquet's from
pyspark. No checkpoints are taken unless asked for (Spark and StreamJoin commit every batch): Flink's best
case.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

VERSION = "2.3.0"
WHEEL = "apache-flink-libraries"
CACHE = Path.home() / ".cache" / "streamjoin"
HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1]))
import command  # noqa: E402
import task  # noqa: E402

PARQUET_JARS = (
    "parquet-*.jar",
    "jts-core-*.jar",
    "snappy-java-*.jar",
    "hadoop-client-api-*.jar",
    "hadoop-client-runtime-*.jar",
)
STATE = {"heap": "hashmap", "rocksdb": "rocksdb"}
OPENED = (  # what Flink's own config.yaml opens for Java 17
    "java.base/java.lang", "java.base/java.net", "java.base/java.io", "java.base/java.nio", "java.base/sun.nio.ch",
    "java.base/java.lang.reflect", "java.base/java.text", "java.base/java.time", "java.base/java.util",
    "java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic",
    "java.base/java.util.concurrent.locks",
)  # fmt: skip


def installed() -> Path | None:
    """Where this environment keeps the wheel, if it has that very version."""
    try:
        wheel = distribution(WHEEL)
    except PackageNotFoundError:
        return None
    return Path(str(wheel.locate_file(""))) if wheel.version == VERSION else None


def flink_jars() -> list[Path]:
    """Flink's jars: this environment's, if it has the wheel; else installed on first use, whole or not at
    all.
    """
    folder = installed() or CACHE / f"flink-{VERSION}"
    if not folder.exists():
        aside = folder.with_name(f"{folder.name}.{os.getpid()}")
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(aside)]
        subprocess.run([*install, f"{WHEEL}=={VERSION}"], check=True, stdout=sys.stderr)
        aside.rename(folder)
    return sorted((folder / "pyflink" / "lib").glob("*.jar"))


def parquet_jars() -> list[Path]:
    """The jars of pyspark that decode parquet."""
    folder = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    return [jar for pattern in PARQUET_JARS for jar in sorted(folder.glob(pattern))]


def classes(classpath: str) -> Path:
    """The folder of our compiled classes, compiled once per source text."""
    sources = sorted(HERE.glob("*.java"))
    name = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    folder = CACHE / "bench" / f"flink-classes-{VERSION}-{name}"
    if not folder.exists():
        aside = folder.with_name(f"{folder.name}.{os.getpid()}")
        compile_all = ["javac", "-nowarn", "-cp", classpath, "-d", str(aside), *map(str, sources)]
        subprocess.run(compile_all, check=True, stdout=sys.stderr)
        aside.rename(folder)
    return folder


def configuration(args: argparse.Namespace) -> dict[str, str]:
    """Flink's settings; everything not named is its default."""
    settings = {
        "state.backend.type": STATE[args.state],
        "taskmanager.memory.managed.size": args.managed if args.state == "rocksdb" else "64m",
        "pipeline.object-reuse": "true",
        "restart-strategy.type": "none",  # with checkpoints, Flink would go on from the last for ever
        "io.tmp.dirs": str(args.work),
    }
    if args.multi_join:
        settings["table.optimizer.multi-join.enabled"] = "true"
    if args.mini_batch:
        settings["table.exec.mini-batch.enabled"] = "true"
        settings["table.exec.mini-batch.allow-latency"] = "1 s"
        settings["table.exec.mini-batch.size"] = str(args.mini_batch)
    if args.checkpoint:
        settings["execution.checkpointing.interval"] = args.checkpoint
        settings["execution.checkpointing.incremental"] = "true"
        settings["execution.checkpointing.dir"] = (args.work / "checkpoints").as_uri()
    return settings


def run(args: argparse.Namespace) -> dict[str, Any]:
    """One run, as the outcome that bench/run.py reads."""
    jars = ":".join(map(str, [*flink_jars(), *parquet_jars()]))
    given = task.read(args.data)
    settings = args.work / "settings"
    settings.write_text("".join(f"{key}: {value}\n" for key, value in configuration(args).items()))
    opened = [f"--add-opens={package}=ALL-UNNAMED" for package in OPENED]
    watched = [f"-Dbench.progress={args.progress}"] if args.progress else []
    java = ["java", f"-Xmx{args.memory}", *watched, *opened, "-cp", f"{classes(jars)}:{HERE}:{jars}", "Main"]
    program = [
        *java,
        str(args.data),
        str(args.query),
        str(settings),
        str(given.batch_rows),
        str(args.limit),
        args.changes,
        *(args.inputs or given.inputs),
    ]
    largest = Largest(args.work / "checkpoints") if args.measure_state else None
    ended = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"flink: java ended with exit code {ended.returncode}; what it said is above")
    measured = json.loads(ended.stdout.splitlines()[-1])
    first = measured.pop("first_result_millis") / 1000 - command.launched()
    notes = f"Flink {VERSION}, heap {args.memory}, checkpoints {args.checkpoint or 'none'}"
    told = {"system": f"flink-{args.state}", **measured, "seconds_first_result": first, "notes": notes}
    return told | ({"checkpoint_mb": largest.stop() / 1e6} if largest else {})


class Largest:
    """The most bytes that a folder has held: what Flink's checkpoints take, which it removes at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._bytes, self._stop = folder, 0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """Those bytes."""
        self._stop.set()
        self._thread.join()
        return self._bytes

    def _look(self) -> None:
        while not self._stop.wait(0.25):
            self._bytes = max(self._bytes, sum(map(_size, _files(self._folder))))


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.rglob("*"))
    except OSError:  # a folder was removed meanwhile
        return []


def _size(file: Path) -> int:
    try:
        return file.stat().st_size if file.is_file() else 0
    except OSError:  # removed meanwhile
        return 0


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("--state", choices=STATE, required=True)
    parser.add_argument(
        "--multi-join", action="store_true", help="Flink's multi-way operator in place of a chain"
    )
    parser.add_argument(
        "--changes",
        choices=("none", "retract", "upsert", "events"),
        default="none",
        help="what rows are: the last column says it, or all are inserts; upsert: of the key v; events: inserts,"
        " of which only the columns that the query names are decoded, with a time if there is one",
    )
    parser.add_argument("--limit", type=int, default=86400, help="seconds until the query is stopped")
    parser.add_argument("--memory", default="12g", help="heap of the JVM")
    parser.add_argument("--managed", default="2g", help="memory that RocksDB may use beside the heap")
    parser.add_argument("--mini-batch", type=int, default=0, help="rows of Flink's mini batches; 0: none")
    parser.add_argument("--checkpoint", default="", help="interval of checkpoints, as '5 s'; empty: none")
    parser.add_argument("--progress", type=Path, help="add a line to this file at each mark")
    parser.add_argument(
        "--measure-state", action="store_true", help="tell the size of the largest checkpoints"
    )
    command.tell(parser.parse_args(), run)


if __name__ == "__main__":
    main()
