"""The bench of decisions measures decisions: of both wants, each of which wins."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[3] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script, by a name that nobody else shall find."""
    monkeypatch.syspath_prepend(str(BENCH))
    yield importlib.import_module("decide")
    del sys.modules["decide"]


def test_both_wants_are_computed(bench: ModuleType) -> None:
    """Of each job, by the operator's own decision; half of the jobs change for each of them."""
    seconds, by = bench.measured([bench.job(number, 4) for number in range(4)], rounds=2)
    assert by == {"state": 2, "lag": 2}
    assert len(seconds) == len(bench.PARTS)


def test_no_figure_is_missing(bench: ModuleType) -> None:
    """Without arrivals the lag would want nothing, and the bench would measure less."""
    job = bench.job(1, 4)
    silent = job.answer.replace(b'"arrival"', b'"departure"')
    with pytest.raises(AssertionError):
        bench.period(bench.dataclasses.replace(job, answer=silent))
