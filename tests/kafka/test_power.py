"""The power of the job's machine fails while results go to a topic, whose brokers live elsewhere: readers see each result once.

STREAMJOIN_POWER_CUTS: how many cuts (one unless told); STREAMJOIN_FAULT_SEED: when.
"""

import os
import random
import time
from pathlib import Path

import pytest

from tests.kafka.broker import Broker
from tests.kafka.test_kills import SQL, Feed, sink
from tests.spark.faults.disk import disk
from tests.spark.faults.drawn import SEED

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
CUTS = int(os.environ.get("STREAMJOIN_POWER_CUTS", "1"))
FILES = 40  # of each input, a file a batch: more than a run reads before its power fails


def test_each_result_once_after_power_cuts(own_broker: Broker, tmp_path: Path) -> None:
    """What was committed before a cut is neither missing nor there again."""
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(SEED)
    topic = own_broker.topic("results", 3)
    with disk(tmp_path) as drive, sink(drive.folder / "job", own_broker, topic, most=1) as job:
        feed = Feed(job.trial, random.Random(SEED))
        for _ in range(FILES):
            feed.one()
        drive.sync()
        for at in range(CUTS):
            run = job.begin()
            job.until_it_flows(run, patience_s=300)
            time.sleep(draw.uniform(0, 2))
            begun = job.begun
            drive.fail(run, job.folder / "indexes")
            print(f"cut {at}: batch {begun} was begun, {job.begun} after, {job.results().total()} results")
        last = job.begin("--until-done")
        assert last.end() == 0, last.last_words()
        assert job.results() == job.trial.expected(SQL)
