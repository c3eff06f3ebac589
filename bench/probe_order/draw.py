"""Raw runs as tables and a plot: `python bench/probe_order/draw.py [RAW]` writes .md and .png beside them."""

import json
import sys
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from statistics import mean, median
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

sys.path.append(str(Path(__file__).parents[2]))
from bench.probe_order.data import KINDS

HERE = Path(__file__).parent / "results"
Runs = list[dict[str, Any]]


def main() -> None:
    raw = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "probe_order.json"
    found: dict[str, Any] = json.loads(raw.read_text())
    parts = {
        **dict.fromkeys(KINDS, _rules),
        "cycles": _lengths,
        "history": _lengths,
        "books": _books,
        "merge": _merge,
    }
    lines = [line for part, write in parts.items() if part in found for line in write(found[part]["runs"])]
    raw.with_suffix(".md").write_text("\n".join(lines).lstrip() + "\n")
    _plot({kind: found[kind]["runs"] for kind in KINDS if kind in found}, raw.with_suffix(".png"))


def by_rule(runs: Runs, field: str) -> dict[str, list[float]]:
    """Of each rule, over the initial orders; the medians of seconds."""
    rules = dict.fromkeys(run["rule"] for run in runs)
    return {rule: [_middle(run[field]) for run in runs if run["rule"] == rule] for rule in rules}


def _middle(value: float | list[float]) -> float:
    return median(value) if isinstance(value, list) else value


def noise(runs: Runs) -> float:
    """Half of the distance of extremes, of the median: the mean over all that ran more than once."""
    repeated = [run["cpu"] for run in runs if len(run["cpu"]) > 1]
    return mean((max(c) - min(c)) / 2 / median(c) for c in repeated) if repeated else float("nan")


def _told(runs: Runs) -> str:
    """How the runs of a part were made."""
    counts = sorted({len(run["cpu"]) for run in runs})
    spread = noise(runs)
    times = " or ".join(f"{count} run{'s' * (count > 1)}" for count in counts)
    return f"Scale {runs[0]['scale']:g}, {times} of each" + (
        "." if isnan(spread) else f", medians; noise (half of what lies between extremes): {spread:.1%}."
    )


def _spent(runs: Runs) -> Iterator[str]:
    """On what the last run of each case of dpPick spent its CPU time, and how many tuples are results."""
    some = [run for run in runs if run["rule"] == "auto" and "probing" in run]
    if some:
        probing, columns = (mean(run[n] / run["cpu"][-1] for run in some) for n in ("probing", "columns"))
        results = mean(run["results"] / run["tuples"] for run in some)
        yield f"CPU time with dpPick: {probing:.0%} probes, {columns:.0%} columns of results."
        yield f"Of the tuples that its probes find, {results:.0%} are results, which every order finds."


def _rules(runs: Runs) -> Iterator[str]:
    cpu, tuples, least = by_rule(runs, "cpu"), by_rule(runs, "tuples"), noise(runs)
    yield from (f"\n## Initial orders: {runs[0]['kind']}\n", _told(runs), *_spent(runs), "")
    won = ("dpPick takes", "round by round", "is faster in", "beyond noise in")
    yield f"| rule | CPU s, mean | least | most | {' | '.join(won)} | tuples, mean | most |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for rule, seconds in cpu.items():
        ratios = [ours / theirs for ours, theirs in zip(cpu["auto"], seconds, strict=True)]
        wins = [
            f"{mean(ratios) - 1:+.1%}",
            _by_round(runs, rule),
            f"{sum(r < 1 for r in ratios)} of {len(ratios)}",
            "?"
            if isnan(least)
            else f"{sum(r < 1 - least for r in ratios)}, slower in {sum(r > 1 + least for r in ratios)}",
        ]
        yield (
            f"| {rule} | {mean(seconds):.2f} | {min(seconds):.2f} | {max(seconds):.2f}"
            f" | {' | '.join([''] * 4 if rule == 'auto' else wins)}"
            f" | {mean(tuples[rule]):,.0f} | {max(tuples[rule]):,.0f} |"
        )


def _by_round(runs: Runs, rule: str) -> str:
    """What dpPick takes of a rule's time in the round in which it takes least, and most: a round's runs are near in time."""
    ours, theirs = (
        {run["order"]: run["cpu"] for run in runs if run["rule"] == one} for one in ("auto", rule)
    )
    rounds = range(min(len(run["cpu"]) for run in runs))
    taken = [mean(ours[order][at] / theirs[order][at] for order in theirs) - 1 for at in rounds]
    return f"{min(taken):+.1%} to {max(taken):+.1%}" if len(taken) > 1 else ""


def _lengths(runs: Runs) -> Iterator[str]:
    """Of a cycle, T, or of the history, L."""
    what = "history" if any("history" in run for run in runs) else "cycle"
    yield f"\n## {'Cycles of the history, L' if what == 'history' else 'Batches of a cycle, T'}\n"
    yield from (
        _told(runs),
        "",
        "| stream | initial order | rule | length | CPU s | tuples |",
        "|---|---|---|---|---|---|",
    )
    for run in runs:
        length = "" if run["rule"] == "fixed" else run.get(what, run["cycle"])
        yield (
            f"| {run['kind']} | {run['order']} | {run['rule']} | {length} | {_middle(run['cpu']):.2f}"
            f" | {run['tuples']:,} |"
        )


def _books(runs: Runs) -> Iterator[str]:
    yield "\n## Bookkeeping\n"
    yield "| rows of a batch | batches | CPU ms a batch | of these for the books | share |"
    yield "|---|---|---|---|---|"
    for run in runs:
        yield (
            f"| {run['rows']:,} | {run['batches']} | {1000 * run['batch']:.1f} | {1000 * run['books']:.2f}"
            f" | {run['share']:.2%} ± {run['error']:.2%} |"
        )


def _merge(runs: Runs) -> Iterator[str]:
    yield "\n## One join or a chain\n"
    columns = ["inputs", "rows of a key in each", "keys in all", "arrival", "batches"]
    columns += ["n-way: CPU s", "chain: CPU s", "of the n-way", "n-way: MB", "chain: MB"]
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for run in runs:
        yield (
            f"| {run['inputs']} | {run['matches']} | {run['found']:.0%} | {run['arrival']} | {run['batches']}"
            f" | {run['merged s']:.2f} | {run['chain s']:.2f} | {run['chain s'] / run['merged s']:.2f}"
            f" | {run['merged MB']:.1f} | {run['chain MB']:.1f} |"
        )


def _plot(found: dict[str, Runs], path: Path) -> None:
    """Above: tuples by initial order. Below: CPU seconds, with the extremes."""
    figure, axes = plt.subplots(
        2, max(len(found), 1), figsize=(6 * max(len(found), 1), 9), squeeze=False, constrained_layout=True
    )
    for (kind, runs), above, below in zip(found.items(), *axes, strict=True):
        for rule, tuples in by_rule(runs, "tuples").items():
            some = [run for run in runs if run["rule"] == rule]
            names, seconds = [run["order"] for run in some], [_middle(run["cpu"]) for run in some]
            reach = [[s - min(r["cpu"]), max(r["cpu"]) - s] for s, r in zip(seconds, some, strict=True)]
            line = "o-" if rule in ("auto", "fixed") else ".:"
            above.plot(names, tuples, line, label=rule)
            below.errorbar(names, seconds, list(zip(*reach, strict=True)), fmt=line, label=rule, capsize=2)
        for axis, title in ((above, f"{kind}: tuples that probes find"), (below, f"{kind}: CPU seconds")):
            axis.tick_params(axis="x", rotation=70)
            axis.set(title=title, ylim=(0, None))
        above.legend(ncols=2, fontsize=7)
    figure.savefig(path, dpi=80)
    plt.close(figure)


if __name__ == "__main__":
    main()
