"""`streamjoin report`: one archive for people who help, of what is known of a job on this machine.

spec.yaml       the spec as it was understood, without texts of parameters
plan.txt        how it is run
status.txt      what its checkpoint holds, and whether a run is alive
metrics.json    lag, tables and loads, as of the last batch that began
checkpoint.txt  every file of the checkpoint with its size and time
log.txt         the last lines of Spark's log, without what may be of rows
versions.txt    this program, Python, Java, the system
"""

import json
import platform
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import yaml

from jobs.cli.status import status
from jobs.report import redact
from jobs.report.archive import tried, write
from joinlib.checkpoint import batches
from joinlib.checkpoint.planned import plan_of
from joinlib.plan.explain import explain
from joinlib.spec.model import StreamJoin

_LINES = 1000
_FILES = 20_000
_PACKAGES = (
    "streamjoin",
    "pyspark",
    "pyarrow",
    "numpy",
    "numba",
    "sqlglot",
    "confluent-kafka",
    "adbc-driver-postgresql",
)
_FIGURES = ("lag", "tables", "loads", "idle", "closed", "inputs")


def report(document: StreamJoin, output: Path | None) -> Path:
    """Write a report of a job; return its file."""
    return write(texts(document), document.metadata.name, output)


def texts(document: StreamJoin) -> dict[str, str]:
    """Return the parts of a report, by their names."""
    whole = document.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    checkpoint, gone = document.spec.checkpoint.folder, redact.of(whole["spec"])
    parts: dict[str, Callable[[], str]] = {
        "spec.yaml": lambda: yaml.safe_dump(gone.document(whole), sort_keys=False),
        "plan.txt": lambda: explain(plan_of(document)) + "\n",
        "status.txt": lambda: status(document) + "\n",
        "metrics.json": lambda: _figures(checkpoint),
        "checkpoint.txt": lambda: _listed(checkpoint),
        "versions.txt": _versions,
    }
    found = {name: gone.text(tried(part)) for name, part in parts.items()}
    return {**found, "log.txt": gone.log(tried(lambda: _tail(checkpoint / "logs" / "spark.log")))}


def _figures(checkpoint: Path) -> str:
    begun = batches.begun(checkpoint / "spark")
    told = {} if begun is None else batches.offset(checkpoint / "spark", begun)
    known = {"batch": begun, **{name: told[name] for name in _FIGURES if name in told}}
    return json.dumps(known, indent=1) + "\n"


def _listed(checkpoint: Path) -> str:
    files = sorted(f for f in checkpoint.rglob("*") if f.is_file())
    lines = [
        f"{(stat := f.stat()).st_size:>14} {datetime.fromtimestamp(stat.st_mtime, UTC):%Y-%m-%d %H:%M:%S}"
        f" {f.relative_to(checkpoint)}"
        for f in files[:_FILES]
    ]
    more = [f"and {len(files) - _FILES} more"] if len(files) > _FILES else []
    return "\n".join([*lines, *more]) + "\n"


def _tail(log: Path) -> str:
    if not log.exists():
        return "there is no log\n"
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LINES:]) + "\n"


def _versions() -> str:
    lines = [f"python {platform.python_version()}", f"system {platform.platform()}", _java()]
    return "\n".join([*(f"{name} {metadata.version(name)}" for name in _PACKAGES), *lines]) + "\n"


def _java() -> str:
    if shutil.which("java") is None:
        return "java is not on the path"
    told = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=20, check=False)
    return (told.stderr or told.stdout).partition("\n")[0]
