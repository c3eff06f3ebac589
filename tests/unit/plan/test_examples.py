"""The examples are plans too."""

from pathlib import Path

import pytest

from joinlib.plan import explain, fingerprint, of_spec
from joinlib.spec import load

MANIFESTS = sorted((Path(__file__).parents[3] / "manifests").glob("[0-9]*.yaml"))


@pytest.mark.parametrize("path", MANIFESTS, ids=[p.stem for p in MANIFESTS])
def test_example_is_planned(path: Path) -> None:
    """Every example has a plan that can be told and compared."""
    stage = of_spec(load(path))

    assert explain(stage).startswith("Inputs")
    assert fingerprint(stage)["units"] == stage.units
