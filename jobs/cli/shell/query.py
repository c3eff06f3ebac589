"""Runs one query of the prompt, and shows its result while it grows.

main thread   batches ─► contents ─► table           flow thread   Spark: inputs ─► result files
"""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.cli import words
from jobs.cli.run import _user_error
from jobs.cli.screen import table
from jobs.cli.shell.contents import Contents
from jobs.cli.shell.order import order_of
from jobs.flow import Flow, default_cores
from joinlib.compiled import compiled
from joinlib.spec.model import StreamJoin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

_REFRESH_S = 0.1
ROWS = 40  # shown of a result


def run(
    document: StreamJoin, console: "Console", spark: "Callable[[], SparkSession]", log: Path, *, live: bool
) -> None:
    """Run a job until its inputs are read, or with `live` until Ctrl-C; print its result.

    Raises:
        StreamJoinError: It cannot be run, or has failed.
    """
    from rich.console import Group
    from rich.live import Live

    files = document.spec.output.files
    assert files is not None
    out = Path(files.path)
    flow = Flow(compiled(document, default_cores()), until_done=not live, conf={}, spark=spark)
    contents, seen, began = Contents(), set[str](), time.monotonic()
    shown, order = console.is_terminal, order_of(document.spec.sql)
    with Live(console=console, transient=True, auto_refresh=False) as screen:
        flow.start()
        while flow.is_alive():
            try:
                flow.reports(_REFRESH_S)
                contents = added(contents, out, seen)
                if shown:
                    screen.update(
                        Group(table("", contents.first(ROWS, order)), _said(contents, began)), refresh=True
                    )
            except KeyboardInterrupt:
                flow.stop()
        contents = added(contents, out, seen)
    shutil.rmtree(out.parent, ignore_errors=True)
    if flow.error is not None:
        raise _user_error(flow.error, log) from flow.error
    if contents.rows is not None and contents.count:
        console.print(table("", contents.first(ROWS, order)))
    console.print(_said(contents, began), style="dim", highlight=False)


def added(contents: Contents, out: Path, seen: set[str]) -> Contents:
    """Return the contents with the folders of batches that are new; `seen` gets their names."""
    numbered = (f for f in out.glob("batch=*") if f.name not in seen)
    for folder in sorted(numbered, key=lambda f: int(f.name[6:])):
        seen.add(folder.name)
        rows = [pq.read_table(file, partitioning=None) for file in sorted(folder.glob("*.parquet"))]
        if rows:
            contents = contents.after(pa.concat_tables(rows))
    return contents


def _said(contents: Contents, began: float) -> str:
    return f"{words.shown(contents.count, ROWS)}, {words.seconds(time.monotonic() - began)}"
