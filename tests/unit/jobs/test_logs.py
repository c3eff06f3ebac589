"""Spark's words go into a file, and the file is bounded."""

import subprocess
import sys
from pathlib import Path

import pytest

from jobs.cli import logs

PROGRAM = """
import os, subprocess, sys
from pathlib import Path
from jobs.cli.logs import aside
print("before")
with aside(Path(sys.argv[1])) as terminal:
    print("shown", file=terminal)
    print("of ours")
    print("an error", file=sys.stderr)
    subprocess.run(["sh", "-c", "echo of a child; echo its error >&2"])
print("after")
"""


def test_only_what_is_meant_for_the_terminal_reaches_it(tmp_path: Path) -> None:
    """Also what child processes write goes into the log; afterwards everything is as before."""
    log = tmp_path / "logs" / "spark.log"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(log)], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("before\nshown\nafter\n", "")
    assert sorted(log.read_text().splitlines()) == ["an error", "its error", "of a child", "of ours"]


def test_the_log_is_turned_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files of bounded size, however much is said."""
    monkeypatch.setattr(logs, "_BYTES", 100)
    for number in range(100):
        logs._append(tmp_path / "log", f"line {number}\n".encode())
    assert sorted(f.name for f in tmp_path.iterdir()) == ["log", "log.1"]
    assert max(f.stat().st_size for f in tmp_path.iterdir()) <= 100
    assert (tmp_path / "log").read_text().endswith("line 99\n")
