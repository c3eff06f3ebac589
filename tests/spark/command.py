"""The command of the package, run as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, *words: str, **more: str) -> tuple[int, str]:
    """The exit code and the words of a command that runs in a folder. `more`: of its environment."""
    done = subprocess.run(
        [sys.executable, "-m", "jobs.cli", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | more,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
