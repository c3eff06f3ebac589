"""How many units a job has."""

from pathlib import Path

import pytest

from joinlib.checkpoint.identity import identify
from joinlib.checkpoint.planned import plan_of
from joinlib.compiled import compiled
from joinlib.spec import parse
from joinlib.spec.model import StreamJoin

SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: units}
spec:
  sql: SELECT a.k AS k FROM a JOIN b ON a.k = b.k
  inputs:
    a: {schema: k BIGINT, files: {path: a}}
    b: {schema: k BIGINT, files: {path: b}}
  output: {noop: {}}
  checkpoint: {path: checkpoint}
"""


def document(folder: Path, units: int | None = None) -> StreamJoin:
    own = f"  join: {{units: {units}}}\n" if units else ""
    return parse(SPEC + own, "units.yaml", folder)


@pytest.mark.parametrize(("cores", "units"), [(1, 8), (8, 8), (12, 16), (16, 16), (33, 64)])
def test_each_core_has_a_unit(tmp_path: Path, cores: int, units: int) -> None:
    assert compiled(document(tmp_path), cores).pipeline.units == units
    assert plan_of(document(tmp_path), cores=cores).units == units
    assert plan_of(document(tmp_path, 2), cores=cores).units == 2, "what the spec says counts"


def test_a_checkpoint_keeps_its_units(tmp_path: Path) -> None:
    """On a machine with more cores, and without the word that it was begun with; another word divides the state."""
    (tmp_path / "checkpoint").mkdir()
    identify(tmp_path / "checkpoint", "units", plan_of(document(tmp_path, 4)))
    assert plan_of(document(tmp_path), cores=16).units == 4
    assert not plan_of(document(tmp_path), cores=16).notes
    assert plan_of(document(tmp_path, 32), cores=16).units == 32
