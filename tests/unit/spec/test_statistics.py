"""What a spec may say of the rows of an input."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from joinlib.errors import SpecError
from joinlib.plan.source import InputStatistics
from joinlib.plan.spec import statistics
from joinlib.spec import parse
from joinlib.spec.inputs import Input

FILES = {"files": {"path": "data"}}


def given(**parts: Any) -> Input:
    spec = {
        "inputs": {"orders": {"schema": "id BIGINT, customer BIGINT", **parts}},
        "sql": "SELECT 1",
        "output": {"noop": {}},
        "checkpoint": {"path": "checkpoint"},
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "t"}}
    return parse(yaml.safe_dump({**head, "spec": spec}), "t.yaml", Path("/base")).spec.inputs["orders"]


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ({"rows": 0}, "statistics.rows: "),
        ({"distinct": {"idd": 5}}, "statistics.distinct.idd: no column 'idd' in the schema; did you mean 'id'?"),
        ({"distinct": {"id": 0}}, "statistics.distinct.id: "),
        ({"rows": 5, "distinct": {"id": 6}}, "statistics.distinct.id: is 6, but there are 5 rows; correct one"),
    ],
)  # fmt: skip
def test_refused(said: dict[str, Any], refused: str) -> None:
    with pytest.raises(SpecError) as error:
        given(**FILES, statistics=said)
    assert refused in str(error.value)


def test_what_is_known() -> None:
    """First what the spec says, then what is made, then what was found; the key of an upsert has no value twice."""
    found = InputStatistics(70, most={"id": 60})

    assert statistics(given(**FILES), InputStatistics()) == InputStatistics()
    assert statistics(given(**FILES), found) == found
    assert statistics(given(generator={"rows": 9}), InputStatistics()).rows == 9
    keyed = given(**FILES, upsert={"key": ["id"]}, statistics={"rows": 5, "distinct": {"customer": 2}})
    assert statistics(keyed, found) == InputStatistics(5, {"id": 5, "customer": 2}, {"id": 60})
