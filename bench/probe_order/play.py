"""One run of the query: the engine's own stages, blocks, state and manifests in this process, one unit, no Spark."""

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.probe_order.data import SCHEMA, Batches
from joinlib.join.layout import layout
from joinlib.join.probe import Prober
from joinlib.join.rows import Tuples, flat
from joinlib.join.unit import Blocks, UnitJoin
from joinlib.plan import SourceInput, build
from joinlib.route.split import prepare
from joinlib.state.manifest import decode, empty
from joinlib.state.run import LiveRun
from joinlib.state.tuning import Tuning
from joinlib.state.unit import hold


@dataclass(frozen=True)
class Run:
    """What one run took."""

    cpu: float  # seconds, all batches
    tuples: int  # found by all probes: the work that the order decides on
    results: int
    manifest: int  # bytes of probe orders
    batches: tuple[float, ...]  # CPU seconds of each


class Counting(Prober):
    """Counts what probes find; costs an addition a chunk, with every rule alike."""

    tuples = 0

    def _found(self, tuples: Tuples, bound: frozenset[int], side: int) -> Iterator[tuple[LiveRun, Tuples]]:
        for live, longer in super()._found(tuples, bound, side):
            Counting.tuples += len(longer)
            yield live, longer


def sql(order: Sequence[str]) -> str:
    """The four-table query of both papers, with its inputs in this order."""
    first, *others = order
    columns = ", ".join(f"{n}.v AS {n}_v" for n in sorted(order))
    return f"SELECT {first}.k, {columns} FROM {first} " + " ".join(
        f"JOIN {n} ON {n}.k = {first}.k" for n in others
    )


def played(order: Sequence[str], batches: Batches, rule: str, cycle: int = 4) -> Run:
    """The stream from beginning to end."""
    stage = build(sql(order), dict.fromkeys(order, SourceInput(SCHEMA)), units=1)
    tuning, folder = Tuning(probe_order=rule, probe_cycle=cycle), Path(tempfile.mkdtemp())
    root = layout(stage.tree, stage.inputs, stage.above, 64, stage.index)
    sides = [s for op in root.operators() for s in op.sides]
    data, results, took = empty(len(sides), len(order)).encode(), 0, []
    Counting.tuples = 0
    try:
        for number, rows in enumerate(batches):
            began, before = time.process_time(), decode(data)
            blocks = Blocks([_block(p, rows[p.source], number) for p in stage.inputs], ())
            with hold(folder / "s", folder / "i", stage.skip_bits, sides, tuning, before) as unit:
                join = UnitJoin(root, stage.inputs, stage.timed, stage.final_close, tuning, unit, before)
                for found in join.run(number, blocks):
                    for column in stage.select:
                        flat(column.value.evaluate(found.column, len(found)))
                    results += len(found)
            data = join.manifest.encode()
            took.append(time.process_time() - began)
    finally:
        shutil.rmtree(folder)
    return Run(sum(took), Counting.tuples, results, size(data), tuple(took))


def size(data: bytes) -> int:
    """Bytes of a manifest that are probe orders."""
    import orjson

    return len(orjson.dumps(decode(data).probes))


def _block(plan: Any, rows: pa.RecordBatch, number: int) -> tuple[int, int, pa.RecordBatch, int]:
    return plan.number, 0, prepare(plan, rows.select(plan.read), number), 0
