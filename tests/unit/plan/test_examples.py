"""The examples are plans too."""

from pathlib import Path

import pytest

from joinlib.model.fingerprint import fingerprint
from joinlib.plan import pipeline_of
from joinlib.plan.explain import explain
from joinlib.spec import load

MANIFESTS = sorted((Path(__file__).parents[3] / "manifests").glob("[0-9]*.yaml"))


@pytest.mark.parametrize("path", MANIFESTS, ids=[p.stem for p in MANIFESTS])
def test_example_is_planned(path: Path) -> None:
    """Every example has a plan that can be told and compared."""
    plan = pipeline_of(load(path))

    assert explain(plan).startswith("result: ")
    assert fingerprint(plan)["units"] == plan.units
