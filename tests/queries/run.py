"""Runs a query on the product's own path, in this process, with trouble; looks at its contents after every tenth of its rows.

python -m tests.queries.run tpch-q3 tpcds-q1 ...     says what of each is not as DuckDB has it
"""

import sys
import time
from collections.abc import Iterator
from random import Random

from joinlib.model.tuning import Tuning
from tests.laws.changelog import Changelog
from tests.laws.harness import SMALL
from tests.laws.product import Course, Product, own_folder
from tests.queries.compare import differences
from tests.queries.corpus import BENCHMARKS, Query, queries, query
from tests.queries.data import TENTHS, Data, data
from tests.queries.oracle import expected
from tests.queries.spec import SIDE, document, write


def course(seed: int) -> Course:
    """Other partitions in some batches; some are run twice, before some all processes are new."""
    random = Random(seed)
    some = [frozenset(random.sample(range(TENTHS), 2)) for _ in range(2)]
    partitions = tuple(random.choice((1, 2)) for _ in range(4))
    return Course(partitions, twice=some[0], restart=some[1], seed=seed)


def wrong(asked: Query, seed: int = 0, tuning: Tuning = SMALL, strategy: str = "auto") -> Iterator[str]:
    """Runs it whole; tells each batch after which its contents are not the answer over the rows read so far."""
    rows = data(asked)
    with own_folder() as folder:
        write(rows, folder)
        run = Product(document(asked, folder, strategy), tuning, course(seed))
        seen = Changelog(folder / "out")
        for batch in run.batches():
            seen.batch(batch, units_apart=False)
            if told := differences(expected(asked, _read(run, rows)), seen.answer):
                yield f"batch {batch}: {told}"
        if run.batch < TENTHS:
            yield f"{run.batch} batches for {TENTHS}"


def _read(run: Product, rows: Data) -> dict[str, object]:
    """What has been read of each table."""
    tables = rows.tables
    return {n: t if n in SIDE else t.slice(0, run.read(n)) for n, t in tables.items()}


def _told(asked: Query) -> str:
    began = time.perf_counter()
    try:
        found = next(wrong(asked), "equal")
    except Exception as crash:  # noqa: BLE001 - the others are to be run as well
        found = f"{type(crash).__name__}: {crash}"
    return f"{asked.title:12} {time.perf_counter() - began:5.1f} s  {' '.join(found.split())[:400]}"


def main() -> None:
    """Runs those named, or all of a benchmark."""
    for name in sys.argv[1:] or BENCHMARKS:
        for asked in queries(name) if name in BENCHMARKS else [query(name)]:
            sys.stdout.write(_told(asked) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
