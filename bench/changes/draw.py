"""The tables of the bench of changes, from its raw outcomes.

.venv/bin/python bench/changes/draw.py bench/changes/results/changes.json     # writes .md beside it
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
from outcome import Outcome, read

RESULTS = Path(__file__).parent / "results"
LATE = 10  # batches of each end of a run that are compared
Runs = dict[str, list[Outcome]]


def write(raw: Path) -> Path:
    kept = json.loads(raw.read_text())
    table = raw.with_suffix(".md")
    table.write_text("\n".join(page(kept)) + "\n")
    return table


def page(kept: Mapping[str, Any]) -> Iterator[str]:
    yield "# Joins of inputs that change"
    runs = {part: _runs(found["outcomes"]) for part, found in kept.items()}
    for part, found in kept.items():
        machine = found["machine"]
        yield ""
        yield f"## {part}"
        yield ""
        cores = f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gb']} GB"
        yield f"{machine['date']}: {cores}, {machine['system']}, load before: {machine['load_before']}."
        yield ""
        yield from (_state(runs[part]) if part == "state" else _speeds(part, runs))
        yield from (f"- **{o['name']} failed**: {o['reason']}" for o in found["outcomes"] if "reason" in o)


def _runs(outcomes: Sequence[dict[str, Any]]) -> Runs:
    found: Runs = {}
    for one in outcomes:
        if "reason" not in one:
            found.setdefault(one["name"], []).append(read({k: v for k, v in one.items() if k != "name"}))
    return found


def _speeds(part: str, runs: Mapping[str, Runs]) -> Iterator[str]:
    other = {"speed": "append", "flink": "upserts"}[part]
    base = runs.get("speed", {}).get(other)
    yield (
        f"| input | changes/s after warm-up: median (all runs) | of {other} | peak memory (MB) |"
        " bytes stored a change | changes out |"
    )
    yield "|---|---:|---:|---:|---:|---:|"
    for name, ones in runs[part].items():
        rates = [one.rate for one in ones]
        ratio = f"{median(rates) / median([b.rate for b in base]):.2f}" if base else "-"
        stored = f"{ones[0].state_mb * 1e6 / ones[0].rows:.0f}" if ones[0].state_mb else "-"
        each = ", ".join(f"{rate:,.0f}" for rate in rates)
        peak = f"{ones[0].peak_rss_mb:,.0f}" if ones[0].peak_rss_mb else "-"
        yield f"| {name} | **{median(rates):,.0f}** ({each}) | {ratio} | {peak} | {stored} | {ones[0].results:,} |"


def _state(runs: Runs) -> Iterator[str]:
    yield (
        "| input | changes | stored at the end (MB) | most after any late batch (MB) | of inserts only | on disk (MB) |"
        f" s a batch, batches {LATE + 1} to {2 * LATE} | the last {LATE} |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for name, (one, *_) in runs.items():
        base = runs.get(f"{name}, inserts only")
        stored = one.extra["stored_mb"]
        most = max(stored[-LATE:])
        ratio = f"{most / base[0].extra['stored_mb'][-1]:.2f}" if base else "-"
        seconds = [batch.seconds for batch in one.batches]
        times = [
            f"{median(some):.2f}" if some else "-" for some in (seconds[LATE : 2 * LATE], seconds[-LATE:])
        ]
        yield (
            f"| {name} | {one.rows:,} | {one.state_mb:.1f} | {most:.1f} | {ratio} | {one.disk_mb:.1f} |"
            f" {times[0]} | {times[1]} |"
        )


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
