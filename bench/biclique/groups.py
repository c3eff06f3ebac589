"""What do aggregates cost?

`python bench/biclique/groups.py` writes results/groups.json and .md (BiStream, figures 13 and 14).

The paper's queries with its aggregates, by 25 nations, 16 units played one after the other as in run.py: the
join alone, with all results made into columns, and with partials. To the merging units goes, by batch and
unit, a row for each group; without partials it would be every result.
"""

import json
import statistics
from collections.abc import Iterator
from typing import Any

from run import HERE, QUERIES, SCHEMA, inputs, played

from joinlib.aggregate.partial import Partials
from joinlib.engine.frames import frames, project
from joinlib.join.rows import Tuples
from joinlib.model.stage import GroupStage, Stage
from joinlib.model.tuning import Tuning
from joinlib.plan import JoinOptions, SourceInput, pipeline

UNITS, ROWS, BATCHES = 16, 200_000, 4
WANTED = {"Q5": "sum(b.id) AS revenue", "Band": "count(*) AS n, min(b.id) AS low, max(b.id) AS high"}


class Sink:
    """Of one way to use the results of a stage; counts the bytes that go on to the groups."""

    def __init__(self, stage: Stage, groups: GroupStage, way: str) -> None:
        self.stage, self.groups, self.way, self.sent = stage, groups, way, 0

    def __call__(self, found: Iterator[Tuples]) -> int:
        if self.way == "join alone":
            return sum(len(t) for t in found)
        stage, results, partials = self.stage, 0, Partials(self.groups.grouping)
        for frame in frames(
            project(found, stage.select, stage.schema, Tuning.frame_bytes), Tuning.frame_rows
        ):
            results += frame.num_rows
            if self.way == "partials":
                partials.add(frame)
            else:
                self.sent += frame.nbytes
        if self.way == "partials":
            self.sent += partials.merged().nbytes
        return results


def measured(name: str) -> dict[str, Any]:
    sql, keys = QUERIES[name]
    joined = sql.partition(" FROM ")[2]
    asked = f"SELECT a.id % 25 AS nation, {WANTED[name]} FROM {joined} GROUP BY a.id % 25"
    parts = [inputs(ROWS // BATCHES, keys, batch) for batch in range(BATCHES)]
    source = SourceInput(SCHEMA)
    strategy = "biclique" if name == "Q5" else "auto"
    stage, groups = pipeline(
        asked, {"a": source, "b": source}, JoinOptions(units=UNITS, strategy=strategy)
    ).stages
    assert isinstance(stage, Stage)
    assert isinstance(groups, GroupStage)
    found: dict[str, Any] = {way: [] for way in ("join alone", "results", "partials")}
    for _ in range(3):
        for way, runs in found.items():
            sink = Sink(stage, groups, way)
            runs.append({**played(stage, parts, sink=sink), "on_mb": sink.sent / 1e6})
    return {
        way: {
            "rows_s": statistics.median(2 * ROWS / run["work_s"] for run in runs),
            "results": runs[0]["results"],
            "on_mb": runs[0]["on_mb"],
        }
        for way, runs in found.items()
    }


def main() -> None:
    found = {name: measured(name) for name in WANTED}
    lines = [
        "| query | way | rows/s of all units' time | results | MB on to the merging units |",
        "|---|---|---:|---:|---:|",
    ]
    for name, ways in found.items():
        for way, case in ways.items():
            lines.append(
                f"| {name} | {way} | {case['rows_s']:,.0f} | {case['results']:,} | {case['on_mb']:.3f} |"
            )
    HERE.mkdir(exist_ok=True)
    (HERE / "groups.json").write_text(json.dumps(found, indent=1) + "\n")
    (HERE / "groups.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
