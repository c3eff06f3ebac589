"""results/inequality.json as plots and tables: `python bench/inequality/draw.py` writes
results/inequality.png and .md.
"""

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
    (HERE / "inequality.md").write_text("\n\n".join(_tables(results)) + "\n")


def _tables(results: dict[str, Any]) -> list[str]:
    """Markdown, a table a part."""
    cases = {k: v for k, v in results["window"].items() if isinstance(v, dict)}
    systems = [k for k in next(iter(cases.values())) if k != "match rate"]
    thousands = [
        [
            name,
            *(f"{cases[c][name]['count'] / 1e3:,.1f} / {cases[c][name]['pairs'] / 1e3:,.1f}" for c in cases),
        ]
        for name in systems
    ]
    streams = [
        [
            name,
            f"{case['rows/s']:,.0f}",
            f"{case['match rate']:.2%}",
            *(f"{case['latency ms'][p]:,.1f}" for p in ("p50", "p75", "p95", "max")),
            f"{case['longest drop ms']:.2f}",
        ]
        for name, case in results["q3"].items()
        if isinstance(case, dict)
    ]
    seals = [
        [f"{int(rows):,}", *(f"{x:,.2f}" for x in case.values())]
        for rows, case in results["seal"].items()
        if isinstance(case, dict)
    ]
    bands = [
        [name, f"{case['count'] / 1e6:.2f}", f"{case['pairs'] / 1e6:.2f}"]
        for name, case in results["band"].items()
        if isinstance(case, dict)
    ]
    return [
        _table(["1 000 probes/s, count / pairs", *(f"{c}" for c in cases)], thousands),
        _table(["Q3", "rows/s", "match rate", "p50 ms", "p75", "p95", "max", "longest drop ms"], streams),
        _table(["rows", *results["seal"]["100000"]], seals),
        _table([f"band, {results['band']['rows']:,} rows", "count, M probes/s", "pairs, M probes/s"], bands),
    ]


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _window(axis: plt.Axes, found: dict[str, Any], what: str) -> None:
    cases = [k for k in found if isinstance(found[k], dict)]
    systems = [k for k in found[cases[0]] if k != "match rate"]
    for at, system in enumerate(systems):
        places = np.arange(len(cases)) + at / (len(systems) + 1)
        axis.bar(places, [found[c][system][what] for c in cases], 1 / (len(systems) + 1), label=system)
    axis.set_xticks(np.arange(len(cases)) + 0.4, [c.replace(" ", "\n") for c in cases], fontsize=8)
    axis.set(yscale="log", ylabel="probes/s, one core", ylim=(500, 2e7))  # room for the legend
    title = {"count": "matches counted", "pairs": "pairs made"}[what]
    axis.set_title(f"Window of {found['rows']:,} rows, batches of {found['batch']:,}: {title}")
    axis.legend(fontsize=7, ncols=3, loc="upper center")


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
