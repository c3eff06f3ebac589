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


def test_each_output_is_a_job() -> None:
    """With a checkpoint of its own, over the same inputs and views."""
    parts = parse(TEXT, "t.yaml", Path("/j")).parts()
    found = {
        n: (p.metadata.name, p.spec.sql, p.spec.output.mode, str(p.spec.checkpoint.folder))
        for n, p in parts.items()
    }
    assert found == {
        "all": ("orders-all", "SELECT id FROM orders", "append", "/j/checkpoint/all"),
        "few": ("orders-few", "SELECT id FROM some", "changelog", "/j/checkpoint/few"),
    }
    assert all(not part.spec.outputs and part.spec.views for part in parts.values())


def test_a_spec_with_one_output_is_one_job() -> None:
    """Without a name, and as it is."""
    text = TEXT.replace(
        "  outputs:\n    all: {sql: SELECT id FROM orders, files",
        "  sql: SELECT id FROM orders\n  output: {files",
    )
    job = parse(text[: text.index("    few:")] + "  checkpoint: {path: checkpoint}\n", "t.yaml", Path("/j"))
    assert job.parts() == {"": job}


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
            "format: csv}}",
            "format: csv, done: delete}}",
            "6: spec.inputs.orders.files.done: must be keep: each of the",
        ),
    ],
)
def test_mistakes_are_told_at_their_line(old: str, new: str, said: str) -> None:
    """As those of a single output."""
    assert old in TEXT
    with pytest.raises(SpecError) as error:
        parse(TEXT.replace(old, new, 1), "t.yaml", Path("/j"))
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
    ],
)
def test_mistakes_of_the_plan_are_told_at_their_output(tmp_path: Path, old: str, new: str, said: str) -> None:
    """Line and column are those of its SQL."""
    file = tmp_path / "t.yaml"
    file.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(SpecError) as error:
        planned(file)
    assert str(error.value).removeprefix(str(file)).startswith(said)


def test_editors_know_both_forms() -> None:
    """`sql` and `output`, or `outputs`."""
    spec = json_schema()["$defs"]["Spec"]
    assert spec["oneOf"] == [{"required": ["sql", "output"]}, {"required": ["outputs"]}]
    assert set(spec["required"]) == {"inputs", "checkpoint"}
