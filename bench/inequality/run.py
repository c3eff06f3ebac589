"""Inequality joins on this machine: `python bench/inequality/run.py [--quick] [--wall] [window] [seal] [band]
[q3]`.

    window  a window of 100 000 rows, batches of 1 000 probes, one core: this index and its peers
    seal    taking batches in, sealing, dropping a run
    band    probes/s on 10 M stored rows, one core
    q3      SPO-Join's Q3 as a stream, window 1 M, slide 100 000, two processes; δ = slide and δ = slide / 2; latencies

Writes results/inequality.json; `draw.py` makes the plot. CPU seconds, so that neighbours disturb less;
everything here computes and waits for nothing. `--wall`: wall seconds, on a machine where nothing else runs.
"""

import argparse
import json
import multiprocessing
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from peers import CssBits, CssTree, DuckDB, Nested, PerTuple  # noqa: E402
from trees import Trees, b_plus_trees, pim_trees  # noqa: E402

from joinlib.index.comparisons import Shape  # noqa: E402
from joinlib.index.inequality import Op, PermutedRun, build  # noqa: E402
from joinlib.index.neighbours import shared  # noqa: E402
from joinlib.warm import warm_inequalities  # noqa: E402

Q3 = [Op.GT, Op.LT]  # trip1.distance > trip2.distance AND trip1.fare < trip2.fare
Q3_OTHER = [Op.LT, Op.GT]  # the same when the new trip is trip2
SHAPES = [Shape(tuple(ops), (0, 1), (True, True)) for ops in (Q3, Q3_OTHER)]
Columns = list[np.ndarray]
CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}
clock = "wall" if "--wall" in sys.argv else "cpu"


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """The middle of some runs, after one that is not counted."""
    work()
    taken = []
    for _ in range(times):
        start = CLOCKS[clock]()
        work()
        taken.append(CLOCKS[clock]() - start)
    return statistics.median(taken)


def drain(frames: Any) -> int:
    return sum(len(probes) for probes, _ in frames)


def independent(rate: float, rows: int, probes: int, draw: np.random.Generator) -> tuple[Columns, Columns]:
    """Both comparisons are equally selective."""
    share = rate**0.5
    near = 1 + 0.1 * (draw.random((2, probes)) - 0.5)
    return [draw.random(rows), draw.random(rows)], [share * near[0], 1 - share * near[1]]


def correlated(rate: float, rows: int, probes: int, draw: np.random.Generator) -> tuple[Columns, Columns]:
    """As distance and fare: each comparison alone keeps half of the rows."""
    x, p = draw.random(rows), draw.random(probes)
    spread = {1e-4: 1.75e-4, 1e-2: 1.78e-2, 1e-1: 0.205}[rate]
    return [x, x + spread * draw.standard_normal(rows)], [p, p + spread * draw.standard_normal(probes)]


class Ours:
    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.part: PermutedRun | Recent = build([x, y], Q3)

    def count(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        return self.part.count([p, q])

    def pairs(self, p: np.ndarray, q: np.ndarray) -> int:
        return drain(self.part.probe([p, q]))


class Recent:
    """The rows since the last seal as the engine holds them: batches, of which small neighbours share an
    index.
    """

    def __init__(self) -> None:
        self.batches: list[Columns] = []
        self.runs: dict[tuple[int, int], PermutedRun] = {}

    @property
    def rows(self) -> int:
        return sum(run.rows for run in self.runs.values())

    def insert(self, columns: Columns) -> None:
        self.batches.append(columns)
        places = shared([len(batch[0]) for batch in self.batches])
        self.runs = {place: self.runs.get(place) or self._build(*place) for place in places}

    def count(self, columns: Columns) -> np.ndarray:
        return sum(run.count(columns) for run in self.runs.values())

    def probe(self, columns: Columns) -> Any:
        for run in self.runs.values():
            yield from run.probe(columns)

    def seal(self) -> PermutedRun:
        """All rows as one run; nothing is left."""
        sealed = self._build(0, len(self.batches))
        self.batches, self.runs = [], {}
        return sealed

    def _build(self, start: int, stop: int) -> PermutedRun:
        return build([np.concatenate(c) for c in zip(*self.batches[start:stop])], Q3)


class OurRecent(Ours):
    """The rows came in batches of 1 000 and are not sealed."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.part = Recent()
        for start in range(0, len(x), 1000):
            self.part.insert([x[start : start + 1000], y[start : start + 1000]])


SYSTEMS: dict[str, tuple[Any, int]] = {  # and how many probes are enough
    "this index, sealed": (Ours, 1000),
    "this index, not sealed": (OurRecent, 1000),
    "nested loop, numba": (Nested, 1000),
    "DuckDB, IEJoin": (DuckDB, 1000),
    "PO-Join, bits anew for each tuple": (PerTuple, 200),
    "CSS-trees, bit array": (CssBits, 200),
    "CSS-trees, hash set": (CssTree, 100),
    "B+trees, bit array": (b_plus_trees, 200),
    "PIM-trees, bit array": (pim_trees, 200),
}


def window(quick: bool) -> dict[str, Any]:
    """Probes/s, and whether all count the same."""
    rows = 10_000 if quick else 100_000
    found: dict[str, Any] = {"rows": rows, "batch": 1000}
    for data in (independent, correlated):
        for rate in (1e-4, 1e-2, 1e-1):
            stored, probes = data(rate, rows, 1000, np.random.default_rng(5))
            wanted = Nested(*stored).count(*probes)
            place: dict[str, Any] = {"match rate": float(wanted.mean() / rows)}
            for name, (system, few) in SYSTEMS.items():
                peer, asked = system(*stored), [column[:few] for column in probes]
                counted = peer.count(*asked)
                agrees = counted[0] == wanted.sum() if system is DuckDB else (counted == wanted[:few]).all()
                assert agrees, name
                times = 15 if system in (Ours, OurRecent) else 3
                place[name] = {
                    "count": few / seconds(partial(peer.count, *asked), times),
                    "pairs": few / seconds(partial(peer.pairs, *asked), times),
                }
            found[f"{data.__name__} {rate:.2%}"] = place
            print(data.__name__, rate, json.dumps(place, indent=1), flush=True)
    return found


def seal(quick: bool) -> dict[str, Any]:
    """Milliseconds, by the rows of a seal; batches of 1 000."""
    found: dict[str, Any] = {}
    for rows in (10_000,) if quick else (10_000, 100_000, 1_000_000):
        columns = list(np.random.default_rng(2).random((2, rows)))
        run, kept = build(columns, Q3), [build(columns, Q3) for _ in range(4)]
        found[str(rows)] = {
            "sealed, ms": 1e3 * seconds(partial(build, columns, Q3), 3),
            "taken in by batches of 1 000, ms": 1e3 * seconds(partial(OurRecent, *columns), 3),
            "taken in by B+trees, ms": 1e3 * inserted(columns, sealed=False),
            "taken in by PIM-trees, ms": 1e3 * inserted(columns, sealed=True),
            "dropping a run, ms": 1e3 * seconds(kept.pop, 3),
            "bytes a row": sum(a.nbytes for a in run.arrays().values()) / rows,
        }
        print(rows, found[str(rows)], flush=True)
    return found


def inserted(columns: Columns, sealed: bool) -> float:
    """Seconds to insert these rows into B+trees: below CSS-trees of as many rows, or alone."""
    rows = len(columns[0])
    below = columns if sealed else [column[:0] for column in columns]
    x, y = below
    trees = [Trees(x, y, 2 * rows) for _ in range(4)]
    return seconds(lambda: trees.pop().insert(*columns), 3)


def band(quick: bool) -> dict[str, Any]:
    """Probes/s of |x - y| <= c, batches of 100 000 probes in random order."""
    rows, draw = 100_000 if quick else 10_000_000, np.random.default_rng(3)
    y = draw.random(rows)
    start = CLOCKS[clock]()
    run = build([y, y], [Op.GE, Op.LE])
    found: dict[str, Any] = {"rows": rows, "build s": CLOCKS[clock]() - start}
    for batch in (1000, 10_000, 100_000):
        x = draw.random(batch)
        for matches in (1, 10, 100):
            asked = [x + matches / rows / 2, x - matches / rows / 2]
            found[f"{batch} probes, {matches} matches"] = {
                "matches": float(run.count(asked).mean()),
                "count": batch / seconds(partial(run.count, asked)),
                "pairs": batch / seconds(partial(_pairs, run, asked)),
            }
    print(json.dumps(found, indent=1), flush=True)
    return found


def _pairs(run: PermutedRun, asked: Columns) -> int:
    return drain(run.probe(asked))


def trips(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Miles by hundredths and fares by half dollars, as taxis report them: ties everywhere."""
    draw = np.random.default_rng(seed)
    miles = np.round(np.exp(draw.normal(0.6, 0.9, rows)), 2)
    return miles, np.round(2 * (2.5 + 2.5 * miles * np.exp(draw.normal(0, 0.15, rows)))) / 2


class Unit:
    """Every `delta` rows of the stream go to the next unit, and are sealed; the window is the last rows,
    exactly.
    """

    def __init__(self, number: int, units: int, rows: int, delta: int) -> None:
        self.number, self.units, self.window, self.delta = number, units, rows, delta
        self.runs: deque[tuple[int, PermutedRun]] = deque()
        self.recent, self.base, self.dropped_ms = Recent(), 0, [0.0]

    def take(self, at: int, columns: Columns, roles: int) -> int:
        """A batch whose first row has number `at`: inserted if this unit stores it, then probed.

        Its matches here.
        """
        if at // self.delta % self.units == self.number:
            if not self.recent.rows:
                self.base = at
            self.recent.insert(columns)
            if self.recent.rows >= self.delta:
                self.runs.append((self.base, self.recent.seal()))
        oldest = at + len(columns[0]) - self.window
        start = time.perf_counter()
        while self.runs and self.runs[0][0] + self.runs[0][1].rows <= oldest:
            self.runs.popleft()
        self.dropped_ms.append(1e3 * (time.perf_counter() - start))
        matches = 0
        asked = [shape.prepare(columns) for shape in SHAPES[:roles]]  # once for all runs
        for base, run in [*self.runs, *self._recent()]:
            alive = (max(oldest - base, 0), run.rows)
            for part, probes in zip((run, turned(run)), asked):
                matches += int(part.count(probes, alive=alive).sum())
        return matches

    def _recent(self) -> Iterator[tuple[int, PermutedRun]]:
        base = self.base
        for run in self.recent.runs.values():
            yield base, run
            base += run.rows


def turned(run: PermutedRun) -> PermutedRun:
    """The same rows, asked from the other side: the arrays do not depend on the comparisons.

    Made once a run.
    """
    if "turned" not in run.__dict__:
        run.__dict__["turned"] = replace(run, shape=SHAPES[1])
    return run.__dict__["turned"]


def work(number: int, units: int, plan: dict[str, Any], start: Any, answers: Any) -> None:
    unit = Unit(number, units, plan["window"], plan["delta"])
    rows = plan["window"] + plan["rows"]
    miles, fares = trips(rows, 4)
    for at in range(0, plan["window"], plan["delta"]):
        if at // plan["delta"] % units == number:
            part = slice(at, at + plan["delta"])
            unit.runs.append((at, build([miles[part], fares[part]], Q3)))
    warm_inequalities()
    taken, matches = [], 0
    start.wait()
    for at in range(plan["window"], rows, plan["batch"]):
        begin = CLOCKS[plan["clock"]]()
        part = slice(at, at + plan["batch"])
        matches += unit.take(at, [miles[part], fares[part]], plan["roles"])
        taken.append(CLOCKS[plan["clock"]]() - begin)
        start.wait()
    answers.put((taken, matches, max(unit.dropped_ms)))


def stand(number: int, units: int, plan: dict[str, Any], start: Any, answers: Any) -> None:
    """A peer over a window that does not move: nothing is inserted."""
    miles, fares = trips(plan["window"] + plan["rows"], 4)
    starts = range(number * plan["delta"], plan["window"], units * plan["delta"])
    parts = [plan["peer"](*(c[at : at + plan["delta"]] for c in (miles, fares))) for at in starts]
    for part in parts:
        part.count(miles[:1], fares[:1])
    taken, matches = [], 0
    start.wait()
    for at in range(plan["window"], plan["window"] + plan["rows"], plan["batch"]):
        begin, batch = CLOCKS[plan["clock"]](), slice(at, at + plan["batch"])
        matches += sum(int(part.count(miles[batch], fares[batch]).sum()) for part in parts)
        taken.append(CLOCKS[plan["clock"]]() - begin)
        start.wait()
    answers.put((taken, matches, 0.0))


def together(target: Callable[..., None], plan: dict[str, Any]) -> dict[str, Any]:
    """Two units that take a batch at a time; a batch is done when both have done it."""
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(2), context.Queue()
    units = [
        context.Process(target=target, args=(u, 2, plan | {"clock": clock}, barrier, answers))
        for u in range(2)
    ]
    for unit in units:
        unit.start()
    got = [answers.get() for _ in units]
    for unit in units:
        unit.join()
    latency = 1e3 * np.array([taken for taken, _, _ in got]).max(axis=0)
    return {
        "rows/s": 1e3 * plan["rows"] / latency.sum(),
        "match rate": sum(m for _, m, _ in got) / plan["rows"] / plan["window"] / plan.get("roles", 1),
        "latency ms": dict(zip(("p50", "p75", "p95", "max"), np.percentile(latency, (50, 75, 95, 100)))),
        "latencies ms": np.round(latency, 3).tolist(),
        "longest drop ms": max(d for _, _, d in got),
    }


def q3(quick: bool) -> dict[str, Any]:
    """Rows/s when every batch waits for the slower of two units, and the latency of a batch."""
    scale = 20 if quick else 1
    rows, slide = 1_000_000 // scale, 100_000 // scale
    plans: dict[str, tuple[Callable[..., None], dict[str, Any]]] = {}
    for roles, role in ((1, "trip1"), (2, "trip1 and trip2")):
        for name, delta in (("δ1 = slide", slide), ("δ2 = slide / units", slide // 2)):
            for batch in (1000, 10_000):
                plan = {"window": rows, "delta": delta, "rows": 2 * slide, "batch": batch, "roles": roles}
                plans[f"{name}, batch {batch}, new trip as {role}"] = (work, plan)
    for name, peer, few in (
        ("split join (nested loop)", Nested, 4000),
        ("chain index (CSS-trees, hash set)", CssTree, 400),
        ("CSS-trees, bit array", CssBits, 400),
        ("PO-Join, bits anew each tuple", PerTuple, 1000),
    ):
        plan = {"window": rows, "delta": slide, "rows": few, "batch": few // 4, "peer": peer}
        plans[f"{name}, a window that stands still"] = (stand, plan)
    found = {}
    for name, (target, plan) in plans.items():
        found[name] = together(target, plan)
        print(name, {k: v for k, v in found[name].items() if k != "latencies ms"}, flush=True)
    return found


PARTS = {"window": window, "seal": seal, "band": band, "q3": q3}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--wall", action="store_true")
    asked = parser.parse_args()
    file = Path(__file__).parent / "results" / "inequality.json"
    results = json.loads(file.read_text()) if file.exists() and not asked.quick else {}
    for part in asked.parts or PARTS:
        results[part] = PARTS[part](asked.quick) | {"clock": clock}
        if not asked.quick:
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
