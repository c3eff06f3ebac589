"""Queries of every kind on Spark, killed at random moments: what each batch leaves is DuckDB's answer.

STREAMJOIN_FAULT_SEED: which moments.
"""

import os
import random
import time
from pathlib import Path

import orjson
import pytest

from tests.laws.changelog import Changelog
from tests.queries.compare import differences
from tests.queries.corpus import Query, query
from tests.queries.data import TENTHS, Data, data
from tests.queries.oracle import expected
from tests.queries.spec import SIDE, content, write
from tests.spark.faults.flowing import Flowing

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
SEED = int(os.environ.get("STREAMJOIN_FAULT_SEED", random.randrange(10**6)))
KILLS = 2


class Job(Flowing):
    """A query's folder, and its runs."""

    def __init__(self, asked: Query, folder: Path) -> None:
        self.asked, self.folder, self.runs = asked, folder, []
        self.data: Data = data(asked)
        write(self.data, folder)
        (folder / "spec.yaml").write_bytes(orjson.dumps(content(asked)))

    def check(self) -> None:
        """Batch n has read the first n + 1 files of each table."""
        seen, out = Changelog(self.folder / "out"), self.folder / "out"
        count = max(TENTHS, *(int(folder.name[6:]) + 1 for folder in out.glob("batch=*")))
        for batch in range(count):
            seen.batch(batch, units_apart=False)
            read = self.data.after(min(batch + 1, TENTHS))
            told = {n: self.data.tables[n] if n in SIDE else t for n, t in read.items()}
            assert not differences(expected(self.asked, told), seen.answer), f"after batch {batch}"


KINDS = ["tpch-q18", "tpch-q21", "nexmark-q5", "nexmark-q6"]  # one of them; STREAMJOIN_QUERIES=all: all
ASKED = KINDS if os.environ.get("STREAMJOIN_QUERIES") == "all" else KINDS[2:3]


@pytest.mark.parametrize("title", ASKED)
def test_any_process_at_any_moment(title: str, tmp_path: Path) -> None:
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(f"{SEED} {title}")
    job = Job(query(title), tmp_path)
    try:
        for _ in range(KILLS):
            run = job.begin("--until-done")
            job.until_it_flows(run)
            time.sleep(draw.random())
            victim = draw.choice(("worker", "driver", "jvm"))
            print(victim)
            run.kill(victim)
            run.kill_all()
            run.end()
        assert job.begin("--until-done").end() == 0, (tmp_path / "stderr.txt").read_text()[-2000:]
        job.check()
    finally:
        job.close()
