"""What does a count window cost the probes of a run: as a range of row numbers, or as two more comparisons?

Joins ask it as comparisons. `python bench/inequality/window.py` writes results/window.json: CPU milliseconds.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from joinlib.index.inequality import Op, PermutedRun, build

RESULTS = Path(__file__).parent / "results" / "window.json"
ROWS, PROBES, RUNS = 100_000, 1_000, 5


def main() -> None:
    draw = np.random.default_rng(1)
    x, y, number = draw.random(ROWS), draw.random(ROWS), np.arange(ROWS)
    asked = [draw.normal(0.87, 0.01, PROBES), draw.normal(0.13, 0.01, PROBES)]  # 1.7 % of the rows match
    newest = np.arange(ROWS, ROWS + PROBES)
    plain = build([x, y], [Op.LT, Op.GT])
    windowed = build([x, y, number, number], [Op.LT, Op.GT, Op.LE, Op.GE])
    outcomes = []
    for window in (ROWS, ROWS // 2):  # all rows are within the window, or half of them
        bounds = [newest - window, newest + window]
        alive = (ROWS - window, ROWS)
        outcomes.append(
            {
                "rows": ROWS,
                "probes": PROBES,
                "window": window,
                "without_ms": _best_ms(plain, asked),
                "range_ms": _best_ms(plain, asked, alive),
                "comparisons_ms": _best_ms(windowed, [*asked, *bounds]),
            }
        )
    RESULTS.write_text(json.dumps(outcomes, indent=1) + "\n")
    print(RESULTS.read_text())


def _best_ms(run: PermutedRun, asked: Sequence[np.ndarray], alive: tuple[int, int] | None = None) -> float:
    """CPU milliseconds of all pairs of a batch, the best of some runs."""
    best = float("inf")
    for _ in range(RUNS):
        begun = time.process_time()
        for _ in run.probe(asked) if alive is None else run.probe(asked, alive=alive):
            pass
        best = min(best, time.process_time() - begun)
    return round(1e3 * best, 2)


if __name__ == "__main__":
    main()
