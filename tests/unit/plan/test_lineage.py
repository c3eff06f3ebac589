"""Where columns come from, and what decides which rows there are: as one reads it in the text."""

from pathlib import Path

import pyarrow as pa
import pytest

from joinlib.expr.types import TIMESTAMP
from joinlib.model.stage import Pipeline
from joinlib.plan import JoinOptions, SourceInput, pipeline, pipeline_of
from joinlib.plan.changes import Mode
from joinlib.plan.lineage import Effect, Influence, lineage
from joinlib.spec import parse

ORDERS = pa.schema(
    [
        ("id", pa.int64()),
        ("cust", pa.int64()),
        ("x", pa.int64()),
        ("at", TIMESTAMP),
        ("tags", pa.list_(pa.string())),
    ]
)
PAYMENTS = pa.schema([("ord", pa.int64()), ("v", pa.int64()), ("paid", TIMESTAMP)])
PEOPLE = pa.schema([("id", pa.int64()), ("name", pa.string()), ("ok", pa.bool_())])
INPUTS = {
    "o": SourceInput(ORDERS, time="at"),
    "p": SourceInput(PAYMENTS, time="paid"),
    "c": SourceInput(PEOPLE),
    "u": SourceInput(PEOPLE, changes=True, upsert=("id",)),
    "t": SourceInput(PEOPLE, role="table"),
}
PATH = "SELECT c.name, p.v FROM c JOIN o ON c.id = o.cust JOIN p ON o.id = p.ord WHERE p.v > 2"
WHOLE = {"name": "IDENTITY c.name", "v": "IDENTITY p.v"}
CHAIN = "JOIN c.id, JOIN o.cust, JOIN o.id, JOIN p.ord, FILTER p.v"
Told = tuple[dict[str, str], str]


def told(plan: Pipeline, number: int = 0) -> Told:
    """As people read it."""
    found = lineage(plan, plan.results[number])
    lines = {name: _line(influences) for name, influences in found.columns.items()}
    return {name: line for name, line in lines.items() if line}, _line(found.rows)


def _line(found: frozenset[Influence]) -> str:
    ordered = sorted(found, key=lambda one: (one.source, one.column, one.effect))
    return ", ".join(f"{one.effect} {one.source}.{one.column}" for one in ordered)


@pytest.mark.parametrize(
    ("sql", "columns", "rows"),
    [
        (
            "SELECT o.id, o.x + p.v AS s FROM o JOIN p ON o.id = p.ord WHERE o.x > 0",
            {"id": "IDENTITY o.id", "s": "TRANSFORMATION o.x, TRANSFORMATION p.v"},
            "JOIN o.id, FILTER o.x, JOIN p.ord",
        ),
        (
            (
                "SELECT o.id, CASE WHEN p.v > 1 THEN o.x END AS s FROM o LEFT JOIN p"
                " ON o.id = p.ord AND p.paid BETWEEN o.at AND o.at + INTERVAL 1 HOUR AND o.cust > 3 WHERE p.v IS NULL"
            ),
            {"id": "IDENTITY o.id", "s": "TRANSFORMATION o.x, CONDITIONAL p.v"},
            "JOIN o.at, JOIN o.cust, JOIN o.id, JOIN p.ord, JOIN p.paid, FILTER p.v",
        ),
        (
            "SELECT a.id AS i, transform(a.tags, q -> upper(q)) AS u FROM o a JOIN o b ON a.id = b.cust",
            {"i": "IDENTITY o.id", "u": "TRANSFORMATION o.tags"},
            "JOIN o.cust, JOIN o.id",
        ),
        ("SELECT o.x FROM o JOIN p ON o.x + 1 = p.v", {"x": "IDENTITY o.x"}, "JOIN o.x, JOIN p.v"),
        (
            "SELECT c.name FROM c WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.ord = c.id AND p.v > 5)",
            {"name": "IDENTITY c.name"},
            "JOIN c.id, JOIN p.ord, FILTER p.v",
        ),
        (
            "SELECT id, x FROM o WHERE x > 1 UNION ALL SELECT ord, -v FROM p",
            {"id": "IDENTITY o.id, IDENTITY p.ord", "x": "IDENTITY o.x, TRANSFORMATION p.v"},
            "FILTER o.x",
        ),
        (
            "SELECT o.id, t.name FROM o JOIN t ON o.cust = t.id AND t.name <> 'x' WHERE t.ok",
            {"id": "IDENTITY o.id", "name": "IDENTITY t.name"},
            "JOIN o.cust, JOIN t.id, FILTER t.name, FILTER t.ok",
        ),
        (
            "SELECT id, upper(tag) AS tag FROM o LATERAL VIEW explode(tags) e AS tag WHERE tag <> 'x'",
            {"id": "IDENTITY o.id", "tag": "TRANSFORMATION o.tags"},
            "FILTER o.tags",
        ),
        (
            "SELECT u.name FROM u JOIN o ON u.id = o.cust",
            {"name": "IDENTITY u.name"},
            "JOIN o.cust, JOIN u.id",
        ),
    ],
)
def test_joins(sql: str, columns: dict[str, str], rows: str) -> None:
    """Inner, outer, itself, a key that is computed, anti, union, a table, lists, an upsert."""
    mode: Mode = "changelog" if "u.name" in sql else "append"
    assert told(pipeline(sql, INPUTS, JoinOptions(units=2), mode=mode)) == (columns, rows)


@pytest.mark.parametrize(
    ("sql", "columns", "rows"),
    [
        (
            (
                "SELECT o.cust, 1 + sum(p.v) AS s, count(*) AS n, max(p.v) FILTER (WHERE p.paid IS NULL) AS f"
                " FROM o JOIN p ON o.id = p.ord GROUP BY o.cust HAVING min(o.x) > 3"
            ),
            {
                "cust": "IDENTITY o.cust",
                "s": "AGGREGATION p.v",
                "f": "CONDITIONAL p.paid, AGGREGATION p.v",
            },
            "GROUP_BY o.cust, JOIN o.id, FILTER o.x, JOIN p.ord",
        ),
        ("SELECT DISTINCT x FROM o", {"x": "IDENTITY o.x"}, "GROUP_BY o.x"),
        (
            (
                "SELECT o.id, sum(o.x) OVER (PARTITION BY o.cust ORDER BY o.at) AS s FROM o"
                " QUALIFY row_number() OVER (PARTITION BY o.cust ORDER BY o.at) <= 3"
            ),
            {"id": "IDENTITY o.id", "s": "WINDOW o.at, WINDOW o.cust, TRANSFORMATION o.x"},
            "FILTER o.at, FILTER o.cust",
        ),
        (
            (
                "SELECT window_start, sum(x) AS s FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(at), INTERVAL '10' SECOND))"
                " GROUP BY window_start, window_end"
            ),
            {"window_start": "TRANSFORMATION o.at", "s": "AGGREGATION o.x"},
            "FILTER o.at, GROUP_BY o.at",
        ),
        (
            (
                "WITH s AS (SELECT cust, max(x) AS m FROM o GROUP BY cust)"
                " SELECT c.name, s.m + 1 AS m FROM c JOIN s ON c.id = s.cust"
            ),
            {"name": "IDENTITY c.name", "m": "AGGREGATION o.x"},
            "JOIN c.id, GROUP_BY o.cust, JOIN o.cust",
        ),
    ],
)
def test_groups_and_windows(sql: str, columns: dict[str, str], rows: str) -> None:
    """Also windows in time, and groups that are joined."""
    assert told(pipeline(sql, INPUTS, JoinOptions(units=2), mode="changelog")) == (columns, rows)


def test_paths_and_stages_come_from_the_same() -> None:
    """However it is run: the tests for NULL that paths add are nobody's question."""
    for options in (JoinOptions(units=2, strategy="paths"), JoinOptions(units=2, strategy="stages")):
        assert told(pipeline(PATH, INPUTS, options)) == (WHOLE, CHAIN)


def test_each_output_has_its_own() -> None:
    """Of several outputs: what one of them reads says nothing of the others."""
    spec = parse(
        """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: two}
spec:
  views: {big: "SELECT id, x FROM o WHERE x > 9"}
  outputs:
    rows: {sql: "SELECT big.id, p.v FROM big JOIN p ON big.id = p.ord", noop: {}}
    counts: {sql: "SELECT x, count(id) AS n FROM big GROUP BY x", mode: changelog, noop: {}}
  inputs:
    o: {schema: "id BIGINT, x BIGINT", generator: {}}
    p: {schema: "ord BIGINT, v BIGINT", generator: {}}
  checkpoint: {path: checkpoint}
""",
        "two.yaml",
        Path(),
    )
    plan = pipeline_of(spec)
    assert [result.name for result in plan.results] == ["rows", "counts"]
    joined = {"id": "IDENTITY o.id", "v": "IDENTITY p.v"}, "JOIN o.id, FILTER o.x, JOIN p.ord"
    counted = {"x": "IDENTITY o.x", "n": "AGGREGATION o.id"}, "FILTER o.x, GROUP_BY o.x"
    assert (told(plan, 0), told(plan, 1)) == (joined, counted)


def test_what_follows_an_effect() -> None:
    """What values are made of is told by the strongest step; once it is a condition, it stays one."""
    aggregated = Effect.IDENTITY.then(Effect.AGGREGATION).then(Effect.TRANSFORMATION)
    assert aggregated is Effect.AGGREGATION
    assert Effect.CONDITIONAL.then(Effect.AGGREGATION) is Effect.CONDITIONAL
    assert Effect.CONDITIONAL.then(Effect.JOIN) is Effect.JOIN
