"""Table 3 and figure 8 of UMJoin: which trees of joins does Two-Step-Convert find in TPC-H, and what runs them?

Queries are those of `tests/queries/tpch`, in their own texts, without ORDER BY and LIMIT. No data is needed.
"""

from typing import Any

from joinlib.model.stage import PathStage, Stage
from joinlib.plan import JoinOptions, Pipeline, SourceInput, pipeline
from joinlib.plan.build import Request
from joinlib.plan.tsc import convert, drawn, groups
from joinlib.spec import ddl
from joinlib.sql.blocks import blocks
from joinlib.sql.logical import logical
from tests.queries.corpus import query, schemas

TABLE_3 = ("q2", "q3", "q5", "q7", "q8", "q9", "q10", "q11", "q15", "q18", "q21")


def converted(name: str) -> dict[str, Any]:
    """The groups of a query, the inputs of each join that runs as stages and as paths, and the plan before and after."""
    text = query(f"tpch-{name}").streamed
    inputs = {
        table: SourceInput(ddl.parse(", ".join(" ".join(column) for column in columns)))
        for table, columns in schemas("tpch").items()
    }
    plan = logical(blocks(text, Request(inputs, JoinOptions()).tables))
    return {
        "groups": sorted((len(group.inputs) for group in groups(plan)), reverse=True),
        "runs": _joins(pipeline(text, inputs, JoinOptions(strategy="stages"), mode="changelog")),
        "paths": _joins(pipeline(text, inputs, JoinOptions(strategy="paths"), mode="changelog")),
        "before": list(drawn(plan)),
        "after": list(drawn(convert(plan))),
    }


def _joins(made: Pipeline) -> list[int]:
    """How many inputs each join has, the largest first: one that goes by paths has those of its graph."""
    paths = [stage.graph.inputs for stage in made.stages if isinstance(stage, PathStage)]
    stages = [len(stage.inputs) for stage in made.stages if isinstance(stage, Stage)]
    return sorted([*paths, *(inputs for inputs in stages if inputs > 1)], reverse=True)
