"""Windows of the spec that make no sense; those that only the planner can judge are refused by it."""

from typing import Any

import pytest
from pydantic import ValidationError

from joinlib.spec.model import JoinSettings


@pytest.mark.parametrize(
    "join",
    [
        {"window": {"rows": 0}},
        {"window": {"rows": -5}},
        {"window": {}},
        {"retention": "-5s"},
        {"retention": "0.5h"},
    ],
)
def test_a_window_is_positive(join: dict[str, Any]) -> None:
    """Refused by the model, and so by the API server."""
    with pytest.raises(ValidationError):
        JoinSettings.model_validate(join)
