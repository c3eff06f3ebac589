"""Several outputs of one file: each is a job with its own query, checkpoint and places of mistakes."""

from pathlib import Path

import pytest

from jobs.cli.commands import planned
from joinlib.errors import SpecError
from joinlib.spec import json_schema, parse

TEXT = """\
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: orders}
spec:
  inputs:
    orders: {schema: "id BIGINT, item STRING", files: {path: data/orders, format: csv}}
  views: {some: SELECT id FROM orders WHERE item = 'x'}
  outputs:
    all: {sql: SELECT id FROM orders, files: {path: out/all}}
    few:
      sql: SELECT id FROM some
      mode: changelog
      key: [id]
      files: {path: out/few}
  checkpoint: {path: checkpoint}
"""


def test_all_outputs_are_one_job() -> None:
    """With one checkpoint; each has its mode."""
    spec = parse(TEXT, "t.yaml", Path("/j")).spec
    assert {n: (o.mode, o.key) for n, o in spec.results.items()} == {
        "all": ("append", ()),
        "few": ("changelog", ("id",)),
    }
    assert str(spec.checkpoint.folder) == "/j/checkpoint"


def test_the_only_output_has_no_name() -> None:
    """And is that of the spec."""
    text = TEXT.replace(
        "  outputs:\n    all: {sql: SELECT id FROM orders, files",
        "  sql: SELECT id FROM orders\n  output: {files",
    )
    job = parse(text[: text.index("    few:")] + "  checkpoint: {path: checkpoint}\n", "t.yaml", Path("/j"))
    assert job.spec.results == {"": job.spec.output}


def test_a_reader_that_only_one_query_can_have_is_allowed() -> None:
    """There is one query: files may go once they were read."""
    assert parse(TEXT.replace("format: csv}}", "format: csv, done: delete}}"), "t.yaml", Path("/j"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "  outputs:",
            "  sql: SELECT 1\n  outputs:",
            "8: spec.sql: stands beside outputs; move it there, with a name",
        ),
        ("    few:", "    Few:", "10: spec.outputs.Few: 'Few' is not a name for an output"),
        (
            "out/few",
            "out/all",
            "14: spec.outputs.few.files.path: /j/out/all and outputs.all.files.path /j/out/all overlap",
        ),
        ("sql: SELECT id FROM orders, ", "", "9: spec.outputs.all.sql: is missing; add it (One SELECT"),
        (
            "      key: [id]\n      files: {path: out/few}\n",
            "",
            "10: spec.outputs.few: has no sink; add one of",
        ),
        (
            "files: {path: out/all}}",
            "kafka: {bootstrapServers: 'b:1', topic: t}}",
            "14: spec.outputs.few.kafka.topic: is the topic of outputs.all too; use another",
        ),
        (
            "files: {path: out/all}}",
            "postgres: {host: h, database: d, user: u, table: t}}",
            "14: spec.outputs.few.postgres.table: is the table of outputs.all too; use another",
        ),
    ],
)
def test_mistakes_are_told_at_their_line(old: str, new: str, said: str) -> None:
    """As those of a single output."""
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    for sink in ("kafka", "postgres"):  # both outputs
        if f"{sink}:" in new:
            text = text.replace("mode: changelog", "mode: upsert")
            text = text.replace("files: {path: out/few}", new.removesuffix("}"))
    with pytest.raises(SpecError) as error:
        parse(text, "t.yaml", Path("/j"))
    assert f"t.yaml:{said}" in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("SELECT id FROM some", "SELECT idd FROM some", ":11:19: spec.outputs.few.sql: "),
        (
            "key: [id]",
            "key: [idd]",
            ":13: spec.outputs.few.key: the result has no column 'idd'; did you mean 'id'?",
        ),
        ("item = 'x'", "itm = 'x'", ":7:45: spec.views.some: "),
        (
            "SELECT id FROM orders, files",
            "'SELECT id, count(*) OVER (PARTITION BY item) AS n FROM orders', files",
            ":9: spec.outputs.all.mode: append takes rows that are final, but the value of count(*) OVER",
        ),
    ],
)
def test_mistakes_of_the_plan_are_told_at_their_output(tmp_path: Path, old: str, new: str, said: str) -> None:
    """Line and column are those of its SQL."""
    file = tmp_path / "t.yaml"
    file.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(SpecError) as error:
        planned(file)
    assert str(error.value).removeprefix(str(file)).startswith(said)


def test_all_mistakes_are_told(tmp_path: Path) -> None:
    """Of each clause, column and output, at its place, with the names that inputs have there."""
    few = "'SELECT o.id, o.item + TRUE AS a, o.id.x FROM orders o JOIN some s ON o.id = s.id WHERE o.id AND o.item'"
    more = "'SELECT o.item + 1 AS b, o.id + FALSE AS c FROM orders o JOIN some s ON o.id = s.id'"
    file = tmp_path / "t.yaml"
    file.write_text(TEXT.replace("SELECT id FROM some", few).replace("SELECT id FROM orders,", f"{more},"))
    assert _told(file) == [
        "9:41: spec.outputs.all.sql: + takes numbers, FALSE is BOOLEAN",
        "11:100: spec.outputs.few.sql: a condition is BOOLEAN, o.id is BIGINT",
        "11:109: spec.outputs.few.sql: a condition is BOOLEAN, o.item is STRING",
    ]
    file.write_text(file.read_text().replace(" WHERE o.id AND o.item", "").replace("+ FALSE", ""))
    assert _told(file) == [
        "11:26: spec.outputs.few.sql: + takes numbers, o.item is STRING",
        "11:46: spec.outputs.few.sql: o.id is BIGINT, it has no field x",
    ]


def _told(file: Path) -> list[str]:
    with pytest.raises(SpecError) as error:
        planned(file)
    return str(error.value).replace(f"{file}:", "").splitlines()


def test_names_in_mistakes_are_those_of_the_text(tmp_path: Path) -> None:
    """Also where another output has an input of the same name."""
    both = "FROM orders o JOIN some s ON o.id = s.id"
    file = tmp_path / "t.yaml"
    file.write_text(
        TEXT.replace("SELECT id FROM some", f"SELECT id {both}").replace(
            "SELECT id FROM orders,", f"SELECT o.id {both},"
        )
    )
    with pytest.raises(SpecError, match=r"column id is ambiguous; write o\.id or s\.id"):
        planned(file)


def test_editors_know_both_forms() -> None:
    """`sql` and `output`, or `outputs`."""
    spec = json_schema()["$defs"]["Spec"]
    assert spec["oneOf"] == [{"required": ["sql", "output"]}, {"required": ["outputs"]}]
    assert set(spec["required"]) == {"inputs", "checkpoint"}
