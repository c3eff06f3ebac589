"""Who goes when there are too many executors."""

import pytest

from joinlib.spark.executors import leavers


@pytest.mark.parametrize(
    ("ready", "total", "rows", "gone"),
    [
        (["1", "2", "3"], 3, {}, []),
        (["1", "2", "3"], 5, {}, []),
        (["1", "2", "10"], 2, {}, ["10"]),
        (["1", "2", "3"], 1, {"1": 5, "2": 9, "3": 7}, ["1", "3"]),
        (["1", "2", "3"], 2, {"1": 5, "2": 9}, ["3"]),
        (["1", "2", "3"], 1, {"1": 5, "2": 5, "3": 5}, ["3", "2"]),
    ],
)
def test_leavers(ready: list[str], total: int, rows: dict[str, int], gone: list[str]) -> None:
    """Those with the least state, of equals the newest (10 is newer than 2); nobody when there are too few."""
    assert leavers(ready, total, rows) == gone
