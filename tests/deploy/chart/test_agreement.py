"""The API server's rules and the models' are two tellings of one law; the operator asks the models."""

from typing import Any

import pytest
from joinop.admission import Admitted, Rejected, validate

from tests.deploy.chart.documents import BAD, FINE, GOOD, changed

# Only the API server minds: names of Services and the least memory are the cluster's, YAML's "yes" is true to the models.
STRICTER = [("metadata.name", "7-seas"), ("spec.executors.memory", "900Mi"), ("spec.suspend", "yes")]
# Only the operator minds: relative paths are for local runs of the same kind.
LAXER = [("spec.inputs.orders.files.path", "../in")]


@pytest.mark.parametrize(
    ("place", "value", "field", "fix"), BAD, ids=[f"{b[0]}-{n}" for n, b in enumerate(BAD)]
)
def test_what_is_refused_by_one_is_refused_by_the_other(place: str, value: Any, field: str, fix: str) -> None:
    """Should an older definition let it pass."""
    del field, fix

    kind = Admitted if (place, value) in STRICTER else Rejected
    assert isinstance(validate(changed(GOOD, place, value)), kind)


@pytest.mark.parametrize(("place", "value"), FINE, ids=[f"{f[0]}-{n}" for n, f in enumerate(FINE)])
def test_what_is_taken_by_one_is_taken_by_the_other(place: str, value: Any) -> None:
    """What is fine is fine, but for what the API server cannot know."""
    kind = Rejected if (place, value) in LAXER else Admitted
    assert isinstance(validate(changed(GOOD, place, value)), kind)
