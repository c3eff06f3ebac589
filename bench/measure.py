"""One run of one system: launch its command, watch it from outside, read its line, check its answer."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from memory import Watch
from outcome import Failure, Outcome, read
from task import Task


@dataclass(frozen=True)
class Terms:
    """What every run is held to."""

    task: Task
    limit_seconds: float


def measure(system: str, command: list[str], log: Path, terms: Terms) -> Outcome | Failure:
    """Run a command in a process group of its own; what it writes to stderr goes to `log`."""
    launched = time.time()
    environment = {**os.environ, "BENCH_LAUNCHED": str(launched)}
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment, start_new_session=True
        )
    watch = Watch(process.pid)
    try:
        printed, _ = process.communicate(timeout=terms.limit_seconds)
    except subprocess.TimeoutExpired:
        return Failure(system, f"not done after {terms.limit_seconds:.0f} s")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        seconds = time.time() - launched
        peak = watch.stop()
    if process.returncode:
        return Failure(system, f"exit code {process.returncode}: {last_words(log)}")
    lines = [line for line in printed.splitlines() if line.startswith("{")]
    if not lines:
        return Failure(system, f"printed no outcome; see {log}")
    outcome = replace(read(json.loads(lines[-1])), system=system, peak_rss_mb=peak, seconds_command=seconds)
    return outcome if outcome.stopped else checked(outcome, terms.task)


def checked(outcome: Outcome, task: Task) -> Outcome | Failure:
    """The outcome, if the answer is right, as far as the system counted it."""
    if outcome.rows == task.rows and outcome.results in (None, task.results):
        return outcome
    said = f"{outcome.results} results of {outcome.rows} rows"
    return Failure(outcome.system, f"wrong answer: {said}, not {task.results} of {task.rows}")


def last_words(log: Path) -> str:
    """Why a command failed: the last line on stderr that names an error, else the last line."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (errors or lines or ["it said nothing"])[-1][:300]


def warm_page_cache(data: Path) -> None:
    """Read every file once, so that the first system finds them as the last does."""
    for file in sorted(data.rglob("*.parquet")):
        with file.open("rb") as source, Path(os.devnull).open("wb") as nowhere:
            shutil.copyfileobj(source, nowhere, 1 << 20)


def prepare() -> None:
    """Makes what an installation of StreamJoin has made: a class archive of this checkout, without which it
    starts slower.
    """
    command, none = [sys.executable, "-m", "joinlib.spark.train"], subprocess.DEVNULL
    subprocess.run(command, stdout=none, stderr=none, check=False)
