"""dpPick against its peers: `python bench/probe_order/run.py [PART...]` adds to results/probe_order.json."""

import argparse
import json
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from statistics import mean, pstdev
from typing import Any
from unittest import mock

from bench.probe_order.books import paired
from bench.probe_order.data import NAMES, ROWS, made
from bench.probe_order.merge import Kind, compared
from bench.probe_order.play import Counting, Run, played
from joinlib.join.order.orders import CALM
from joinlib.join.probe import Prober
from joinlib.model.tuning import Tuning

RESULTS = Path(__file__).parent / "results" / "probe_order.json"
RULES = ("fixed", "auto", "selectivity", "greedy", "query-only", "match-only", "unsmoothed", "unfanned")
ORDERS = list(permutations(NAMES))
BATCHES = 32
WARM = 31  # batches, until cycles have their length


def main() -> None:
    parts: dict[str, Callable[[float], Any]] = {
        "orders": orders, "flip": flip, "cycles": cycles, "books": books, "merge": merge
    }  # fmt: skip
    asked = argparse.ArgumentParser()
    asked.add_argument("part", choices=parts, nargs="*", default=list(parts))
    asked.add_argument("--scale", type=float, default=0.5, help="of TPC-DS scale 1")
    given = asked.parse_args()
    played(ORDERS[0], made("tpcds", 0.02, 4), "auto")  # kernels are compiled
    for part in given.part:
        of_paper = part in ("orders", "flip", "cycles")  # cycles of one length
        with (
            mock.patch("joinlib.join.unit.Prober", Counting if of_paper else Prober),
            mock.patch("joinlib.join.order.orders.CALM", 0 if of_paper else CALM),
        ):
            _save(part, {"scale": given.scale, "runs": parts[part](given.scale)})


def orders(scale: float) -> list[dict[str, Any]]:
    """Figures 2 and 3: every initial order by every rule; rules take turns, so that a busy minute meets all
    of them.
    """
    batches = made("tpcds", scale, BATCHES)
    runs = [_row(order, rule, played(order, batches, rule)) for order in ORDERS for rule in RULES]
    assert len({run["results"] for run in runs}) == 1, "the order changed the answer"
    return runs


def flip(scale: float) -> list[dict[str, Any]]:
    """Half-way, the inputs that let few rows pass are others.

    Four initial orders that differ in who comes first.
    """
    batches = made("flip", 2 * scale, BATCHES)
    runs = [_row(order, rule, played(order, batches, rule)) for order in ORDERS[::6] for rule in RULES[:4]]
    assert len({run["results"] for run in runs}) == 1, "the order changed the answer"
    return runs


def cycles(scale: float) -> list[dict[str, Any]]:
    """Section 5.4: the length of a cycle, in batches, for a stream that stays as it is and one that flips."""
    return [
        {"kind": kind, "cycle": t, **_row(ORDERS[-1], "auto", played(ORDERS[-1], batches, "auto", t))}
        for kind in ("tpcds", "flip")
        for batches in [made(kind, scale, BATCHES)]
        for t in (1, 2, 4, 8, 16)
    ]


def books(scale: float) -> list[dict[str, Any]]:
    """What counting, smoothing, searching and keeping cost, of all that a unit does; by the rows of a batch."""
    found = []
    for rows, batches in ((1_000, 2079), (4_000, 1631), (16_000, 431)):
        stream = made("tpcds", rows * batches / sum(ROWS.values()), batches)
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


def merge(scale: float) -> list[dict[str, Any]]:
    """The n-way join beside a chain of binary ones, by inputs, rows of a key in each, and the rows of a
    batch.
    """
    rows, found = int(400_000 * scale), []
    kinds = [Kind(n, m, rows // m**2, 10) for n in (3, 4, 6) for m in (1, 2, 4) if m ** (n - 1) <= 64]
    kinds += [Kind(n, 1, rows, 10, "last") for n in (3, 4, 6)]
    kinds += [Kind(n, 1, rows, 10, found=0.3) for n in (3, 4, 6)]
    kinds += [Kind(n, 1, rows, 50) for n in (3, 4, 6)]
    for kind in kinds:
        runs = [compared(kind) for _ in range(3)]
        best = {name: min(run[name] for run in runs) for name in runs[0]}
        found.append({**vars(kind), **best})
        print(found[-1], flush=True)
    return found


def _row(order: tuple[str, ...], rule: str, run: Run) -> dict[str, Any]:
    print("".join(order), rule, f"{run.cpu:.2f} s, {run.tuples} tuples", flush=True)
    return {"order": "".join(n.title() for n in order), "rule": rule, **vars(run)}


def _save(part: str, found: Any) -> None:
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({**known, part: found}) + "\n")


if __name__ == "__main__":
    main()
