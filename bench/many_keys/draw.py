"""Tables of raw outcomes: `python bench/many_keys/draw.py bench/many_keys/results/many_keys.json` writes .md beside it."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
from machine import told
from report import number
from suite import Runs, median, rate

HEADINGS = (
    "system", "rows/s: median (least to most)", "of our best", "seconds", "results", "state, MB", "on disk, MB",
    "peak memory, MB", "inputs of its joins",
)  # fmt: skip
OTHERS = ("flink", "spark")


def write(raw: Path) -> Path:
    """The report of a file of raw outcomes; returns the path of the tables."""
    known = json.loads(raw.read_text())
    lines = ["# Joins with several keys", "", told(known["machine"]), ""]
    lines += [f"TPC-H at scale {known['scale']:g}, TPC-DS at {10 * known['scale']:g}.", ""]
    lines += aims(known["queries"])
    for query, runs in known["queries"].items():
        lines += ["", f"## {query}", "", *table(runs)]
    path = raw.with_suffix(".md")
    path.write_text("\n".join(lines) + "\n")
    return path


def aims(queries: Mapping[str, Runs]) -> Iterator[str]:
    """What the planner chose, beside the best that was tried by hand and the best of each peer."""
    heads = (
        "query",
        "rows/s",
        "of the best plan",
        "that is",
        "times Flink's best",
        "times Spark's best",
        "state, of the text's",
    )
    yield _line(heads)
    yield "|---|---:|---:|---|---:|---:|---:|"
    for query, runs in queries.items():
        ended = {name: rate(some) for name, all_ in runs.items() if (some := whole(all_))}
        if "auto" not in ended:
            continue
        ours = {name: value for name, value in ended.items() if not name.startswith(OTHERS)}
        best = max(ours, key=lambda name: ours[name])
        peers = [max((v for n, v in ended.items() if n.startswith(peer)), default=None) for peer in OTHERS]
        times = ["-" if peer is None else f"{ended['auto'] / peer:.1f}" for peer in peers]
        share = [state(runs[name]) for name in ("auto", "text") if name in ended]
        cells = [query, number(ended["auto"]), f"{ended['auto'] / ours[best]:.0%}", best, *times]
        yield _line([*cells, f"{share[0] / share[1]:.2f}" if len(share) == 2 and all(share) else "-"])


def table(runs: Runs) -> Iterator[str]:
    """A line for each system, ours first."""
    yield _line(HEADINGS)
    yield f"|---{'|---:' * (len(HEADINGS) - 2)}|---|"
    ours = [rate(whole(r)) for name, r in runs.items() if not name.startswith(OTHERS) and whole(r)]
    for name in sorted(runs, key=lambda name: name.startswith(OTHERS)):
        ended = whole(runs[name])
        if not ended:
            yield _line([name, str(runs[name][0].get("reason", "stopped")), *["-"] * (len(HEADINGS) - 2)])
            continue
        rates = [run["rows"] / run["seconds_total"] for run in ended]
        yield _line(
            [
                name,
                f"**{rate(ended):,.0f}**"
                + f" ({min(rates):,.0f} to {max(rates):,.0f}, {len(rates)} runs)" * (len(rates) > 1)
                + "".join(f"; not counted: {run['reason']}" for run in runs[name] if "reason" in run),
                f"{rate(ended) / max(ours):.0%}" if ours else "-",
                _mid(ended, "seconds_total", digits=1),
                number(ended[0]["results"]),
                number(state(ended)),
                _mid(ended, "disk_mb"),
                _mid(ended, "peak_rss_mb"),
                ", ".join(map(str, ended[0]["extra"].get("joins", []))) or "-",
            ]
        )


def whole(runs: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Runs that came to their end with the right answer."""
    return [run for run in runs if "reason" not in run and not run.get("stopped")]


def state(runs: list[Mapping[str, Any]]) -> float:
    """MB at the end, as each system tells it; of Flink, the largest checkpoint."""
    return _nan(median(runs, "state_mb", "checkpoint_mb"))


def _mid(runs: list[Mapping[str, Any]], name: str, digits: int = 0) -> str:
    return number(_nan(median(runs, name)), digits)


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
