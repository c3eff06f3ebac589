"""Rows that change: what the operation of a row means, as its weight.

    op, amount                      amount, $weight              insert, I, +I, U+, +U, update_postimage, +1    +1
    insert, 5            ──►        5, 1                         delete, D, -D, U-, -U, update_preimage, -1     -1
    delete, 5                       5, -1

Of an upsert, +1 means that this is now the row of its key, and -1 that the key is gone. What the row was
before (`update_preimage`) is then not needed and left out. Law: every row gets its weight, or is named. Cost:
one pass over the column with the operation, and over those of the key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import InputError
from joinlib.model.inputs import UNCHANGED, WEIGHT
from joinlib.source.fit import fitted

CAME = ("insert", "update_postimage", "I", "U+", "+I", "+U", "+1")
WENT = ("delete", "D", "-D", "-1")
BEFORE = ("update_preimage", "U-", "-U")  # what an updated row was: it went, too
_SHOWN = 20  # the longest word that an error repeats
Weights = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowChanges:
    """How the rows of an input say that they came or went. Frozen, picklable."""

    op: str | None  # the column with the operation; None: every row came
    key: tuple[str, ...] = ()  # of an upsert, never NULL; empty: rows are told apart by all their columns

    def read(self, columns: Sequence[str]) -> list[str]:
        """Return the columns to read where `columns` are asked for."""
        own = (self.op,) if self.op else ()
        return list(dict.fromkeys([*columns, *self.key, *own]))

    def readable(self, schema: pa.Schema) -> pa.Schema:
        """Return the declared schema as rows are read: a deletion of a key may have no other values."""
        return pa.schema([f.with_nullable(True) for f in schema]) if self.key else schema

    def weights(self, place: str, rows: pa.RecordBatch) -> Weights:
        """Return +1 or -1 for each row, by its operation; 0 for one that is left out.

        Raises:
            InputError: An operation is NULL or unknown.
        """
        if self.op is None:
            return np.ones(rows.num_rows, np.int64)
        op = rows.column(self.op)
        words, weights = _words(op.type, upsert=bool(self.key))
        at = pc.index_in(op, value_set=words)
        if at.null_count:
            row = pc.index(pc.is_null(at), True).as_py()
            what = f"column '{self.op}' {_shown(op[row].as_py())}, which is no operation"
            known = ", ".join(map(str, words.to_pylist()))
            raise InputError(f"{place}: {what} (row {row} of those); write one of {known}")
        return weights[at.to_numpy()]

    def settled(
        self,
        place: str,
        rows: pa.RecordBatch,
        weights: Weights,
        want: pa.Schema,
        masks: Weights | None = None,
    ) -> pa.RecordBatch:
        """Return the asked columns of the rows that count, with their weights.

        Args:
            place: Where the rows are from, for errors.
            rows: The rows, with the columns that `read` names.
            weights: As `weights` returns them.
            want: The asked columns, as declared.
            masks: Of upserts, the columns of each row whose values were not sent.

        Raises:
            InputError: A key is NULL, or a value that is declared NOT NULL is, in a row that came.
        """
        if not weights.all():
            kept = np.flatnonzero(weights)
            rows, weights = rows.take(pa.array(kept)), weights[kept]
            masks = masks if masks is None else masks[kept]
        for name in self.key:
            if rows.column(name).null_count:
                row = pc.index(pc.is_null(rows.column(name)), True).as_py()
                raise InputError(
                    f"{place}: column '{name}' is NULL, but belongs to upsert.key (row {row} of those)"
                )
        if self.key:
            _check_present(place, rows, weights, want, masks)
        mask = [] if masks is None else [(UNCHANGED, masks)]
        columns = [*(rows.column(f.name) for f in want), *(pa.array(m) for _, m in mask), pa.array(weights)]
        names = [pa.field(n, pa.int64()) for n in (*(n for n, _ in mask), WEIGHT)]
        return pa.record_batch(columns, pa.schema([*self.readable(want), *names]))

    def changed(self, place: str, rows: pa.RecordBatch, want: pa.Schema) -> pa.RecordBatch:
        """Return rows as read, as the asked columns and their weights."""
        return self.settled(place, rows, self.weights(place, rows), want)


def _check_present(
    place: str, rows: pa.RecordBatch, weights: Weights, want: pa.Schema, masks: Weights | None
) -> None:
    """Check the columns that are declared NOT NULL, in the rows that came with all their values."""
    strict = [f for f in want if not f.nullable and rows.column(f.name).null_count]
    if strict:
        whole = weights > 0 if masks is None else (weights > 0) & (masks == 0)
        fitted(place, rows.filter(pa.array(whole)), pa.schema(strict))


@cache
def _words(kind: pa.DataType, *, upsert: bool) -> tuple[pa.Array, Weights]:
    """Return the operations, as a column of that type, and the weight of each."""
    if pa.types.is_integer(kind):
        return pa.array([1, -1], kind), np.array([1, -1])
    weights = [1] * len(CAME) + [-1] * len(WENT) + [0 if upsert else -1] * len(BEFORE)
    return pa.array([*CAME, *WENT, *BEFORE], kind), np.array(weights)


def _shown(word: str | int | None) -> str:
    """Return what a column holds, for an error: a value of a row only where it can be no more than a word."""
    text = str(word)
    if word is None:
        return "is NULL"
    return (
        f"holds '{text}'" if len(text) <= _SHOWN and text.isascii() and text.isprintable() else "holds a text"
    )
