"""results/inequality.json as plots: `python bench/inequality/draw.py` writes results/inequality.png."""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent / "results"


def main() -> None:
    results: dict[str, Any] = json.loads((HERE / "inequality.json").read_text())
    figure, axes = plt.subplots(2, 2, figsize=(15, 9.5), constrained_layout=True)
    _window(axes[0, 0], results["window"], "count")
    _window(axes[0, 1], results["window"], "pairs")
    _streams(axes[1, 0], results["q3"])
    _latency(axes[1, 1], results["q3"])
    figure.savefig(HERE / "inequality.png", dpi=110)


def _window(axis: plt.Axes, found: dict[str, Any], what: str) -> None:
    cases = [k for k in found if isinstance(found[k], dict)]
    systems = [k for k in found[cases[0]] if k != "match rate"]
    for at, system in enumerate(systems):
        places = np.arange(len(cases)) + at / (len(systems) + 1)
        axis.bar(places, [found[c][system][what] for c in cases], 1 / (len(systems) + 1), label=system)
    axis.set_xticks(np.arange(len(cases)) + 0.4, cases)
    axis.set(yscale="log", ylabel="probes/s, one core")
    title = {"count": "matches counted", "pairs": "pairs made"}[what]
    axis.set_title(f"Window of {found['rows']:,} rows, batches of {found['batch']:,}: {title}")
    axis.legend(fontsize=7, ncols=2)


def _streams(axis: plt.Axes, found: dict[str, Any]) -> None:
    cases = {k: f for k, f in found.items() if isinstance(f, dict)}
    axis.barh(list(cases), [f["rows/s"] for f in cases.values()])
    axis.axvline(6167, color="black", linestyle=":", label="the paper's best mean, 20 processing elements")
    axis.set(xscale="log", xlabel="rows/s, two processes", title="Q3, window 1 M, slide 100 000, counted")
    axis.tick_params("y", labelsize=7)
    axis.invert_yaxis()
    axis.legend(fontsize=7)


def _latency(axis: plt.Axes, found: dict[str, Any]) -> None:
    for name, case in found.items():
        if "trip1 and" not in name and "δ" in name:
            sorted_ms = np.sort(case["latencies ms"])
            axis.plot(sorted_ms, np.arange(1, len(sorted_ms) + 1) / len(sorted_ms), label=name)
    axis.set(
        xscale="log", xlabel="ms", ylabel="share of the batches", title="Latency of a batch (figure 10c)"
    )
    axis.legend(fontsize=7)


if __name__ == "__main__":
    main()
