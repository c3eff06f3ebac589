"""Kill anything at any moment, again and again: what comes out at last is the answer.

STREAMJOIN_FAULT_ROUNDS: how many deaths (three unless told); STREAMJOIN_FAULT_SEED: which.
"""

import os
import random
import time
from collections.abc import Callable

import pytest

from tests.spark.faults.processes import Kind
from tests.spark.faults.scenario import Scenario

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
ROUNDS = int(os.environ.get("STREAMJOIN_FAULT_ROUNDS", "3"))
SEED = int(os.environ.get("STREAMJOIN_FAULT_SEED", random.randrange(10**6)))
VICTIMS: tuple[Kind | None, ...] = ("worker", "driver", "jvm", "daemon", None)  # None: all of them at once


def test_any_process_at_any_moment(job: Scenario, undisturbed: Callable[[str], Scenario]) -> None:
    """A full join that is killed at random moments of random batches."""
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(SEED)
    victims = draw.sample(VICTIMS, len(VICTIMS))
    for at in range(ROUNDS):
        run = job.begin()
        run.until_batches(draw.randrange(3))
        time.sleep(draw.random())
        victim = victims[at % len(victims)]
        print(f"round {at}: {victim or 'everything'}")
        if victim is None:
            run.kill_all()
        else:
            run.kill(victim)
        run.end()
    job.finish()

    job.check(like=undisturbed(job.kind))
