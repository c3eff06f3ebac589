"""Queries of the whole corpus, killed at random moments: what each batch leaves is DuckDB's answer.

STREAMJOIN_KILLED: how many queries (two unless told), or their titles; STREAMJOIN_FAULT_SEED: which queries, victims and
moments, others in every run unless told. A failure shows the seed.
"""

import os
import random
import time
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from tests.laws.changelog import Changelog
from tests.queries.compare import differences
from tests.queries.corpus import BENCHMARKS, Query, queries, query
from tests.queries.data import TENTHS, Data, data
from tests.queries.oracle import expected
from tests.queries.spec import SIDE, content, write
from tests.spark.faults.drawn import SEED
from tests.spark.faults.flowing import Flowing

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
KILLED = os.environ.get("STREAMJOIN_KILLED", "2")
# A batch without Spark takes some hundredths of a second, one on Spark some tenths.
PAUSES_S = (0.02, 0.1, 1.0)
VICTIMS = ("worker", "driver", "jvm")


def asked() -> list[Query]:
    """The queries to be killed; each benchmark is as likely as the others, however many queries it has."""
    if not KILLED.isdigit():
        return [query(title) for title in KILLED.split(",")]
    draw = random.Random(SEED)
    found = dict.fromkeys(draw.choice(queries(draw.choice(BENCHMARKS))) for _ in range(9 * int(KILLED)))
    return list(found)[: int(KILLED)]


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
            told = {n: t if n in SIDE else self._read(n, batch + 1) for n, t in self.data.tables.items()}
            assert not differences(expected(self.asked, told), seen.answer), f"after batch {batch}"

    def _read(self, name: str, files: int) -> pa.Table:
        """So many files of a table; those without rows, of a table of a few, are passed over."""
        counts = [len(rows) for rows in self.data.files(name) if len(rows)]
        return self.data.tables[name].slice(0, sum(counts[:files]))


@pytest.mark.parametrize("one", asked(), ids=lambda q: q.title)
def test_any_process_at_any_moment(one: Query, tmp_path: Path) -> None:
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(f"{SEED} {one.title}")
    job = Job(one, tmp_path)
    try:
        for last in sorted(draw.sample(range(TENTHS - 1), 2)):
            run = job.begin()  # which waits for more files once it has read all: it is there to be killed
            job.until_it_flows(run, patience_s=300, batch=last)
            time.sleep(draw.random() * draw.choice(PAUSES_S))
            victim = draw.choice(VICTIMS)
            print(f"{victim} in batch {job.begun}")
            run.kill(victim)
            run.kill_all()
            assert run.end() != 0, (tmp_path / "stderr.txt").read_text()[-2000:]
        assert job.begin("--until-done").end() == 0, (tmp_path / "stderr.txt").read_text()[-2000:]
        job.check()
    finally:
        job.close()
