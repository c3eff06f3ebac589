"""Kill anything at any moment, again and again: what comes out at last is the answer. A death that did not happen is a failure.

Two kinds of jobs in each run (`drawn`). STREAMJOIN_FAULT_ROUNDS: how many deaths of each (two unless told, four at most).
"""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.faults.drawn import SEED, drawn
from tests.spark.faults.processes import Kind
from tests.spark.faults.scenario import FEATURES, FILES, Run, Scenario, scenario

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
KINDS = ("full", "stages", "groups", "sealing")  # topics as inputs: tests/kafka/test_kills.py
ROUNDS = int(os.environ.get("STREAMJOIN_FAULT_ROUNDS", "2"))
VICTIMS: tuple[Kind | None, ...] = ("worker", "driver", "jvm", "daemon", None)  # None: all of them at once
assert 2 * ROUNDS < FILES, "a round takes two batches at most, and something must be left for the last"


@pytest.mark.parametrize("kind", drawn("random", KINDS, 2))
def test_any_process_at_any_moment(kind: str, tmp_path: Path, undisturbed: Callable[[str], Scenario]) -> None:
    """Each kind of job is killed at random moments of random batches, by all victims in turn over the kinds."""
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(f"{SEED} {kind}")
    first = KINDS.index(kind) * ROUNDS
    with scenario(tmp_path / "job", kind, **FEATURES.get(kind, {})) as job:
        for at in range(first, first + ROUNDS):
            run = job.begin()
            run.until_batches(draw.randrange(2))
            time.sleep(0.2 * draw.random())
            victim = VICTIMS[at % len(VICTIMS)]
            print(f"round {at}: {victim or 'everything'}")
            _kill(run, victim)
            run.until_batches(0)  # one that was idle is not missed: the run goes on
            run.kill_all()
            assert run.end() != 0, "the run was over before it could be killed"
        job.finish()
        job.check(like=undisturbed(kind))


def _kill(run: Run, victim: Kind | None, patience_s: float = 60.0) -> None:
    """Waits for the victim where there is none yet."""
    end = time.monotonic() + patience_s
    while not (run.kill(victim) if victim else run.kill_all()):
        assert run.alive and time.monotonic() < end, f"there was no {victim or 'process'} to kill"
        time.sleep(0.02)
