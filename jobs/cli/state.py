"""`streamjoin state`: SQL over what a checkpoint stores, while the job runs.

    segments of the last batch that is done ─► rows, groups ─► Parquet in a temporary folder ─► a query, in this process

Spark is not started, and nothing of the run is written. Without a query it lists what there is.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow.parquet as pq
from sqlglot import exp

from jobs.cli import words
from jobs.cli.shell.catalog import Catalog, of_inputs
from jobs.cli.shell.contents import Contents
from jobs.cli.shell.order import order_of
from joinlib.checkpoint import batches
from joinlib.checkpoint.planned import in_units, plan_of
from joinlib.compiled import compiled
from joinlib.errors import SpecError, StateError
from joinlib.inprocess import InProcess
from joinlib.spec import ddl
from joinlib.spec.model import StreamJoin
from joinlib.spec.nearest import hint
from joinlib.sql.parse import parse_query
from joinlib.why.kept import StateTable, rows, tables
from joinlib.why.progress import check_known
from joinlib.worker import current

if TYPE_CHECKING:
    from rich.console import Console

Read = TypeVar("Read")
ROWS = 100  # shown of a result


def stored(document: StreamJoin) -> list[StateTable]:
    """Return the tables that the state of a job has.

    Raises:
        SpecError: There is no state.
    """
    pipeline = plan_of(document)
    check_known(document.spec.checkpoint.folder, pipeline)
    if known := tables(pipeline):
        return known
    raise SpecError(
        "the query has no state: it takes each row by itself, and stores none; `streamjoin why` and `whynot` read"
        " the inputs again"
    )


def state(document: StreamJoin, known: Sequence[StateTable], sql: str | None, console: "Console") -> None:
    """Print the rows of a query over the state, or without one which tables there are.

    Raises:
        SpecError: The query cannot be run.
    """
    from jobs.cli.screen import table

    checkpoint = document.spec.checkpoint.folder
    if sql is None:
        lines, _ = _steady(checkpoint, lambda batch: list(_listed(known, checkpoint / "state", batch)))
        console.print("\n".join(lines), highlight=False, markup=False)
        return
    asked = _asked(sql, known)
    _check_columns(sql, asked, document)
    with tempfile.TemporaryDirectory(prefix="streamjoin-state-") as name:
        folder = Path(name)
        inputs, batch = _steady(checkpoint, lambda batch: _copied(asked, checkpoint / "state", batch, folder))
        one_unit = in_units(of_inputs(inputs), 1)  # it runs in one process
        contents = _run(Catalog(one_unit, folder / "query").to_run(sql))
    if contents.rows is not None and contents.count:
        console.print(table("", contents.first(ROWS, order_of(sql))))
    console.print(f"{words.shown(contents.count, ROWS)}, after batch {batch}", style="dim", highlight=False)


def _steady(checkpoint: Path, read: Callable[[int], Read]) -> tuple[Read, int]:
    """Read what the newest batch has left; again if the job has meanwhile deleted some of it."""
    while True:
        batch = batches.done(checkpoint / "spark")
        assert batch is not None
        try:
            return read(batch), batch
        except (StateError, FileNotFoundError):
            if batches.done(checkpoint / "spark") == batch:
                raise


def _listed(known: Sequence[StateTable], states: Path, batch: int) -> Iterator[str]:
    yield f"state after batch {batch}"
    for one in known:
        count = sum(part.num_rows for part in rows(states, batch, one))
        yield f"{one.name}: {words.rows(count)} of stage {one.stage}, kept {one.store.kept}"
        yield f"  {ddl.to_ddl(one.schema)}"


# --- questions ----------------------------------------------------------------------------------------


def _asked(sql: str, known: Sequence[StateTable]) -> list[StateTable]:
    """Return the tables that a query reads."""
    tree = parse_query(sql)
    own = {one.alias.lower() for one in tree.find_all(exp.CTE)}
    read = [one for one in tree.find_all(exp.Table) if one.name.lower() not in own]
    there, names = {one.name.lower(): one for one in known}, [one.name for one in known]
    for table in read:
        if not isinstance(table.this, exp.Identifier):
            raise SpecError(f"{table.this.sql()} is no table of the state; {hint('', names, 'tables')}")
    named = {one.name.lower(): one.name for one in read}
    if not named:
        raise SpecError(f"the query reads no table of the state; {hint('', names, 'tables')}")
    for lower, name in named.items():
        if lower not in there:
            raise SpecError(f"the state has no table {name}; {hint(name, names, 'tables')}")
    return [there[lower] for lower in named]


def _check_columns(sql: str, asked: Sequence[StateTable], document: StreamJoin) -> None:
    """Check that no column is asked for that the input has, and the state does not keep."""
    wanted = {column.name.lower() for column in parse_query(sql).find_all(exp.Column)}
    kept = {name.lower() for one in asked for name in one.schema.names}
    for one in asked:
        had = document.spec.inputs[one.source].arrow_schema.names if one.source else []
        for name in had:
            if name.lower() in wanted - kept:
                raise SpecError(
                    f"column {name} of {one.name} is not kept: the query does not need it once a row has come;"
                    f" kept are {', '.join(one.schema.names)}"
                )


# --- answers ------------------------------------------------------------------------------------------


def _copied(asked: Sequence[StateTable], states: Path, batch: int, folder: Path) -> dict[str, Any]:
    """Copy tables aside; return them as inputs of a spec."""
    inputs = {}
    for one in asked:
        own = folder / "tables" / one.name
        own.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(own / "rows.parquet", one.schema) as writer:
            for part in rows(states, batch, one):
                writer.write_batch(part)
        inputs[one.name] = {
            "schema": ddl.to_ddl(one.schema),
            "files": {"path": str(own), "format": "parquet"},
        }
    return inputs


def _run(job: StreamJoin) -> Contents:
    """Return the whole result of a job over inputs that do not grow."""
    plan = compiled(job, 1)
    folder = plan.join.sinks[0].folder
    assert folder is not None
    run, contents = InProcess(plan), Contents()
    run.composer.bound()
    try:
        while (end := run.next()) is not None:
            for told in run.join(end):
                for name in told.receipt.files:
                    [staged] = folder.rglob(name)
                    contents = contents.after(pq.read_table(staged, partitioning=None))
            run.done(end)
    finally:
        current().close()
        plan.join.forget_local()
    return contents
