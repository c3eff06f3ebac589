"""Draws figure 12 from what `tests/cluster/test_scaling.py` writes: rate, load and executors, as the paper
does. Beside it a table: how long batches took, and what lies between a decision and the first task of each
executor that it brought.

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


def table(report: dict[str, Any]) -> str:
    """As Markdown; seconds."""
    decided = next(at for at, verdict, *_ in report["changes"] if verdict == "ScaleOut")
    lines = [
        "| batches | seconds |",
        "|---|---|",
        *(f"| {what} | {report[f'{what}, s']:.1f} |" for what in _BATCHES),
        f"| the slowest | {', '.join(f'{s:.1f}' for s in report['slowest batches, s'][:5])} |",
        "",
        f"Seconds since the decision to scale out, at {decided:.0f} s:",
        "",
        "| executor | pod made | container runs | takes tasks: warm | first task of a unit |",
        "|---|---|---|---|---|",
    ]
    for executor, life in report["executors, s"].items():
        if life["there"] > decided:
            parts = [
                _of(report["pods made, s"], executor),
                _of(report["containers run, s"], executor),
                life["there"],
                life.get("worked"),
            ]
            said = (f"{at - decided:.0f}" if at is not None else "" for at in parts)
            lines.append(f"| {executor} | {' | '.join(said)} |")
    return "\n".join(lines)


_BATCHES = ("p95 of batches while executors change", "p95 of batches at rest", "median of batches at rest")


def _of(pods: dict[str, float], executor: str) -> float | None:
    return next((at for name, at in pods.items() if name.endswith(f"-exec-{executor}")), None)


if __name__ == "__main__":
    report, picture = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    draw(report, picture)
    picture.with_suffix(".md").write_text(f"# Figure 12: executors follow the load\n\n{table(report)}\n")
