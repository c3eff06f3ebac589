"""What does a count window cost the probes of a run: as a range of row numbers, as two more comparisons, or as joins do it?

Joins ask the other comparisons, and check the window on the pairs found, unless it leaves out nearly all rows.
`python bench/inequality/window.py` writes results/window.json: CPU milliseconds.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[2]))
from joinlib.arrays import I64
from joinlib.index.comparisons import PreparedProbes
from joinlib.index.inequality import Op, PermutedRun, build
from joinlib.index.permuted import PAIRS
from joinlib.join.theta import matches

RESULTS = Path(__file__).parent / "results" / "window.json"
ROWS, PROBES, RUNS = 100_000, 1_000, 5


def main() -> None:
    RESULTS.write_text(
        json.dumps([measured(ROWS // part) for part in (1, 2, 10, 100, 1000)], indent=1) + "\n"
    )
    print(RESULTS.read_text())


def measured(window: int) -> dict[str, float]:
    """One line of the results; `window`, rows."""
    draw = np.random.default_rng(1)
    x, y, number = draw.random(ROWS), draw.random(ROWS), np.arange(ROWS)
    asked = [draw.normal(0.87, 0.01, PROBES), draw.normal(0.13, 0.01, PROBES)]  # 1.7 % of the rows match
    newest = np.arange(ROWS, ROWS + PROBES)
    plain = build([x, y], [Op.LT, Op.GT])
    windowed = build([x, y, number, number], [Op.LT, Op.GT, Op.LE, Op.GE])
    probes = windowed.shape.prepare([*asked, newest - window, newest + window])
    return {
        "rows": ROWS,
        "probes": PROBES,
        "window": window,
        "without_ms": _best_ms(lambda: plain.probe(asked)),
        "range_ms": _best_ms(lambda: plain.probe(asked, alive=(ROWS - window, ROWS))),
        "comparisons_ms": _best_ms(lambda: windowed.probe(probes)),
        "join_ms": _best_ms(lambda: _joined(windowed, probes, newest - window)),
    }


def _joined(run: PermutedRun, probes: PreparedProbes, first: I64) -> Iterator[I64]:
    """What a join does, the check of the pairs included; `first`: the first row in each probe's window."""
    for positions, rows in matches(run, probes, 2, PAIRS):
        yield rows[rows >= first[positions]]


def _best_ms(found: Callable[[], Iterable[object]]) -> float:
    """CPU milliseconds of all pairs of a batch, the best of some runs."""
    best = float("inf")
    for _ in range(RUNS):
        begun = time.process_time()
        for _ in found():
            pass
        best = min(best, time.process_time() - begun)
    return round(1e3 * best, 2)


if __name__ == "__main__":
    main()
