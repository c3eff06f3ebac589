"""One run of the query: the engine's own stages, blocks, state and manifests in this process, one unit, no
Spark.
"""

import resource
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from bench.probe_order.data import SCHEMA, Batches
from joinlib.join.arrived import Blocks
from joinlib.join.order.policy import Choices, OrderPolicy
from joinlib.join.probe import Prober
from joinlib.join.rows import Tuples, flat
from joinlib.join.unit import UnitJoin
from joinlib.model.joins import Join, Leaf
from joinlib.model.operator import Operator
from joinlib.model.stage import Stage
from joinlib.model.tuning import Tuning
from joinlib.plan import JoinOptions, SourceInput, build
from joinlib.plan.layout import layout
from joinlib.route.split import prepare
from joinlib.state.manifest import decode, empty
from joinlib.state.unit import hold


def user_s() -> float:
    """CPU seconds so far outside the kernel, whose share depends on which files were removed before and whose memory comes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


@dataclass(frozen=True)
class Run:
    """What one run took."""

    cpu: float  # user seconds, all batches
    tuples: int  # found by all probes: the work that the order decides on
    results: int
    manifest: int  # bytes of probe orders
    probing: float  # CPU seconds of these that probes took
    columns: float  # ... and the columns of results


class Counting(Prober):
    """Counts what probes find, and the CPU seconds that they take; costs little a chunk, with every rule alike."""

    tuples = 0
    seconds = 0.0

    def _found(self, tuples: Tuples, bound: frozenset[int], side: int, apart: bool) -> Iterator[Tuples]:
        began = user_s()
        for longer in super()._found(tuples, bound, side, apart):
            Counting.seconds += user_s() - began
            Counting.tuples += len(longer)
            yield longer
            began = user_s()
        Counting.seconds += user_s() - began


@dataclass(frozen=True)
class Given:
    """In place of `Orders`: those that somebody else chose. Nothing is counted, chosen or kept."""

    orders: list[list[int]]
    batches = cycles = 0

    def watch(self, choices: Choices, policy: OrderPolicy) -> None:
        return None

    def plain(self) -> dict[str, Any]:
        return {}


def sql(order: Sequence[str]) -> str:
    """The four-table query of both papers, with its inputs in this order."""
    first, *others = order
    columns = ", ".join(f"{n}.v AS {n}_v" for n in sorted(order))
    return f"SELECT {first}.k, {columns} FROM {first} " + " ".join(
        f"JOIN {n} ON {n}.k = {first}.k" for n in others
    )


@dataclass
class Play:
    """The query over one unit, whose state is in `folder`."""

    order: Sequence[str]
    folder: Path
    tuning: Tuning
    chain: bool = False  # of binary joins, one above the other, each of which stores what the one below finds
    done: int = 0  # batches
    results: int = 0
    columns: float = 0.0  # CPU seconds of the columns of results
    data: bytes = field(default=b"")  # the manifest

    @cached_property
    def stage(self) -> Stage:
        stage = build(sql(self.order), dict.fromkeys(self.order, SourceInput(SCHEMA)), JoinOptions(units=1))
        return replace(stage, tree=chained(stage.tree)) if self.chain else stage

    @cached_property
    def root(self) -> Operator:
        return layout(self.stage.tree, self.stage.inputs, self.stage.above, self.stage.index)

    def batch(self, rows: dict[str, pa.RecordBatch], orders: list[list[int]] | None = None) -> None:
        """One batch, from blocks to manifest. `orders`: not its own."""
        stage, sides = self.stage, [s for op in self.root.operators() for s in op.sides]
        before = decode(self.data or empty(len(sides), len(stage.inputs)).encode())
        blocks = Blocks([_block(p, rows[p.source], self.done) for p in stage.inputs], ())
        with hold(self.folder / "s", self.folder / "i", stage.skip_bits, sides, self.tuning, before) as unit:
            join = UnitJoin(
                self.root, stage.inputs, stage.timed, stage.final_close, self.tuning, unit, before
            )
            if orders is not None:
                join.orders = {self.root.sides[0].number: Given(orders)}  # type: ignore[dict-item]
            for found in join.run(self.done, blocks):
                began = user_s()
                for column in stage.select:
                    flat(column.value.evaluate(found.column, len(found)))
                self.columns += user_s() - began
                self.results += len(found)
        self.data = join.manifest.encode()
        self.done += 1


def chained(tree: Join | Leaf) -> Join:
    """An n-way inner join of one key as binary ones, left-deep. No exchange: all of them are in one unit."""
    assert isinstance(tree, Join)
    first, *others = zip(tree.inputs, tree.keys, strict=True)
    below, key = first
    for child, own in others:
        below = replace(tree, inputs=(below, child), keys=(key, own))
    assert isinstance(below, Join)
    return below


def played(order: Sequence[str], batches: Batches, tuning: Tuning) -> Run:
    """The stream from beginning to end."""
    play = Play(order, Path(tempfile.mkdtemp()), tuning)
    cpu, Counting.tuples, Counting.seconds = 0.0, 0, 0.0
    try:
        for rows in batches:
            began = user_s()
            play.batch(rows)
            cpu += user_s() - began
    finally:
        shutil.rmtree(play.folder)
    return Run(cpu, Counting.tuples, play.results, size(play.data), Counting.seconds, play.columns)


def size(data: bytes) -> int:
    """Bytes of a manifest that are probe orders."""
    return len(orjson.dumps(decode(data).probes))


def _block(plan: Any, rows: pa.RecordBatch, number: int) -> tuple[int, int, pa.RecordBatch, int]:
    return plan.number, 0, prepare(plan, rows.select(plan.read), number), 0
