"""What becomes of a join whose state is larger than memory?

Runs in a cgroup, each told from its batches. Figures are those of UMJoin.

figure 5abc how many results come out by when, by the cap: StreamJoin, and an n-way join in memory (Flink's); who dies?
figure 5d   the same beside the best chain of binary joins, whose state is that of the same engine
figure 6    how long it takes by the memory, as one operator and as that chain; few matches, and many
figure 7b   how long it takes by `join.memory`
tenfold     does all come out with state of ten times the cap?
floor       what the processes hold where there is hardly any state

All inputs of the chain are alike, so each order of it is the best.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import task
from capped import Cap, capped
from measure import last_words
from systems import FLINK, JOIN, script
from wide import Shape, ensure

HERE = Path(__file__).parent
UNITS = 4
HEAP = "512m"  # Spark takes no less than 450 MB
JAVA = "-Xmn96m -XX:ReservedCodeCacheSize=64m -XX:MaxMetaspaceSize=160m"
GRACE = 40  # seconds beyond its limit, until it is killed: a JVM that does nothing but collect does not stop
BESIDE_HEAP_MB = 600  # of the cap: what a JVM of Flink holds beside its heap
JOINS = {  # by name: what runs it
    "operator": script(JOIN, "--query", str(HERE / "wide.sql")),
    "binary": script(JOIN, "--query", str(HERE / "wide.sql"), "--join", "strategy=binary"),
    "stages": script(JOIN, "--query", str(HERE / "wide-chain.sql")),
    "flink": script(FLINK, "--query", str(HERE / "wide.sql"), "--state", "heap", "--multi-join"),
}


@dataclass(frozen=True)
class Run:
    """One line of a figure. `memory_mb`: join.memory; None: not set."""

    figure: str
    join: str
    shape: Shape
    cap_mb: int
    memory_mb: int | None
    limit: int  # seconds

    @property
    def name(self) -> str:
        budget = "" if self.join == "flink" else f" join.memory {self.memory_mb or 'unset'},"
        return (
            f"{self.figure}: {self.join},{budget} cap {self.cap_mb} MB, state {self.shape.state_mb} MB,"
            f" {self.shape.of_key:g} rows of a key"
        )

    def command(self, data: Path, work: Path, lines: Path) -> list[str]:
        given = ["--limit", str(self.limit), "--progress", str(lines)]
        if self.join == "flink":
            return [*JOINS[self.join](data, work), *given, "--memory", f"{self.cap_mb - BESIDE_HEAP_MB}m"]
        command = JOINS[self.join](data, work)
        if self.memory_mb:
            command += [] if "--join" in command else ["--join"]
            at = command.index("--join") + 1
            command[at:at] = [f"memory={self.memory_mb}M"]
        return [*command, *given, "--units", str(UNITS), "--heap", HEAP]

    @property
    def surroundings(self) -> dict[str, str]:
        return {} if self.join == "flink" else {"JAVA_TOOL_OPTIONS": JAVA, "MALLOC_ARENA_MAX": "2"}


@dataclass(frozen=True)
class Sizes:
    """MB; how large the figures' runs are."""

    cap: int = 1600
    memory: int = 256
    state: int = 2600  # ten times the budget
    matched: int = 1000  # of figure 6, where a row finds eight results: the chain stores five times as much
    caps: tuple[int, ...] = (1600, 2400, 3200, 6400)  # of figure 5
    memories: tuple[int, ...] = (256, 512, 1024, 2048, 4096)  # of figure 6
    budgets: tuple[int, ...] = (64, 128, 256, 512, 1024)  # of figure 7
    least_cap: int = 1200  # and half the budget
    most_state: int = 12000  # ten times that cap
    limit: int = 300  # seconds for one run
    most_limit: int = 1500


FULL = Sizes()
QUICK = Sizes(
    1500, 64, 700, 200, (1500,), (64, 256), (16, 64), least_cap=1200, most_state=1200, limit=60, most_limit=90
)
TINY = replace(
    QUICK, state=20, matched=10, memories=(64,), budgets=(64,), most_state=20, limit=120, most_limit=120
)


def runs(sizes: Sizes) -> Iterator[Run]:
    """All runs, the most telling first."""
    large, most = Shape(sizes.state), Shape(sizes.most_state)
    cap, memory, limit = sizes.cap, sizes.memory, sizes.limit
    yield Run("floor", "operator", Shape(8, 2), cap, memory, limit)
    for one in sizes.caps:
        yield Run("figure 5", "operator", large, one, memory, limit)
        yield Run("figure 5", "flink", large, one, None, limit)
    yield Run("figure 5", "operator", large, cap, None, limit)
    for chain in ("binary", "stages"):
        yield Run("figure 5", chain, large, cap, memory, limit)
    for shape in (large, Shape(sizes.matched, of_key=2)):
        for budget in sizes.memories:
            for join in ("operator", "binary"):
                yield Run("figure 6", join, shape, cap - memory + budget, budget, limit)
        for join in ("operator", "binary"):
            yield Run("figure 6", join, shape, cap - memory + 2 * sizes.memories[-1], None, limit)
    for budget in sizes.budgets:
        yield Run("figure 7", "operator", large, 2 * cap, budget, limit)
    yield Run("tenfold", "operator", most, sizes.least_cap, memory // 2, sizes.most_limit)


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
    if asked.join == "flink":
        batches = [*_steps(batches)]
    results = said.get("results", sum(batch["results"] for batch in batches))
    return {
        "name": asked.name,
        "figure": asked.figure,
        "join": asked.join,
        "of_key": asked.shape.of_key,
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


def _steps(marks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What lies between marks, which count from the beginning."""
    before = {"rows": 0, "results": 0}
    for mark in marks:
        yield mark | {name: mark[name] - before[name] for name in ("rows", "results")}
        before = mark


def _said(asked: Run, cap: Cap, data: Path, work: Path, lines: Path) -> Mapping[str, Any]:
    """What the command says at its end, or why it said nothing."""
    limit = asked.limit
    surroundings = {**asked.surroundings, "STREAMJOIN_LOCAL_DIR": str(work)}
    log = work.with_suffix(".log")
    with log.open("w") as errors:
        process = subprocess.Popen(
            cap.around(asked.command(data, work, lines)),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | surroundings,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=limit + GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"failure": f"did not stop within {limit + GRACE} s", "killed": cap.kills}
    if process.returncode:
        return {"failure": f"exit code {process.returncode}: {last_words(log)}", "killed": cap.kills}
    return {**json.loads(printed.splitlines()[-1]), "killed": cap.kills}
