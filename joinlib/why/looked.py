"""Looks a few rows up in a table as it was kept for the last batch, and notes which rows that loses.

The version that a row met may have been an earlier one; the answer names the one that was asked.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from joinlib.errors import NotReady
from joinlib.expr import Expr
from joinlib.expr.logic import conjuncts
from joinlib.lookup.task import TableTask
from joinlib.lookup.version import Version
from joinlib.model.inputs import HASH
from joinlib.model.joins import Lookup
from joinlib.why.few import Few
from joinlib.why.verdict import Excluded, Failed, NotInTable, Unmatched, Verdict

MOST_PAIRS = 2_000_000
Lose = Callable[[Few, Few, Verdict], None]  # rows before and after, and why those between are lost


@dataclass(frozen=True)
class KeptTable:
    """A version of a table, open."""

    lookup: Lookup
    number: int
    version: Version

    def looked_up(self, few: Few, lose: Lose, dead: str | None) -> Few:
        """Return the rows that the lookup emits. dead: the folder of those for which a condition fails."""
        for probe in self.lookup.asked:
            few = _sound(few, probe, lose, dead)
        both = self._matching(few, lose, dead)
        matched = set(both.origins)
        if self.lookup.kind == "anti":
            left = few.where([origin not in matched for origin in few.origins])
            lose(few, left, Excluded(None))
            return self._where(left, lose, dead)
        if self.lookup.kind == "left":
            alone = [at for at, origin in enumerate(few.origins) if origin not in matched]
            return self._where(both.also(few.alone(alone, both.rows.schema)), lose, dead)
        lose(few, both, NotInTable(self.lookup.table.source, self._keys(few), self.number))
        if self.lookup.kind == "semi":
            both = few.where([origin in matched for origin in few.origins])
        return self._where(both, lose, dead)

    def _matching(self, few: Few, lose: Lose, dead: str | None) -> Few:
        """Return the pairs of rows and rows of the table that match."""
        keys = [_whole(probe.evaluate(few.read, few.rows.num_rows)) for probe in self.lookup.probe]
        there = [at for at in range(few.rows.num_rows) if all(key[at].is_valid for key in keys)]
        rows = self.version.rows
        if keys:
            wanted = [key.take(pa.array(there, pa.int64())) for key in keys]
            found = list(self.version.probe(wanted)) if there else []
            pairs = [(there[a], b) for x, y in found for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        else:
            pairs = [(a, b) for a in there for b in range(rows.num_rows)][:MOST_PAIRS]
        table = Few(pa.Table.from_batches([rows]).drop_columns([HASH]), ((),) * rows.num_rows)
        both = few.beside([a for a, _ in pairs], table, [b for _, b in pairs])
        if self.lookup.predicate is None:
            return both
        both = _sound(both, self.lookup.predicate, lose, dead)
        return both.where(both.truth(self.lookup.predicate))

    def _where(self, few: Few, lose: Lose, dead: str | None) -> Few:
        for clause in conjuncts(self.lookup.where) if self.lookup.where is not None else ():
            few = _sound(few, clause, lose, dead)
            kept = few.where(few.truth(clause))
            lose(few, kept, Unmatched(None, clause.sql))
            few = kept
        return few

    def _keys(self, few: Few) -> str:
        """Return the keys that were looked for, if they are few."""
        alias = self.lookup.table.alias
        names = [
            probe.sql if column is None else f"{alias}.{column}"
            for column, probe in zip(self.lookup.key_columns, self.lookup.probe, strict=True)
        ]
        values = [probe.evaluate(few.read, few.rows.num_rows).to_pylist() for probe in self.lookup.probe]
        found = list(dict.fromkeys(zip(*values, strict=True)))
        shown = (", ".join(f"{n} = {v}" for n, v in zip(names, row, strict=True)) for row in found[:3])
        return " or ".join(shown) + (" or others" if len(found) > 3 else "")


def _sound(few: Few, value: Expr, lose: Lose, dead: str | None) -> Few:
    """Return the rows for which a value does not fail."""
    sound, errors = few.sound(value)
    for error in dict.fromkeys(errors.values()):
        lose(few, few.where(errors.get(at) != error for at in range(few.rows.num_rows)), Failed(error, dead))
    return sound


def kept_table(task: TableTask, number: int | None) -> KeptTable | None:
    """Open a version of a table; None if the table is not kept whole."""
    if number is None or not task.version(number).exists():
        return None
    lookup = task.lookup
    try:
        version = Version(task.version(number), lookup.table.keys)
    except NotReady:
        return None
    return KeptTable(lookup, number, version)


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
