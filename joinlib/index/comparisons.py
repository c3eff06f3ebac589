"""Comparisons between probes and stored rows, and integer keys that are compared instead of the values.

Law: a < b as SQL orders them if and only if key(a) < key(b). NaN is the greatest value and equals itself;
-0.0 equals 0.0.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from joinlib.arrays import I64
from joinlib.index.order import ordered

Column = npt.NDArray[np.int64] | npt.NDArray[np.float64]


class Op(enum.Enum):
    """A comparison: the probe's value OP the stored value."""

    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    NE = "<>"


@dataclass(frozen=True)
class PreparedProbes:
    """A batch of probes, prepared once for all runs of one shape."""

    keys: list[I64]  # one array for each comparison
    equal: I64 | None  # hashes of the equality's key, one for each probe

    @cached_property
    def ranks(self) -> list[I64]:
        """For each comparison, the probes in the order of (equality, key); sorted once, and only if asked.

        The two ends of a band share one sort.
        """
        found: list[I64] = []
        for key in self.keys:
            shared = bool(found) and _ascends(key, found[-1], self.equal)
            found.append(found[-1] if shared else _ranked(key, self.equal))
        return found

    def first(self, comparisons: int) -> "PreparedProbes":
        """Return the same probes with their first comparisons alone; what is sorted serves every later call."""
        return self._first.setdefault(comparisons, PreparedProbes(self.keys[:comparisons], self.equal))

    @cached_property
    def _first(self) -> "dict[int, PreparedProbes]":
        return {}


@dataclass(frozen=True)
class Shape:
    """The comparisons of a join. Comparison i compares with dimension `of[i]` of the stored rows.

    A band consists of two comparisons with one dimension.
    """

    ops: tuple[Op, ...]
    of: tuple[int, ...]
    floats: tuple[bool, ...]  # whether each dimension has doubles

    @classmethod
    def like(cls, columns: Sequence[Column], ops: Sequence[Op]) -> "Shape":
        """Return the shape of comparisons with these columns.

        columns: one for each comparison; comparisons whose columns are the same array share a dimension.

        Raises:
            ValueError: there is no comparison, or not one column for each.
        """
        if not ops or len(columns) != len(ops):
            raise ValueError(
                f"{len(ops)} comparisons, but {len(columns)} columns: one each, and at least one"
            )
        firsts: list[Column] = []
        of = []
        for column in columns:
            same = [d for d, first in enumerate(firsts) if first is column]
            of.append(same[0] if same else len(firsts))
            firsts += [] if same else [column]
        return cls(tuple(ops), tuple(of), tuple(c.dtype.kind == "f" for c in firsts))

    @property
    def dimensions(self) -> int:
        return len(self.floats)

    def first(self, comparisons: int) -> "Shape | None":
        """Return the shape of the first comparisons alone; None if a later one shares a dimension with them."""
        of = self.of[:comparisons]
        if not of or max(of) >= min(self.of[comparisons:], default=self.dimensions):
            return None
        return Shape(self.ops[:comparisons], of, self.floats[: max(of) + 1])

    def stored(self, columns: Sequence[Column]) -> list[I64]:
        """Return the keys of each dimension, given one column for each comparison."""
        return [keys(columns[self.of.index(d)], self.floats[d]) for d in range(self.dimensions)]

    def prepare(self, columns: Sequence[Column], equal: I64 | None = None) -> PreparedProbes:
        """Prepare probes, given one column for each comparison. O(probes log probes) once they are asked.

        Raises:
            ValueError: there is not one column for each comparison.
        """
        if len(columns) != len(self.ops):
            raise ValueError(f"{len(self.ops)} comparisons are probed with {len(columns)} columns")
        return PreparedProbes([keys(c, self.floats[d]) for c, d in zip(columns, self.of)], equal)


def keys(column: Column, floats: bool) -> I64:
    """Return integers in the order of the values, shape (rows,).

    Raises:
        TypeError: the column is not of doubles or int64, as `floats` requires.
    """
    if column.dtype != (np.float64 if floats else np.int64):
        raise TypeError(
            f"a column of {column.dtype} is compared with {'doubles' if floats else 'integers'}: cast one"
        )
    made = np.ascontiguousarray(
        ordered(np.asarray(column, np.float64)) if floats else column, np.int64
    ).view()
    made.flags.writeable = False  # kernels are compiled for read-only arrays only
    return made


def _ranked(key: I64, equal: I64 | None) -> I64:
    return np.argsort(key) if equal is None else np.lexsort((key, equal))


def _ascends(key: I64, rank: I64, equal: I64 | None) -> bool:
    """Return whether the probes in the order `rank` ascend by `key` too, as for the two ends of a band."""
    ordered_keys = key[rank]
    return equal is None and bool((ordered_keys[1:] >= ordered_keys[:-1]).all())
