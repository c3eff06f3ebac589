"""Tables and plots of raw outcomes: `python bench/nway/draw.py bench/nway/results/nway.json` writes .md and
.png beside it.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from math import isnan
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
from machine import told
from outcome import Batch, Outcome, read
from picture import pyplot, save
from speed import OURS, SYSTEMS, rate

Raw = Mapping[str, Any]
HEADINGS = (
    "system", "rows/s after warm-up", "StreamJoin is faster by", "seconds, whole query", "results/s", "results",
    "peak memory (MB)", "state (MB)", "left on disk (MB)",
)  # fmt: skip


def write(raw: Path) -> Path:
    """The report of a file of raw outcomes; returns the path of the tables."""
    known = json.loads(raw.read_text())
    lines = ["# Joins of four inputs", ""]
    for part, tell in (
        ("convert", _conversions),
        ("answer", _answers),
        ("speed", _speeds),
        ("memory", _memory),
    ):
        if part in known:
            lines += tell(
                {n: _middle(runs) for n, runs in known[part]["outcomes"].items()},
                raw.with_suffix(f".{part}.png"),
            )
            lines += ["", told(known[part]["machine"]), ""]
    table = raw.with_suffix(".md")
    table.write_text("\n".join(lines).rstrip() + "\n")
    return table


def _middle(runs: list[Raw]) -> Raw:
    """The run of median speed, with the rates of all; one that failed before any that did not."""
    paces = sorted(map(_fast, runs))
    ranked = sorted(runs, key=lambda run: (not _failed(run), _fast(run)))
    failed = sum(map(_failed, runs))
    chosen = ranked[0] if failed else ranked[len(ranked) // 2]
    spread = {"least": paces[0], "most": paces[-1], "times": len(runs), "failed": failed}
    return chosen | (spread if "batches" in chosen or failed else {})


def _failed(run: Raw) -> bool:
    return bool(run.get("failure") or run.get("reason"))


def _fast(run: Raw) -> float:
    """Rows a second, of parts that are repeated."""
    if _failed(run) or not run.get("batches"):
        return 0.0
    found = _pace(run) if "figure" in run else rate([Batch(**batch) for batch in run["batches"]])
    return 0.0 if isnan(found) else found


def _conversions(outcomes: Raw, picture: Path) -> Iterator[str]:
    yield from ("## Trees of joins in TPC-H, and what runs them", "")
    yield "| query | inputs of the trees found | of the joins that run, as stages | as paths |"
    yield "|---|---|---|---|"
    for name, found in outcomes.items():
        cells = (", ".join(map(str, found[what])) for what in ("groups", "runs", "paths"))
        yield f"| {name} | {' | '.join(cells)} |"
    if "q3" in outcomes:
        for when in ("before", "after"):
            yield from ("", f"Q3 {when} (figure 8):", "", *(f"    {line}" for line in outcomes["q3"][when]))


def _answers(outcomes: Raw, picture: Path) -> Iterator[str]:
    yield from (f"## The answer at {next(iter(outcomes))}, row by row beside DuckDB's", "")
    yield from ("| system | rows | missing | wrong |", "|---|---:|---:|---:|")
    for name, found in next(iter(outcomes.values())).items():
        yield f"| {name} | {found['rows']:,} | {found['missing']} | {found['wrong']} |"


def _speeds(outcomes: Raw, picture: Path) -> Iterator[str]:
    told = ("least", "most", "times", "failed", "ended", "scale")
    spread = {
        n: f" ({o['least']:,.0f} to {o['most']:,.0f}, {o['times']} runs)" * (o["times"] > 1)
        for n, o in outcomes.items()
    }
    ran = {
        n: read({k: v for k, v in o.items() if k not in told})
        for n, o in ((n, outcomes[n]) for n in SYSTEMS if n in outcomes)
        if o["ended"]
    }
    scale = next(iter(outcomes.values()))["scale"]
    yield from (f"## The query at scale {scale}", "", f"| {' | '.join(HEADINGS)} |")
    yield f"|---{'|---:' * (len(HEADINGS) - 1)}|"
    ours = ran.get(OURS)
    yield from (_row(name, one, ours, spread[name]) for name, one in ran.items())
    yield ""
    for name, one in outcomes.items():
        if not one["ended"]:
            yield f"- **{name} failed**: {one['reason']}"
        elif one["stopped"]:
            yield (
                f"- {name} was stopped after {one['seconds_total']:.0f} s; the ratio is that of the batches"
                " it had done."
            )
    yield from ("", f"![Speed]({picture.name})")
    _draw_speeds(ran, picture)


def _row(name: str, one: Outcome, ours: Outcome | None, spread: str) -> str:
    done = len(one.batches) if one.stopped else None
    ratio = rate(ours.batches, done) / rate(one.batches, done) if ours and one is not ours else float("nan")
    cells = (
        name,
        f"**{rate(one.batches):,.0f}**{spread}",
        "-" if isnan(ratio) else f"{ratio:.1f}",
        f"{one.seconds_total:,.0f}" + (" (stopped)" if one.stopped else ""),
        f"{one.results / one.seconds_total:,.0f}",
        f"{one.results:,}",
        *("-" if mb is None else f"{mb:,.0f}" for mb in (one.peak_rss_mb, one.state_mb, one.disk_mb)),
    )
    return f"| {' | '.join(cells)} |"


def _draw_speeds(ran: Mapping[str, Outcome], path: Path) -> None:
    """Left: the rates. Right: rows joined by when."""
    figure, (bars, lines) = pyplot.subplots(1, 2, figsize=(11, 4), width_ratios=(3, 4))
    for place, (name, one) in enumerate(ran.items()):
        colour = f"C{list(SYSTEMS).index(name)}"
        bars.barh(place, rate(one.batches) / 1e3, color=colour, alpha=0.7)
        seconds, rows = _sums([(b.seconds, b.rows) for b in one.batches])
        lines.plot(seconds, [n / 1e6 for n in rows], "o-", color=colour, label=name, markersize=3)
    bars.set_yticks(range(len(ran)), list(ran))
    bars.invert_yaxis()
    bars.set_xlabel("thousand rows/s after warm-up")
    lines.set_xlabel("seconds of batches")
    lines.set_ylabel("million rows joined")
    lines.legend(fontsize=8, frameon=False)
    save(figure, path)


def _sums(pairs: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    found: tuple[list[float], list[float]] = ([0.0], [0.0])
    for pair in pairs:
        for sums, value in zip(found, pair, strict=True):
            sums.append(sums[-1] + value)
    return found


def _memory(outcomes: Raw, picture: Path) -> Iterator[str]:
    yield from ("## State larger than memory", "")
    heads = (
        "run",
        "results",
        "of",
        "rows/s",
        "seconds",
        "held at most (MB)",
        "over the floor (MB)",
        "state (MB)",
        "ended",
    )
    yield from (f"| {' | '.join(heads)} |", f"|---{'|---:' * (len(heads) - 2)}|---|")
    floor = next((o["held_peak_mb"] for o in outcomes.values() if o["figure"] == "floor"), float("nan"))
    for name, one in outcomes.items():
        cells = (
            name,
            f"{one['results']:,}",
            f"{one['results_all']:,}",
            f"{_pace(one):,.0f}" + f" ({one['least']:,.0f} to {one['most']:,.0f})" * (one["times"] > 1),
            "-" if one["seconds"] is None else f"{one['seconds']:,.0f}",
            f"{one['held_peak_mb']:,.0f}",
            f"{one['held_peak_mb'] - floor:,.0f}",
            "-" if one["state_mb"] is None else f"{one['state_mb']:,.0f}",
            _end(one),
        )
        yield f"| {' | '.join(cells)} |"
    yield from ("", f"![Memory]({picture.name})")
    _draw_memory(outcomes, picture)


def _end(one: Raw) -> str:
    if one["failure"]:
        times = f"{one['failed']} of {one['times']} times " * (one["times"] > 1)
        return f"died {times}({one['killed']} killed for memory): {one['failure']}"
    return "stopped" if one["stopped"] else "complete" if one["complete"] else "WRONG"


def _pace(one: Raw) -> float:
    """Rows a second from the first batch's end to the last's."""
    batches = one["batches"]
    if len(batches) < 2:
        return float("nan")
    return sum(rows for _, rows, _ in batches[1:]) / (batches[-1][0] - batches[0][0])


def _draw_memory(outcomes: Raw, path: Path) -> None:
    """Figures 5 (results and memory by time), 6 and 7 (time by memory)."""
    figure, ((five, held), (six, seven)) = pyplot.subplots(2, 2, figsize=(11, 8))
    for one in (o for o in outcomes.values() if o["figure"] == "figure 5"):
        label = one["name"].partition(": ")[2].partition(", state")[0]
        times = [at for at, _, _ in one["batches"]]
        _, results = _sums([(0, n) for _, _, n in one["batches"]])
        style = ":" if one["join"] == "flink" else "-"
        (line,) = five.plot(times, [100 * n / one["results_all"] for n in results[1:]], style, label=label)
        if one["failure"] and times:
            five.plot(
                times[-1:],
                [100 * results[-1] / one["results_all"]],
                "x",
                color=line.get_color(),
                markersize=10,
            )
        held.plot(*zip(*one["held"], strict=True), style, color=line.get_color(), label=label)
        held.axhline(one["cap_mb"], color="0.6", linestyle="--")
    five.set_ylabel("results, % of all")
    five.set_title("Figure 5: complete? (dotted: Flink; x: died, or stood still)", fontsize=9)
    held.set_ylabel("anonymous and shared memory, MB")
    held.set_title("held; dashed: the cap, page cache included", fontsize=9)
    for axes in (five, held):
        axes.set_xlabel("seconds")
        axes.legend(fontsize=7, frameon=False)
    six_runs = [o for o in outcomes.values() if o["figure"] == "figure 6" and not o["failure"]]
    for join, of_key in sorted({(o["join"], o["of_key"]) for o in six_runs}):
        runs = [o for o in six_runs if (o["join"], o["of_key"]) == (join, of_key)]
        paces = [_pace(o) / 1e3 for o in runs]
        six.errorbar(
            [o["cap_mb"] for o in runs],
            paces,
            [
                [max(p - o["least"] / 1e3, 0) for p, o in zip(paces, runs, strict=True)],
                [max(o["most"] / 1e3 - p, 0) for p, o in zip(paces, runs, strict=True)],
            ],
            fmt="o-",
            capsize=2,
            label=f"{join}, {of_key:g} rows of a key",
        )
    six.set_visible(bool(six_runs))
    six.set_xlabel("cap, MB")
    six.set_ylabel("thousand rows/s")
    six.set_title("Figure 6: speed by the cap", fontsize=9)
    if six_runs:
        six.legend(fontsize=7, frameon=False)
    runs = sorted((o for o in outcomes.values() if o["figure"] == "figure 7"), key=lambda o: o["memory_mb"])
    seven.plot([o["memory_mb"] for o in runs], [_pace(o) / 1e3 for o in runs], "o-")
    seven.set_visible(bool(runs))
    seven.set_xlabel("join.memory, MB")
    seven.set_ylabel("thousand rows/s")
    seven.set_title("Figure 7: speed by join.memory", fontsize=9)
    save(figure, path)


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
