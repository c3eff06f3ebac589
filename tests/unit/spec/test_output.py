"""Modes and keys of outputs: what goes together, what the result must have, and what `plan` says."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from joinlib.compiled import compiled
from joinlib.errors import SpecError
from joinlib.plan import landing
from joinlib.spec import parse
from joinlib.spec.output import Output

KAFKA: dict[str, Any] = {"bootstrapServers": "kafka:9092", "topic": "t"}
POSTGRES = {"host": "db", "database": "d", "user": "u", "table": "t"}
SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: out}
spec:
  sql: SELECT a.k AS id, b.v AS NAME, b.vs FROM a JOIN b ON a.k = b.k
  inputs:
    a: {schema: "k BIGINT, v BIGINT", generator: {rows: 1}}
    b: {schema: "k BIGINT, v BIGINT, vs ARRAY<BIGINT>", files: {path: b}}
  output: OUTPUT
  checkpoint: {path: checkpoint}
"""


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        (
            {"mode": "upsert", "console": {}},
            "key: is missing: by it mode upsert finds the row to replace; add",
        ),
        ({"key": ["a"], "console": {}}, "key: is for results that change; remove it, or write mode: upsert"),
        ({"mode": "changelog", "key": ["a", "a"], "noop": {}}, "key: names a column twice; remove one"),
        (
            {"mode": "upsert", "key": ["a"], "files": {"path": "out"}},
            "mode: is upsert, but files that readers see cannot be changed; write mode: changelog",
        ),
        (
            {"mode": "changelog", "postgres": POSTGRES},
            "mode: is changelog, but a table holds rows, .*write mode: upsert",
        ),
        (
            {"mode": "upsert", "key": ["a"], "kafka": {**KAFKA, "key": ["a"]}},
            r"kafka\.key: stands beside output\.key, .*remove this one",
        ),
        (
            {"mode": "upsert", "key": ["a"], "kafka": {**KAFKA, "format": "arrow"}},
            r"kafka\.format: is arrow, whose messages .*write json, csv or debezium",
        ),
        ({"kafka": {**KAFKA, "format": "debezium"}}, r"kafka\.format: is debezium, .*write mode: changelog"),
        ({"postgres": {**POSTGRES, "host": None}}, r"host: is missing; add it, or uriEnv"),
        ({"postgres": {k: v for k, v in POSTGRES.items() if k != "table"}}, "table"),
        ({}, "has no sink; add one of files, kafka, postgres, console, noop"),
    ],
)
def test_what_does_not_go_together(output: dict[str, Any], problem: str) -> None:
    """With the place and the mend."""
    with pytest.raises(ValidationError, match=problem):
        Output.model_validate(output)


@pytest.mark.parametrize(
    "output",
    [
        {"mode": "changelog", "kafka": {**KAFKA, "key": ["a"]}},
        {"mode": "changelog", "key": ["a"], "kafka": {**KAFKA, "format": "arrow"}},
        {"mode": "upsert", "key": ["a"], "kafka": {**KAFKA, "format": "debezium"}},
        {"mode": "upsert", "key": ["a", "b"], "console": {}},
        {"mode": "upsert", "key": ["a"], "postgres": POSTGRES},
        {"postgres": POSTGRES},
        {"mode": "changelog", "files": {"path": "out"}},
    ],
)
def test_what_goes_together(output: dict[str, Any]) -> None:
    Output.model_validate(output)


def sink(output: str, sql: str = "") -> Any:
    text = SPEC.replace("OUTPUT", output)
    return compiled(parse(text.replace("AS NAME", sql or "AS v"), "out.yaml", Path()), 1).join.sink


def test_the_key_is_of_the_result() -> None:
    """Not of an input, and of columns that can be compared; the nearest is offered."""
    made = sink("{mode: upsert, key: [id], console: {}}")
    assert (made.mode, made.key) == ("upsert", ("id",))
    with pytest.raises(SpecError, match=r"output\.key: the result has no column 'k'"):
        sink("{mode: upsert, key: [k], console: {}}")
    with pytest.raises(SpecError, match=r"output\.key: column 'vs' is of type ARRAY, by which"):
        sink("{mode: changelog, key: [vs], console: {}}")


def test_the_key_of_messages() -> None:
    """It is the output's key, or in a changelog without one that of Kafka."""
    topic = 'kafka: {bootstrapServers: "kafka:9092", topic: t'
    assert sink(f"{{mode: upsert, key: [id], {topic}}}}}").kafka.key == ("id",)
    assert sink(f"{{mode: changelog, {topic}, key: [v]}}}}").kafka.key == ("v",)


@pytest.mark.parametrize("name", ["_change_type", "_BATCH"])
def test_names_that_a_changelog_adds(name: str) -> None:
    """They are the user's where no changelog comes out."""
    with pytest.raises(
        SpecError, match=rf"mode: changelog adds a column {name.lower()}, .*rename it .*AS \w+$"
    ):
        sink("{mode: changelog, console: {}}", f"AS {name}")
    with pytest.raises(SpecError, match="mode: upsert adds a column"):
        sink("{mode: upsert, key: [id], noop: {}}", f"AS {name}")
    sink("{console: {}}", f"AS {name}")
    sink('{mode: upsert, key: [id], kafka: {bootstrapServers: "kafka:9092", topic: t}}', f"AS {name}")


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("{mode: changelog, console: {}}", "changes: a row for each, with _change_type and _batch"),
        ("{mode: upsert, key: [id], noop: {}}", "a row that replaces another of its key (id) is an update"),
        ("{mode: upsert, key: [id, v], postgres: {uriEnv: SHOP_URI, table: t}}", "table t: the row of a key (id, v) is"),
        ("{postgres: {uriEnv: SHOP_URI, table: s.t}}", "table s.t: rows are added, a batch at once"),
        ('{mode: upsert, key: [id], kafka: {bootstrapServers: "k:1", topic: t}}', "(id) is its row, and a tombstone"),
        ("{console: {}}", ""),
    ],
)  # fmt: skip
def test_a_plan_says_what_becomes_of_changes(output: str, line: str) -> None:
    said = "\n".join(landing.describe(parse(SPEC.replace("OUTPUT", output), "out.yaml", Path()).spec))
    assert line in said
    assert bool(said) == bool(line)
