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


@pytest.mark.parametrize(("cores", "units"), [(1, 2), (2, 2), (3, 4), (8, 8), (12, 16), (33, 64)])
def test_each_core_has_a_unit(tmp_path: Path, cores: int, units: int) -> None:
    assert compiled(document(tmp_path), cores).pipeline.units == units
    assert plan_of(document(tmp_path), cores=cores).units == units
    assert plan_of(document(tmp_path, 2), cores=cores).units == 2, "what the spec says counts"


@pytest.mark.parametrize(("cores", "units"), [(1, 8), (8, 8), (12, 16)])
def test_executors_may_become_more(tmp_path: Path, cores: int, units: int) -> None:
    """Where there are some, or the spec names some."""
    assert compiled(document(tmp_path), cores, executors=True).pipeline.units == units
    named = parse(SPEC + "  executors: {max: 2}\n", "units.yaml", tmp_path)
    assert compiled(named, cores).pipeline.units == units


def test_what_cannot_be_divided_later_has_more_units(tmp_path: Path) -> None:
    biclique = parse(SPEC + "  join: {strategy: biclique}\n", "units.yaml", tmp_path)
    assert plan_of(biclique, cores=2).units == 8
    anywhere = parse(SPEC.replace("a.k = b.k", "a.k < b.k"), "units.yaml", tmp_path)
    assert plan_of(anywhere, cores=2).units == 8


def test_a_checkpoint_keeps_its_units(tmp_path: Path) -> None:
    """On a machine with more cores, and without the word that it was begun with; another word divides the state."""
    (tmp_path / "checkpoint").mkdir()
    identify(tmp_path / "checkpoint", "units", plan_of(document(tmp_path, 4)))
    for cores in (1, 2, 4, 7):
        assert plan_of(document(tmp_path), cores=cores).units == 4
        assert not plan_of(document(tmp_path), cores=cores).notes
    idle = plan_of(document(tmp_path), cores=16)
    assert idle.units == 4
    assert idle.notes == ("the state is in 4 units, so that 4 of 16 cores join; join.units: 16 divides it",)
    assert plan_of(document(tmp_path, 32), cores=16).units == 32
