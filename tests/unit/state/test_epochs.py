"""Epochs. Law: no two runs have one, and an older run can tell that it is over."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from joinlib.errors import NotReady
from joinlib.state import epochs


def test_of_two_runs_the_older_one_ends(tmp_path: Path) -> None:
    """The error says why; files of earlier epochs do not pile up."""
    states = tmp_path / "state"
    first = epochs.take(states, synced=True)
    epochs.check(states, first)
    second = epochs.take(states, synced=False)
    assert second == first + 1
    epochs.check(states, second)
    with pytest.raises(NotReady, match="another run has taken over"):
        epochs.check(states, first)
    assert len(list((states / "epochs").iterdir())) == 1


def test_runs_that_begin_at_once_have_different_ones(tmp_path: Path) -> None:
    """Nothing but the folder keeps them apart."""
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda _: epochs.take(tmp_path, synced=False), range(40)))
    assert len(set(taken)) == 40


def test_what_is_no_run_is_never_over(tmp_path: Path) -> None:
    """The Python API has no lock either."""
    epochs.check(tmp_path, epochs.NONE)
