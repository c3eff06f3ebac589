"""dpPick against its peers: `python bench/probe_order/run.py [PART...]` adds to results/probe_order.json.

    tpcds uniform skewed flip drift   initial orders by rules, on that stream (figures 2 and 3)
    cycles history                    the length of a cycle, of the history (figures 4 and 5)
    books merge                       what adapting costs; one join or a chain

Each run is kept when it is had; --go-on keeps what an earlier call has measured and does the rest.
"""

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from statistics import mean, median, pstdev
from typing import Any
from unittest import mock

sys.path.append(str(Path(__file__).parents[2]))
from bench.probe_order.books import paired
from bench.probe_order.data import KINDS, NAMES, ROWS, made
from bench.probe_order.merge import Kind, compared
from bench.probe_order.play import Counting, Run, played
from joinlib.model.tuning import Tuning

RESULTS = Path(__file__).parent / "results" / "probe_order.json"  # unless --results says another
RULES = ("fixed", "auto", "selectivity", "greedy", "query-only", "match-only", "unsmoothed", "unfanned")
ORDERS = list(permutations(NAMES))
BEST = (("cr", "wr", "sr", "cu"), ("wr", "cu", "cr", "sr"))  # of figures 4 and 5: where the paper gains most
SCALES = {"tpcds": 10.0, "uniform": 10.0, "skewed": 1.0, "flip": 10.0, "drift": 10.0}
CYCLES, HISTORIES = (1, 2, 4, 8, 16), (1, 2, 3, 5, 10, 20, 60)
CYCLE = 4  # batches
WARM = 31  # batches, until cycles have their length
BOOKS = ((1_000, 2079), (4_000, 1631), (16_000, 431))  # rows of a batch, batches
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One run of a figure; `history`: its length L, None: as it is."""

    kind: str
    order: tuple[str, ...]
    rule: str
    cycle: int = CYCLE
    history: int | None = None

    @property
    def told(self) -> Row:
        own = {} if self.history is None else {"history": self.history}
        return {
            "kind": self.kind,
            "order": "".join(map(str.title, self.order)),
            "rule": self.rule,
            "cycle": self.cycle,
        } | own


def orders(kind: str, given: argparse.Namespace) -> Iterator[Case]:
    """Figures 2 and 3: initial orders by rules."""
    count = given.orders or (24 if kind in ("tpcds", "uniform") else 4)
    for order in ORDERS[:: len(ORDERS) // count]:
        for rule in given.rules:
            yield Case(kind, order, rule)


def cycles(given: argparse.Namespace) -> Iterator[Case]:
    """Figure 4: the length T of a cycle, in batches."""
    for kind in given.kinds:
        for order in BEST:
            yield Case(kind, order, "fixed")
            yield from (Case(kind, order, "auto", t) for t in CYCLES)


def history(given: argparse.Namespace) -> Iterator[Case]:
    """Figure 5: the length L of the history, in cycles of one batch."""
    for kind in given.kinds:
        for order in BEST:
            yield Case(kind, order, "fixed", 1)
            yield from (Case(kind, order, "auto", 1, length) for length in HISTORIES)


def measured(part: str, cases: Iterable[Case], given: argparse.Namespace) -> None:
    """Runs all cases once, then all of them again, so that a busy minute meets all alike; the medians count."""
    rows = (
        {json.dumps(row_key(row)): row for row in known(given.results).get(part, {}).get("runs", [])}
        if given.go_on
        else {}
    )
    some = list(cases)
    for kind in dict.fromkeys(case.kind for case in some):
        scale = given.scale or SCALES[kind]
        batches, results = made(kind, scale, given.batches), set[int]()
        for repetition in range(given.repetitions):
            for case in (c for c in some if c.kind == kind):
                row = rows.setdefault(json.dumps(case.told), {**case.told, "scale": scale, "cpu": []})
                if len(row["cpu"]) <= repetition:
                    run = one(case, batches)
                    results.add(run.results)
                    row |= {
                        "cpu": [*row["cpu"], run.cpu],
                        "probing": run.probing,
                        "columns": run.columns,
                        "tuples": run.tuples,
                        "results": run.results,
                        "manifest": run.manifest,
                    }
                    print(part, *case.told.values(), f"{run.cpu:.2f} s, {run.tuples} tuples", flush=True)
                    save(given.results, part, list(rows.values()))
        assert len(results) <= 1, "the order changed the answer"


def row_key(row: Row) -> Row:
    return {name: row[name] for name in ("kind", "order", "rule", "cycle", "history") if name in row}


def one(case: Case, batches: Any) -> Run:
    """With cycles of one length, as in the paper; in the product, calm ones are longer."""
    tuning = Tuning(probe_order=case.rule, probe_cycle=case.cycle)
    if case.history is not None:
        tuning = replace(tuning, probe_history=case.history)
    with contextlib.ExitStack() as patches:
        patches.enter_context(mock.patch("joinlib.join.unit.Prober", Counting))
        patches.enter_context(mock.patch("joinlib.join.order.orders.CALM", 0))
        return played(case.order, batches, tuning)


def books(given: argparse.Namespace) -> list[Row]:
    """What counting, smoothing, searching and keeping cost, of all that a unit does; by the rows of a batch."""
    found = []
    for rows, batches in BOOKS:
        stream = made("uniform", rows * batches / sum(ROWS.values()), batches)
        pairs = paired(ORDERS[0], stream, Tuning(), WARM)
        most = (
            sum(kept for kept, _ in pairs) / len(pairs) / 2
        )  # what is more is something else: memory is collected, ...
        near = [(kept, bare) for kept, bare in pairs if abs(kept - bare) < most]
        more = [kept - bare for kept, bare in near]
        whole = sum(kept for kept, _ in near)
        found.append({"rows": rows, "batches": len(near), "batch": whole / len(near), "books": mean(more)})
        found[-1] |= {"share": sum(more) / whole, "error": pstdev(more) * len(near) ** 0.5 / whole}
        print(found[-1], flush=True)
    return found


def merge(given: argparse.Namespace) -> list[Row]:
    """The n-way join beside a chain of binary ones, by inputs, rows of a key in each, and the rows of a
    batch.
    """
    rows, found = int(400_000 * (given.scale or 0.5)), []
    kinds = [Kind(n, m, rows // m**2, 10) for n in (3, 4, 6) for m in (1, 2, 4) if m ** (n - 1) <= 64]
    kinds += [Kind(n, 1, rows, 10, "last") for n in (3, 4, 6)]
    kinds += [Kind(n, 1, rows, 10, found=0.3) for n in (3, 4, 6)]
    kinds += [Kind(n, 1, rows, 50) for n in (3, 4, 6)]
    for kind in kinds:
        runs = [compared(kind) for _ in range(given.repetitions)]
        found.append({**vars(kind), **{name: median(run[name] for run in runs) for name in runs[0]}})
        print(found[-1], flush=True)
    return found


def known(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def save(path: Path, part: str, runs: list[Row]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**known(path), part: {"runs": runs}}) + "\n")


ALONE: dict[str, Callable[[argparse.Namespace], list[Row]]] = {"books": books, "merge": merge}
FIGURES: dict[str, Callable[[argparse.Namespace], Iterator[Case]]] = {"cycles": cycles, "history": history}
PARTS = [*KINDS, *FIGURES, *ALONE]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("parts", choices=[*PARTS, []], nargs="*", metavar="PART")
    asked.add_argument("--scale", type=float, help=f"of TPC-DS; by default {SCALES}")
    asked.add_argument("--batches", type=int, default=32, help="of a stream")
    asked.add_argument("--repetitions", type=int, default=5)
    asked.add_argument(
        "--orders", type=int, choices=(1, 2, 4, 6, 12, 24), help="so many of the initial orders"
    )
    asked.add_argument("--rules", nargs="*", choices=RULES, default=RULES, help="of initial orders")
    asked.add_argument(
        "--kinds", nargs="*", choices=KINDS, default=["tpcds", "flip", "drift"], help="of cycles, history"
    )
    asked.add_argument(
        "--go-on", action="store_true", help="keep what an earlier call has measured, do the rest"
    )
    asked.add_argument("--results", type=Path, default=RESULTS, help="the file that keeps what is measured")
    given = asked.parse_args()
    played(ORDERS[0], made("uniform", 0.02, 4), Tuning())  # kernels are compiled
    for part in given.parts or PARTS:
        if part in ALONE:
            save(given.results, part, ALONE[part](given))
        else:
            measured(part, FIGURES[part](given) if part in FIGURES else orders(part, given), given)


if __name__ == "__main__":
    main()
