"""Keeps the last row of each key of an upsert, and turns its events into changes.

    event                          the key's row before        changes
    +1  this is the row of its key    none                     +new
    +1  this is the row of its key    old                      -old +new
    -1  the key is deleted            old                      -old

Of several events of a key in a batch the last counts. An event may leave out values that have not changed
(`UNCHANGED`): they are those of the event before it, or of the stored row.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import I64
from joinlib.errors import InputError
from joinlib.join.probe import Prober
from joinlib.join.rows import Picked, Tuples, concat
from joinlib.join.settled import Origin, settled
from joinlib.model.inputs import UNCHANGED
from joinlib.model.operator import Operator
from joinlib.route.content import groups, same, weighted, weights
from joinlib.state.side import Arrival, Side

Mask = npt.NDArray[np.bool_]


def latest(
    prober: Prober, batch: int, parts: Sequence[Arrival], missing: Callable[[int], None]
) -> Iterator[Tuples]:
    """Yield the changes that a batch of events makes, and store the keys' new rows.

    missing: is told how many keys were deleted that are not there.
    """
    if not parts:
        return
    op, side = prober.operator, prober.sides[0]
    events = concat([part.rows for part in parts], parts[0].rows.schema)
    order, ends = _by_key(events, op)
    last = order[ends]
    at, old = _stored(side, op, events.take(pa.array(last)))
    lives = weights(events)[last] > 0
    missing(int(np.count_nonzero(~lives)) - int(np.count_nonzero(~lives[at])))
    new = _whole(events, order, ends, (at, old), op, side.config.schema).filter(pa.array(lives))
    changes = pa.concat_batches(
        [weighted(old, np.full(old.num_rows, -1)), weighted(new, np.ones(new.num_rows, np.int64))]
    )
    for part in settled([Arrival(changes)], side, Origin(lambda *_: None, sourced=False)):
        side.insert(batch, part)
        yield Tuples(Picked(part.rows))


def _by_key(events: pa.RecordBatch, op: Operator) -> tuple[I64, I64]:
    """Return the events ordered by key, in their own order within a key, and each key's end in that order."""
    hashes = events.column(0).to_numpy()
    order = np.argsort(hashes, kind="stable")
    starts = groups([events.column(name) for name in op.sides[0].keys], hashes, order)
    return order, np.append(starts[1:], len(order)) - 1


def _stored(side: Side, op: Operator, wanted: pa.RecordBatch) -> tuple[I64, pa.RecordBatch]:
    """Return the stored rows of the keys of `wanted`, and the position of each key; a key has one row at most."""
    keys, schema = op.sides[0].keys, side.config.schema
    places: list[I64] = [np.zeros(0, np.int64)]
    rows: list[pa.RecordBatch] = []
    for live in side.runs:
        positions, numbers = live.of_hashes(wanted.column(0).to_numpy())
        found = live.rows(numbers)
        own = [wanted.column(k).take(pa.array(positions)) for k in keys]
        equal = same(own, [found.column(k) for k in keys], len(positions))
        places.append(positions[equal])
        rows.append(found.filter(pa.array(equal)))
    return np.concatenate(places), concat(rows, schema)


def _whole(
    events: pa.RecordBatch,
    order: I64,
    ends: I64,
    stored: tuple[I64, pa.RecordBatch],
    op: Operator,
    schema: pa.Schema,
) -> pa.RecordBatch:
    """Return the last row of each key, in the columns of the side, with values that were not sent filled in.

    Raises:
        InputError: a value was not sent, and there is no earlier row of its key.
    """
    last = events.take(pa.array(order[ends]))
    columns = {name: last.column(name) for name in schema.names}
    masks = events.column(UNCHANGED).to_numpy() if op.partial else np.zeros(0, np.int64)
    for name, bit in op.partial:
        if not (masks >> bit & 1).any():
            continue
        sent = (masks[order] >> bit & 1 == 0) | (weights(events)[order] < 0)
        columns[name] = _filled(events.column(name), sent, order, ends, (stored[0], stored[1].column(name)))
    return pa.record_batch([columns[name] for name in schema.names], schema)


def _filled(values: pa.Array, sent: Mask, order: I64, ends: I64, stored: tuple[I64, pa.Array]) -> pa.Array:
    """Return the last value of a column that was sent for each key, or else the stored one."""
    known = np.maximum.accumulate(np.where(sent, np.arange(len(order)), -1))
    starts = np.concatenate([[0], ends[:-1] + 1])
    inside = known[ends] >= starts
    found = values.take(pa.array(order[np.maximum(known[ends], 0)]))
    before = np.full(len(ends), -1)
    before[stored[0]] = np.arange(len(stored[0]))
    if (~inside & (before < 0)).any():
        raise InputError(
            "an update left out values that have not changed, but its key has no earlier row; begin with a snapshot"
            " of all rows"
        )
    old = stored[1].take(pa.array(before, mask=before < 0))
    return pc.if_else(pa.array(inside), found, old)
