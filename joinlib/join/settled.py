"""Settles the changes of one side of a join: what a batch adds and deletes, as one sum of changes.

    changes of the batch ─► sum of weights of equal rows ─► deletions kill their rows ─► changes to probe, rows to add

A deletion finds its row, which is marked dead: probes skip it and merges leave it out, so state is bounded by
what lives. A deletion without its row is left out of the changes, so that it takes nothing back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from joinlib.arrays import I64
from joinlib.join.rows import concat
from joinlib.route.content import consolidated, unweighted, weighted, weights
from joinlib.state.side import Arrival, Side

Missing = Callable[[pa.RecordBatch, I64], None]  # is told the deletions that had no row, and how many of each
Settle = Callable[[int, list[Arrival]], list[Arrival]]  # of a side, by its number, when its turn comes


@dataclass(frozen=True)
class Origin:
    """Where the changes of a side come from.

    sourced: the rows come from an input of the query, so that a deletion without its row is left out.
    missing: is told of such deletions; raises if they are an error.
    """

    missing: Missing
    sourced: bool


def settled(parts: Sequence[Arrival], side: Side, origin: Origin) -> list[Arrival]:
    """Return the sum of the changes for each role of rows, after it has deleted what they delete."""
    found = []
    for role in dict.fromkeys((part.stored, part.probing) for part in parts):
        own = [part for part in parts if (part.stored, part.probing) == role]
        rows = consolidated(concat([part.rows for part in own], own[0].rows.schema), False, placed=True)
        part = replace(own[0], rows=rows, written=None)
        if part.rows.num_rows:
            found.append(_applied(part, side, origin) if part.stored else part)
    return [part for part in found if part.rows.num_rows]


def _applied(part: Arrival, side: Side, origin: Origin) -> Arrival:
    """Delete what the changes delete; return them with the rows that are to be added."""
    amounts = weights(part.rows)
    gone = np.flatnonzero(amounts < 0)
    if len(gone):
        stored = pa.record_batch(
            [part.rows.column(name) for name in side.config.schema.names], side.config.schema
        )
        missing = side.delete(stored.take(pa.array(gone)), -amounts[gone])
        if missing.any() and origin.sourced:
            origin.missing(stored.take(pa.array(gone[missing > 0])), missing[missing > 0])
            amounts = amounts.copy()
            amounts[gone] += missing
            there = np.flatnonzero(amounts)
            part = replace(part, rows=weighted(part.rows.take(pa.array(there)), amounts[there]))
            amounts = amounts[there]
    return replace(part, added=_added(part.rows, amounts, side))


def _added(rows: pa.RecordBatch, amounts: I64, side: Side) -> pa.RecordBatch:
    """Return the rows that came, each as often as its weight says, in the columns of the side."""
    plain = unweighted(rows)
    if (amounts == 1).all():
        return plain
    times = np.maximum(amounts, 0)
    return plain.take(pa.array(np.repeat(np.arange(len(times)), times)))
