"""Draws figure 12 from what `tests/cluster/test_scaling.py` writes: rate, load and executors, as the paper does.

STREAMJOIN_FIGURE=out.json pytest tests/cluster/test_scaling.py; python bench/scaling.py out.json out.png
"""

import json
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


def draw(report: dict[str, Any], file: Path) -> None:
    figure = Figure(figsize=(8, 7), layout="constrained")
    rate, load, executors = figure.subplots(3, 1, sharex=True)
    begin, times, rates = 0.0, [], []
    for seconds, rows in report["plan"]:
        times += [begin, begin + seconds]
        rates += [rows, rows]
        begin += seconds
    rate.plot(times, rates, color="tab:green")
    rate.set_ylabel("rows/s of each input")
    known = [(at, tau) for at, tau, *_ in report["seen"] if tau is not None]
    load.plot(*zip(*known, strict=True), drawstyle="steps-post")
    for level in (0.8, 0.6, 0.3):
        load.axhline(level, color="grey", linestyle=":" if level == 0.6 else "--", linewidth=0.8)
    load.set_ylabel("memory load τ")
    executors.step(
        [at for at, *_ in report["seen"]],
        [w for *_, w, _ in report["seen"]],
        "--",
        where="post",
        label="wanted",
    )
    executors.step(
        [at for at, *_ in report["seen"]], [p for *_, p in report["seen"]], where="post", label="pods"
    )
    for at, verdict, wanted, _ in report["changes"]:
        executors.annotate(f"{verdict} {wanted}", (at, wanted), fontsize=8)
    executors.set(xlabel="seconds", ylabel="executors", ylim=(0, None))
    executors.yaxis.get_major_locator().set_params(integer=True)
    executors.legend()
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
