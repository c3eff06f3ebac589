"""Tests that share something costly run on one worker, and long ones begin first."""

import pytest

from tests.schedule import by_length, group


@pytest.mark.parametrize(
    ("nodeid", "together"),
    [
        ("tests/unit/a/test_b.py::test_c[full]", "tests/unit/a/test_b.py"),
        ("tests/spark/faults/test_power.py::test_cut[stages]", "tests/spark/faults/stages"),
        ("tests/spark/faults/test_points.py::test_joins[stages]", "tests/spark/faults/stages"),
        ("tests/spark/faults/test_points.py::test_every_point", "tests/spark/faults/full"),
        ("tests/spark/faults/test_random.py::test_any[full]", "tests/spark/faults/full"),
    ],
)
def test_fault_tests_go_by_kind_of_job_and_others_by_file(nodeid: str, together: str) -> None:
    """So that each kind's undisturbed job is run once."""
    assert group(nodeid) == together


def test_long_files_begin_first() -> None:
    """What is short fills the gaps at the end."""
    names = [f"tests/{f}/test_x.py" for f in ("unit", "spark", "laws", "kafka", "spark/faults")]
    assert [n.split("/", 1)[1] for n in sorted(names, key=by_length)] == [
        f"{f}/test_x.py" for f in ("spark/faults", "kafka", "spark", "laws", "unit")
    ]
