"""The tables of TPC-H and TPC-DS, made once for each user and kept in ~/.cache/streamjoin, which goes by content."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamjoin"
GENERATE = Path(__file__).with_name("generate.py")
DUCKDB = "duckdb==1.1.3"  # the last that has both generators within; kept apart from our own, the oracle


def tables(benchmark: str, scale: float, *names: str) -> Path:
    """The folder of NAME.parquet; `names`: only these."""
    what = (benchmark, str(scale), *names)
    key = hashlib.sha256("\0".join([DUCKDB, GENERATE.read_text(), *what]).encode()).hexdigest()[:16]

    def make(folder: Path) -> None:
        library = _once(CACHE / DUCKDB.replace("==", "-"), _install)
        command = [sys.executable, str(GENERATE), str(folder), *what]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(library)})

    return _once(CACHE / f"tpc{benchmark}-{key}", make)


def _install(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    subprocess.run([*pip, DUCKDB], check=True)


def _once(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder, whole or not at all; somebody else may make it at the same time."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            make(aside)
            aside.rename(folder)
        except OSError:
            if not folder.exists():
                raise
        finally:
            shutil.rmtree(aside, ignore_errors=True)  # unless it has become the folder
    return folder
