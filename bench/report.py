"""A run of the benchmark for readers: a table (medians, extremes, ratios) and a plot, from the raw outcomes.

.venv/bin/python bench/report.py bench/results/two-inputs.json      # writes .md and .png beside it
"""

import json
import sys
from collections.abc import Callable, Sequence
from math import isnan
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.ticker import LogLocator
from outcome import WARM_UP_BATCHES, Outcome, read
from picture import pyplot, save
from systems import OURS, SYSTEMS

Runs = dict[str, list[Outcome]]
HEADINGS = (
    "system", "rows/s after warm-up: median (min to max)", "StreamJoin is faster by", "rows/s, whole query",
    "first result (s)", "peak memory (MB)", "state in memory (bytes a row)", "left on disk (bytes a row)", "results",
)  # fmt: skip


def write(raw: Path) -> Path:
    """The report of one file of raw outcomes; returns the path of the table."""
    kept = json.loads(raw.read_text())
    runs: Runs = {}
    for printed in kept["outcomes"]:
        runs.setdefault(printed["system"], []).append(read(printed))
    runs = {system: runs[system] for system in SYSTEMS if system in runs}
    table = raw.with_suffix(".md")
    table.write_text("\n".join(page(kept, runs, raw.with_suffix(".png").name)) + "\n")
    if runs:
        plot(runs, raw.with_suffix(".png"))
    return table


def page(kept: dict[str, Any], runs: Runs, picture: str) -> list[str]:
    """The lines of the table's file."""
    context = kept["context"]
    libraries = ", ".join(f"{name} {number}" for name, number in context["libraries"].items())
    machine = (
        f"{context['cores']} cores ({context['processor']}), {context['memory_gb']} GB, {context['system']}"
    )
    return [
        (
            f"# Join of two streams: {2 * context['rows_per_input']:,} rows, {context['keys']:,} keys, full"
            " history"
        ),
        "",
        f"{context['date']}: {machine}, {libraries}.",
        f"{context['rows_per_batch']:,} rows a batch, runs of each: {context['repetitions']}, interleaved.",
        f"Load of the machine before: {context['load_before']}.",
        "",
        f"| {' | '.join(HEADINGS)} |",
        f"|---{'|---:' * (len(HEADINGS) - 1)}|",
        *[row(system, runs) for system in runs],
        "",
        *[f"- **{failure['system']} failed**: {failure['reason']}" for failure in kept["failures"]],
        *[f"- {system}: {outcomes[0].notes}" for system, outcomes in runs.items() if outcomes[0].notes],
        f"- Warm-up: the first {WARM_UP_BATCHES} batches' worth of rows, for every system.",
        "- How each figure is taken: [README](../README.md).",
        "",
        *([f"![Rates]({picture})"] if runs else []),
    ]


def row(system: str, runs: Runs) -> str:
    """One system's line of the table."""
    outcomes = runs[system]
    rates = [one.rate for one in outcomes]
    ratio = middle(runs[OURS], rate) / median(rates) if OURS in runs else None
    cells = (
        system,
        f"**{median(rates):,.0f}** ({min(rates):,.0f} to {max(rates):,.0f})",
        "-" if ratio is None or system == OURS else f"{ratio:.1f}",
        number(middle(outcomes, lambda one: one.rows / one.seconds_total)),
        number(middle(outcomes, lambda one: one.seconds_first_result), 1),
        number(middle(outcomes, lambda one: one.peak_rss_mb)),
        number(middle(outcomes, lambda one: a_row(one.state_mb, one))),
        number(middle(outcomes, lambda one: a_row(one.disk_mb, one))),
        number(outcomes[0].results),
    )
    return f"| {' | '.join(cells)} |"


def a_row(megabytes: float | None, one: Outcome) -> float | None:
    """A size as bytes for each row of both inputs, all of which are kept."""
    return None if megabytes is None else megabytes * 1e6 / one.rows


def rate(one: Outcome) -> float:
    """Rows per second after the warm-up."""
    return one.rate


def middle(outcomes: Sequence[Outcome], figure: Callable[[Outcome], float | None]) -> float:
    """The median of a figure over the runs that have it; NaN where none has."""
    known = [value for value in map(figure, outcomes) if value is not None]
    return median(known) if known else float("nan")


def number(value: float, digits: int = 0) -> str:
    """A figure for a table."""
    return "-" if isnan(value) else f"{value:,.{digits}f}"


def plot(runs: Runs, path: Path) -> None:
    """Left: the rates, every run a dot. Right: the rate of each batch as the state grows (median of runs)."""
    figure, (bars, lines) = pyplot.subplots(1, 2, figsize=(11, 4), width_ratios=(3, 4))
    for place, (system, outcomes) in enumerate(runs.items()):
        colour = f"C{list(SYSTEMS).index(system)}"
        bars.barh(place, middle(outcomes, rate) / 1e3, color=colour, alpha=0.6)
        bars.plot([one.rate / 1e3 for one in outcomes], [place] * len(outcomes), "k.", markersize=5)
        batches = list(zip(*(one.batches for one in outcomes), strict=False))
        speeds = [median(batch.rows / batch.seconds / 1e3 for batch in same) for same in batches]
        lines.plot(range(1, len(speeds) + 1), speeds, "o-", color=colour, label=system, markersize=4)
    bars.set_yticks(range(len(runs)), list(runs))
    bars.invert_yaxis()
    bars.set_xlabel("thousand rows/s after warm-up (bar: median)")
    lines.axvspan(0.5, WARM_UP_BATCHES + 0.5, color="0.92", label="warm-up")
    lines.set_yscale("log")
    lines.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    lines.yaxis.set_major_formatter("{x:g}")
    lines.yaxis.set_minor_formatter("")
    lines.set_xlabel("batch")
    lines.set_ylabel("thousand rows/s")
    lines.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    save(figure, path, dpi=130)


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
