"""A job that has run in this process and left its checkpoint, with the logs that Spark would have written."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from joinlib.checkpoint import batches, timeline
from joinlib.checkpoint.identity import identify
from joinlib.checkpoint.timeline import TimelineKeeper
from joinlib.model.tuning import Tuning
from joinlib.spec.model import StreamJoin
from tests.laws.document import written
from tests.laws.product import Course, Product

Files = Mapping[str, Sequence[Sequence[str]]]  # by input: the lines of each file, one file a batch

ORDERS = "order_id BIGINT, customer BIGINT, amount BIGINT, at TIMESTAMP"
PAYMENTS = "order_id BIGINT, paid BIGINT, at TIMESTAMP"
CUSTOMERS = "id BIGINT, region BIGINT, name STRING"
REGIONS = "id BIGINT, label STRING"
PLAIN = Course()
SCHEMAS = {"orders": ORDERS, "payments": PAYMENTS, "customers": CUSTOMERS, "regions": REGIONS}


def document(
    folder: Path,
    sql: str,
    given: Files,
    more: Mapping[str, Any] | None = None,
    of_inputs: Mapping[str, Mapping[str, Any]] | None = None,
) -> StreamJoin:
    """The job of a query over CSV files; `at` is the event time of those that have it. `more`: None takes a field away."""
    inputs = {}
    for name, files in given.items():
        (folder / name).mkdir()
        header = ",".join(column.split()[0] for column in SCHEMAS[name].split(", "))
        for number, lines in enumerate(files):
            (folder / name / f"{number}.csv").write_text("\n".join([header, *lines, ""]))
        read = {"path": name, "format": "csv", "orderBy": "name", "maxFilesPerBatch": 1}
        timed = {"eventTime": {"column": "at", "delay": "10s"}} if " at TIMESTAMP" in SCHEMAS[name] else {}
        inputs[name] = {"schema": SCHEMAS[name], "files": read, **timed, **(of_inputs or {}).get(name, {})}
    spec = {
        "sql": sql,
        "inputs": inputs,
        "output": {"files": {"path": "out"}},
        "checkpoint": {"path": "ck", "sync": False},
        **(more or {}),
    }
    spec = {name: value for name, value in spec.items() if value is not None}
    return written({**spec, "join": {"units": 2, **spec.get("join", {})}}, folder)


def lived(job: StreamJoin, folder: Path, last: int | None = None) -> None:
    """Run a job without closing its inputs, up to batch `last`."""
    for number in living(job, folder):
        if number == last:
            break


def living(
    job: StreamJoin, folder: Path, course: Course = PLAIN, tuning: Tuning | None = None
) -> Iterator[int]:
    """Run a job without closing its inputs; give the number of each batch once it is done.

    Logs and timeline are as the driver leaves them.
    """
    run = _Open(job, tuning or Tuning(), course)
    run.composer.bounded = False
    identify(folder / "ck", "lived", run.plan.pipeline)
    log, keeper = folder / "ck" / "spark", TimelineKeeper(folder / "ck", len(run.plan.pipeline.stateful))
    batches.make(log, synced=False)
    for number in run.batches():
        batches.begin(log, number, orjson.dumps(run.offset).decode(), synced=False)
        if timeline.due(number, run.tuning.retain_batches):
            keeper.keep(before=number)
        batches.finish(log, number, synced=False)
        yield number


class _Open(Product):
    """A run whose inputs may grow, also when its processes are new."""

    def renew(self) -> None:
        super().renew()
        self.composer.bounded = False
