"""Messages of a peek become rows of each input. Pure.

    messages ──walk──► those that count ──by table──► tuples ──columns──► rows with weights, of each input over it

One decoder reads one peek from its beginning, because what a table looks like is said at its first change. Of
an input with a key, an update is +1, with a -1 for the old key if that has changed, and a deletion is -1. Of
one without a key, an update is -1 for the old row and +1 for the new one, nothing if no column that is read has
changed. Cost: O(bytes of messages), in compiled loops and Arrow casts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from joinlib.arrays import I32, I64
from joinlib.errors import InputError
from joinlib.model.inputs import UNCHANGED, WEIGHT
from joinlib.source.fit import fits
from joinlib.source.postgres import columns, relation, wire
from joinlib.source.postgres.config import PostgresLogConfig
from joinlib.source.postgres.relation import FULL, Relation

_AT_ONCE = 65_536  # messages of one table that become one record batch
_FORMAT = "not in the format of pgoutput, version 1"
_ANEW = "what was written before cannot be read: start with a new checkpoint and a new slot"


@dataclass(frozen=True)
class Snapshot:
    """Which transactions a snapshot holds: those below `xmax` that were not running, and were committed."""

    xmin: int
    xmax: int
    running: tuple[int, ...]
    until: int  # what it holds was committed before this position

    @classmethod
    def parsed(cls, text: str, until: int) -> "Snapshot":
        """Return the snapshot that pg_current_snapshot() gives as text."""
        xmin, xmax, running = text.split(":")
        return cls(int(xmin), int(xmax), tuple(int(x) for x in running.split(",") if x), until)

    @property
    def text(self) -> str:
        """The text that `parsed` takes."""
        return f"{self.xmin}:{self.xmax}:{','.join(map(str, self.running))}"

    @cached_property
    def numbers(self) -> I64:
        return np.array([self.xmin, self.xmax, *self.running], np.int64)


@dataclass(frozen=True)
class Target:
    """An input, as the decoder needs it."""

    config: PostgresLogConfig
    schema: pa.Schema
    table: tuple[str, str]  # schema and name
    bases: Mapping[int, int] = field(default_factory=dict)  # the types of which domains are made

    @property
    def place(self) -> str:
        return self.config.server.place

    @property
    def name(self) -> str:
        return ".".join(self.table)

    @cached_property
    def rows(self) -> pa.Schema:
        """The schema of the rows: values may be NULL in a deletion, or where they were not sent."""
        plain = [f.with_nullable(True) for f in self.schema]
        made = [UNCHANGED, WEIGHT] if self.config.upsert else [WEIGHT]
        return pa.schema([*plain, *(pa.field(name, pa.int64(), nullable=False) for name in made)])


class TableView:
    """How the columns of a table at one moment become those of an input."""

    def __init__(self, target: Target, table: Relation) -> None:
        names = target.schema.names
        there = table.columns
        self.target = target
        self.problem = _problem(target, table)
        self.place: I64 = np.array(
            [names.index(a.name) if a.name in names else -1 for a in table.attributes], np.int64
        )
        self.kinds = [_base(target, there[n].kind) if n in there else 0 for n in names]
        held = [n in there and (there[n].identity or table.identity == FULL) for n in names]
        self.identity: wire.U8 = np.array(held, np.uint8)
        key = [names.index(k) for k in target.config.key] or range(len(names))
        self.key: I64 = np.array(key, np.int64)


def _base(target: Target, kind: int) -> int:
    return target.bases.get(kind, kind)


def _problem(target: Target, table: Relation) -> str | None:
    """Return why changes of the table cannot be rows of the input; None if they can."""
    there, name = table.columns, f"table {target.name}"
    for wanted in target.schema:
        if wanted.name not in there:
            return (
                f"{name} has no column '{wanted.name}' any more, or does not publish it; it has"
                f" {', '.join(there)}. Add it again under this name and type, or correct the schema: {_ANEW}"
            )
        if not readable(_base(target, there[wanted.name].kind), wanted.type):
            return (
                f"column '{wanted.name}' of {name} has another type now, which does not fit {wanted.type};"
                f" change it back, or correct the schema: {_ANEW}"
            )
    lacking = [k for k in target.config.key if not there[k].identity]
    if lacking and table.identity != FULL:
        return f"the replica identity of {name} does not hold '{lacking[0]}' of upsert.key; {_full(target)}: {_ANEW}"
    if not target.config.upsert and table.identity != FULL:
        return f"{name} does not send old rows whole; {_full(target)}: {_ANEW}"
    return None


def _full(target: Target) -> str:
    return f"run ALTER TABLE {target.name} REPLICA IDENTITY FULL"


def readable(kind: int, want: pa.DataType) -> bool:
    """Return whether every value of a type of the database, by its number, is one of the declared type."""
    if pt.is_string(want):
        return True
    if kind == columns.NUMERIC:
        return bool(pt.is_decimal(want))
    if kind in columns.PLAIN:
        return fits(columns.PLAIN[kind], want)
    return bool(pt.is_list(want)) and not pt.is_nested(want.value_type)


class LogDecoder:
    """Decodes the messages of one peek, batch after batch."""

    def __init__(self, targets: Sequence[Target], read: int, snapshot: Snapshot) -> None:
        self._targets, self._read, self._snapshot = targets, read, snapshot
        self._views: dict[int, list[TableView]] = {}
        self._keep = False
        self.end = read  # where the last transaction of the messages so far ends

    def decode(self, messages: pa.BinaryArray) -> Iterator[tuple[Target, pa.RecordBatch]]:
        """Yield the rows of the next messages, for each input in order.

        Raises:
            InputError: A change cannot be rows of an input.
        """
        raw, starts = _bytes(messages)
        ops = np.empty(len(messages), np.uint8)
        tables = np.empty(len(messages), np.int64)
        self._keep, self.end = wire.walk(
            raw, starts, self._read, self._snapshot.until, self._snapshot.numbers, self._keep, self.end, ops,
            tables,
        )  # fmt: skip
        if self.end < 0:
            raise self._strange()
        rare = np.flatnonzero((ops == wire.RELATION) | (ops == wire.TRUNCATE))
        begin = 0
        for at in [*rare.tolist(), len(messages)]:
            part = slice(begin, at)
            for number, found in _by_table(ops[part], tables[part], begin):
                for view in self._views.get(number, ()):
                    yield from _rows(view, raw, starts, found)
            if at < len(messages):
                self._note(int(ops[at]), messages[at].as_py())
            begin = at + 1

    def _note(self, kind: int, message: bytes) -> None:
        """Take in what a message says of tables."""
        try:
            said = relation.parse(message) if kind == wire.RELATION else relation.truncated(message)
        except (ValueError, IndexError):
            raise self._strange() from None
        if isinstance(said, Relation):
            self._views[said.number] = [TableView(t, said) for t in self._targets if t.table == said.table]
            return
        for number in said:
            for view in self._views.get(number, ()):
                target = view.target
                raise InputError(
                    f"{target.place}: table {target.name} was truncated, and its log does not say which rows"
                    f" that deleted; use DELETE instead. To go on: {_ANEW}"
                )

    def _strange(self) -> InputError:
        return InputError(f"{self._targets[0].place}: the log is {_FORMAT}")


def _bytes(messages: pa.BinaryArray) -> tuple[wire.U8, I32]:
    _, offsets, data = messages.buffers()
    starts = np.frombuffer(offsets, np.int32)[messages.offset : messages.offset + len(messages) + 1]
    return np.frombuffer(data if data is not None else b"", np.uint8), starts


def _by_table(ops: wire.U8, tables: I64, first: int) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Yield the changes of each table, as numbers of messages, in order."""
    changes = np.flatnonzero(ops)
    about = tables[changes]
    for number in np.unique(about).tolist():
        found = changes[about == number] + first
        for at in range(0, len(found), _AT_ONCE):
            yield number, found[at : at + _AT_ONCE]


def _rows(
    view: TableView, raw: wire.U8, starts: I32, messages: I64
) -> Iterator[tuple[Target, pa.RecordBatch]]:
    target = view.target
    if view.problem is not None:
        raise InputError(f"{target.place}: {view.problem}")
    most = 2 * len(messages)
    begins = np.empty((len(target.schema), most), np.int64)
    lengths = np.full((len(target.schema), most), wire.NULL, np.int64)
    weights, unchanged = np.empty(most, np.int64), np.zeros(most, np.int64)
    count, word = wire.tuples(
        raw, starts, messages, view.place, view.identity, view.key, target.config.upsert, begins, lengths,
        weights, unchanged,
    )  # fmt: skip
    if word != wire.FINE:
        raise InputError(f"{target.place}: {_said(target, word)}")
    if not count:
        return
    arrays = []
    for i, wanted in enumerate(target.schema):
        values = columns.Values(raw, begins[i, :count], lengths[i, :count])
        found = columns.column(target.place, wanted, view.kinds[i], values)
        _check_null(target, wanted, found, weights[:count], unchanged[:count] >> min(i, 62) & 1)
        arrays.append(found)
    made = [unchanged, weights] if target.config.upsert else [weights]
    arrays += [pa.array(numbers[:count]) for numbers in made]
    yield target, pa.RecordBatch.from_arrays(arrays, schema=target.rows)


def _check_null(target: Target, wanted: pa.Field, found: pa.Array, weights: I64, absent: I64) -> None:
    if wanted.nullable or not found.null_count:
        return
    null = pc.is_null(found).to_numpy(zero_copy_only=False)
    if bool((null & (weights > 0) & (absent == 0)).any()):
        raise InputError(
            f"{target.place}: column '{wanted.name}' is declared NOT NULL, but is NULL in table {target.name};"
            f" remove NOT NULL from the schema: it takes a new checkpoint and a new slot"
        )


def _said(target: Target, word: int) -> str:
    if word == wire.NOT_FULL:
        return f"a change of table {target.name} came without the old row; {_full(target)}: {_ANEW}"
    if word == wire.UNKNOWN:
        return (
            f"the key of a row of table {target.name} was changed, and its large values (TOAST) were not sent"
            f" with it; {_full(target)}: {_ANEW}"
        )
    return f"the log of table {target.name} is {_FORMAT}"
