"""What becomes of a join whose state is larger than memory?

Runs of StreamJoin in a cgroup, each told from its batches.

figure 5    how many results come out by when, with state of many times the cap: all of them, or does it die?
figure 6    how long it takes by the cap, as one operator and as a chain of binary joins
figure 7    how long it takes by `join.memory`
tenfold     does all come out with state of ten times the cap?
floor       what the processes hold where there is hardly any state
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import task
from capped import Cap, capped
from measure import last_words
from wide import Shape, ensure

HERE = Path(__file__).parent
NWAY, CHAIN = "wide.sql", "wide-chain.sql"
UNITS = 4
HEAP = "512m"  # Spark takes no less than 450 MB
JAVA = "-Xmn96m -XX:ReservedCodeCacheSize=64m -XX:MaxMetaspaceSize=160m"


@dataclass(frozen=True)
class Run:
    """One line of a figure. `memory_mb`: join.memory; None: not set."""

    figure: str
    query: str
    shape: Shape
    cap_mb: int
    memory_mb: int | None
    limit: int  # seconds

    @property
    def name(self) -> str:
        budget = "unset" if self.memory_mb is None else f"{self.memory_mb} MB"
        kind = "operator" if self.query == NWAY else "chain"
        return (
            f"{self.figure}: {kind}, join.memory {budget}, cap {self.cap_mb} MB, state {self.shape.state_mb}"
            " MB"
        )


@dataclass(frozen=True)
class Sizes:
    """MB; how large the figures' runs are."""

    cap: int = 1600
    memory: int = 256
    state: int = 2600  # ten times the budget
    varied: int = 2600  # of figures 6 and 7
    least_cap: int = 1200  # and half the budget
    most_state: int = 12000  # ten times that cap
    limit: int = 300  # seconds for one run
    varied_limit: int = 150
    most_limit: int = 1500


FULL = Sizes()
QUICK = Sizes(1500, 64, 700, 350, least_cap=1200, most_state=1200, limit=60, varied_limit=30, most_limit=90)


def runs(sizes: Sizes) -> Iterator[Run]:
    """All runs, the most telling first."""
    large, small, most = Shape(sizes.state), Shape(sizes.varied), Shape(sizes.most_state)
    cap, memory, limit, varied = sizes.cap, sizes.memory, sizes.limit, sizes.varied_limit
    yield Run("floor", NWAY, Shape(8, 2), cap, memory, limit)
    yield Run("figure 5", NWAY, large, cap, memory, limit)
    yield Run("figure 5", NWAY, large, cap, None, limit)
    yield Run("figure 5", CHAIN, large, cap, memory, limit)
    for times in (1, 2):
        yield Run("figure 6", NWAY, small, times * cap, memory, varied)
        yield Run("figure 6", CHAIN, small, times * cap, memory, varied)
    for part in (4, 1, 0.5):
        yield Run("figure 7", NWAY, small, 2 * cap, int(memory / part), varied)
    yield Run("tenfold", NWAY, most, sizes.least_cap, memory // 2, sizes.most_limit)


def run(asked: Run, work: Path) -> dict[str, Any]:
    """One run, whether it ends well, is stopped or dies."""
    data = ensure(asked.shape)
    known = task.read(data)
    work.mkdir(parents=True, exist_ok=True)
    lines = work.with_suffix(".progress")
    lines.unlink(missing_ok=True)
    with capped(asked.cap_mb) as cap:
        began = time.time()
        said = _said(asked, cap, data, work, lines)
        ended = time.time()
    batches = list(map(json.loads, lines.read_text().splitlines())) if lines.exists() else []
    lines.unlink(missing_ok=True)
    results = sum(batch["results"] for batch in batches)
    return {
        "name": asked.name,
        "figure": asked.figure,
        "query": asked.query,
        "cap_mb": asked.cap_mb,
        "memory_mb": asked.memory_mb,
        "state_mb": said.get("state_mb"),
        "segments_mb": said.get("segments_mb"),
        "disk_mb": said.get("disk_mb"),
        "rows": sum(batch["rows"] for batch in batches),
        "rows_all": known.rows,
        "results": results,
        "results_all": known.results,
        "complete": results == known.results,
        "stopped": said.get("stopped", False),
        "failure": said.get("failure"),
        "seconds": said.get("seconds_total"),
        "seconds_command": ended - began,
        "held_peak_mb": cap.peak_mb,
        "killed": said.get("killed", 0),
        "held": [[round(at - began, 2), round(mb)] for at, mb in cap.held],
        "batches": [[round(b["at"] - began, 2), b["rows"], b["results"]] for b in batches],
    }


def _said(asked: Run, cap: Cap, data: Path, work: Path, lines: Path) -> Mapping[str, Any]:
    """What the command says at its end, or why it said nothing."""
    limit = asked.limit
    options = {
        "query": HERE / asked.query, "units": UNITS, "heap": HEAP, "limit": limit, "progress": lines, "data": data,
        "work": work, **({"memory": f"{asked.memory_mb}M"} if asked.memory_mb else {}),
    }  # fmt: skip
    script = [sys.executable, str(HERE.parent / "streamjoin_join.py")]
    command = script + [text for name, value in options.items() for text in (f"--{name}", str(value))]
    surroundings = {"JAVA_TOOL_OPTIONS": JAVA, "STREAMJOIN_LOCAL_DIR": str(work), "MALLOC_ARENA_MAX": "2"}
    log = work.with_suffix(".log")
    with log.open("w") as errors:
        process = subprocess.Popen(
            cap.around(command),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | surroundings,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=limit + 120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"failure": f"did not stop within {limit + 120} s", "killed": cap.kills}
    if process.returncode:
        return {"failure": f"exit code {process.returncode}: {last_words(log)}", "killed": cap.kills}
    return {**json.loads(printed.splitlines()[-1]), "killed": cap.kills}
