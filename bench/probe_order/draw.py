"""results/probe_order.json as tables and a plot: `python bench/probe_order/draw.py` writes
results/probe_order.md and .png.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent / "results"
Runs = list[dict[str, Any]]


def main() -> None:
    found: dict[str, Any] = json.loads((HERE / "probe_order.json").read_text())
    parts = {"orders": _orders, "flip": _flip, "cycles": _cycles, "books": _books, "merge": _merge}
    lines = [line for part, write in parts.items() if part in found for line in write(found[part]["runs"])]
    (HERE / "probe_order.md").write_text("\n".join(lines) + "\n")
    if "orders" in found:
        _plot(found)


def by_rule(runs: Runs, field: str) -> dict[str, list[float]]:
    """Of each rule, over the initial orders."""
    rules = dict.fromkeys(run["rule"] for run in runs)
    return {rule: [run[field] for run in runs if run["rule"] == rule] for rule in rules}


def _orders(runs: Runs) -> Iterator[str]:
    yield "## Initial orders\n"
    yield from _rules(runs, "dpPick is faster in")


def _flip(runs: Runs) -> Iterator[str]:
    yield "\n## A stream that flips\n"
    yield from _rules(runs, "dpPick is faster in")


def _rules(runs: Runs, title: str) -> Iterator[str]:
    cpu, tuples = by_rule(runs, "cpu"), by_rule(runs, "tuples")
    yield f"| rule | CPU s, mean | least | most | {title} | tuples, mean | most |"
    yield "|---|---|---|---|---|---|---|"
    for rule, seconds in cpu.items():
        faster = sum(a < b for a, b in zip(cpu["auto"], seconds))
        wins = "" if rule == "auto" else f"{faster} of {len(seconds)}"
        yield (
            f"| {rule} | {mean(seconds):.2f} | {min(seconds):.2f} | {max(seconds):.2f} | {wins}"
            f" | {mean(tuples[rule]):,.0f} | {max(tuples[rule]):,} |"
        )


def _cycles(runs: Runs) -> Iterator[str]:
    yield "\n## Batches in a cycle\n"
    yield "| stream | T | CPU s | tuples |"
    yield "|---|---|---|---|"
    for run in runs:
        yield f"| {run['kind']} | {run['cycle']} | {run['cpu']:.2f} | {run['tuples']:,} |"


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


def _plot(found: dict[str, Any]) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(15, 5), constrained_layout=True, width_ratios=(3, 1))
    for rule, seconds in by_rule(found["orders"]["runs"], "tuples").items():
        names = [run["order"] for run in found["orders"]["runs"] if run["rule"] == rule]
        left.plot(names, seconds, "o-" if rule in ("auto", "fixed") else ".:", label=rule)
    left.tick_params(axis="x", rotation=70)
    left.set(title="tuples that probes find, by initial order", ylim=(0, None))
    left.legend(ncols=4)
    if "flip" in found:
        bars = {rule: mean(values) for rule, values in by_rule(found["flip"]["runs"], "tuples").items()}
        right.bar(list(bars), list(bars.values()))
        right.set(title="a stream that flips: tuples, mean of 4 orders")
    figure.savefig(HERE / "probe_order.png", dpi=100)


if __name__ == "__main__":
    main()
