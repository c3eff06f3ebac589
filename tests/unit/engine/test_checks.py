"""What is seen of inputs before a run starts."""

from pathlib import Path

import pytest

from joinlib.compiled import compiled
from joinlib.engine.checks import rewritten
from tests.laws.document import written
from tests.laws.harness import SMALL
from tests.laws.product import Course, Product


@pytest.mark.parametrize("done", ["keep", "delete"])
def test_files_that_were_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: str) -> None:
    """They are told, with both sizes; where files are put away, a name may come again and is read again."""
    monkeypatch.setenv("STREAMJOIN_LOCAL_DIR", str(tmp_path / "local"))
    for name in "ab":
        (tmp_path / name).mkdir()
        for number in range(3):
            (tmp_path / name / f"{number}.csv").write_text("id\n1\n")
    inputs = {
        name: {"schema": "id BIGINT", "files": {"path": name, "format": "csv", "done": done}} for name in "ab"
    }
    spec = {"sql": "SELECT a.id FROM a JOIN b ON a.id = b.id", "inputs": inputs}
    document = written(
        {**spec, "output": {"files": {"path": "out"}}, "checkpoint": {"path": "checkpoint"}}, tmp_path
    )
    assert list(rewritten(compiled(document, 1).source)) == []
    for _ in Product(document, SMALL, Course()).batches():
        pass
    assert list(rewritten(compiled(document, 1).source)) == []
    for number in range(1, 3):
        (tmp_path / "b" / f"{number}.csv").write_text("id\n1\n2\n")
    said = list(rewritten(compiled(document, 1).source))
    if done == "keep":
        assert said[0].startswith(
            "inputs.b: 1.csv has 7 bytes and had 5 when it was read; so have 1 more. A name is read once"
        )
    assert len(said) == (done == "keep")
