"""A few rows with what they were made of: numbers of rows of inputs, which every step keeps."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.apart import failing
from joinlib.errors import SpecError
from joinlib.expr import Column, Expr
from joinlib.expr.equality import key

# Numbers of the rows of inputs that a row was made of; ~n: row n, which only a window function has read.
Origin = tuple[int, ...]


def made_of(origin: Origin) -> Origin:
    """Return the rows that a row was made of, without those that only a window function has read."""
    return tuple(number for number in origin if number >= 0)


def whole(rows: pa.Table) -> pa.RecordBatch:
    """Return rows as one record batch."""
    return pa.record_batch([column.combine_chunks() for column in rows.columns], rows.column_names)


@dataclass(frozen=True)
class Few:
    """Rows in memory, each with its origin."""

    rows: pa.Table
    origins: tuple[Origin, ...]

    def take(self, at: Sequence[int]) -> "Few":
        """Return the rows at these positions."""
        return Few(self.rows.take(pa.array(at, pa.int64())), tuple(self.origins[n] for n in at))

    def where(self, mask: Iterable[bool]) -> "Few":
        """Return the rows for which it is true."""
        return self.take([at for at, one in enumerate(mask) if one])

    @property
    def origin(self) -> Origin:
        """What all rows together were made of."""
        return tuple(dict.fromkeys(number for origin in self.origins for number in origin))

    @property
    def read(self) -> Callable[[str], Column]:
        """What gives a column by its name."""
        return lambda name: self.rows.column(name).combine_chunks()

    def truth(self, condition: Expr) -> list[bool]:
        """Return for which rows a condition is true: neither false nor NULL."""
        value = condition.evaluate(self.read, self.rows.num_rows)
        return [bool(one) for one in pc.fill_null(value, False).to_pylist()]

    def sound(self, condition: Expr) -> "tuple[Few, dict[int, str]]":
        """Return the rows for which a condition does not fail, and what it says of the others, by position."""
        try:
            condition.evaluate(self.read, self.rows.num_rows)
        except SpecError:
            at = list(range(self.rows.num_rows))
            found = failing(
                len(at), lambda start, stop: self.take(at[start:stop]).truth(condition), SpecError
            )
            errors = {one.at: str(one.error) for one in found}
            return self.where(n not in errors for n in at), errors
        return self, {}

    def values(self, columns: Sequence[str]) -> list[tuple[object, ...]]:
        """Return the values of some columns by row, equal where SQL calls them equal."""
        lists = [map(key, self.rows.column(name).to_pylist()) for name in columns]
        return list(zip(*lists, strict=True)) if lists else [()] * self.rows.num_rows

    def places(self, columns: Sequence[str]) -> Mapping[tuple[object, ...], list[int]]:
        """Return by the values of some columns the positions of the rows that have them, in their order."""
        found = defaultdict[tuple[object, ...], list[int]](list)
        for at, value in enumerate(self.values(columns)):
            found[value].append(at)
        return found

    def beside(self, at: Sequence[int], other: "Few", there: Sequence[int]) -> "Few":
        """Return pairs of rows of both: those at positions `at` here and `there` in the other."""
        mine, its = self.take(at), other.take(there)
        new = [name for name in its.rows.column_names if name not in mine.rows.column_names]
        rows = mine.rows
        for name in new:
            rows = rows.append_column(its.rows.schema.field(name), its.rows.column(name))
        both = (tuple(dict.fromkeys(a + b)) for a, b in zip(mine.origins, its.origins, strict=True))
        return Few(rows, tuple(both))

    def alone(self, at: Sequence[int], other: pa.Schema) -> "Few":
        """Return rows as they are without a partner: with NULLs in the columns of the other."""
        mine, names = self.take(at), self.rows.column_names
        rows = mine.rows
        for field in other:
            if field.name not in names:
                rows = rows.append_column(field.with_nullable(True), pa.nulls(len(at), field.type))
        return Few(rows, mine.origins)

    def also(self, other: "Few") -> "Few":
        """Return the rows of both, which have the same columns."""
        return concat([self, Few(other.rows.select(self.rows.column_names), other.origins)])

    def positions(self, origin: int) -> list[int]:
        """Return where the rows are that were made of a row of an input."""
        return [at for at, one in enumerate(self.origins) if origin in one]


def concat(parts: Sequence[Few]) -> Few:
    """Return the rows of all parts, of which there is one at least."""
    rows = pa.concat_tables([part.rows for part in parts], promote_options="permissive")
    return Few(rows, tuple(origin for part in parts for origin in part.origins))


def table(columns: Sequence[tuple[str, pa.Array]], rows: int) -> pa.Table:
    """Return columns as a table; without columns there are rows all the same."""
    if not columns:
        columns = [("$none", pa.array(np.zeros(rows, np.int8)))]
    return pa.table([column for _, column in columns], names=[name for name, _ in columns])
