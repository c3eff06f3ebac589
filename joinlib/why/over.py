"""Window functions over the whole partitions of a few rows: what QUALIFY leaves of them, and what is final."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from joinlib.arrays import I64
from joinlib.model.inputs import HASH
from joinlib.model.over import Over
from joinlib.model.time import ALWAYS
from joinlib.over.compute import Computed, computed
from joinlib.over.settled import bound, growing
from joinlib.route.content import Mask, content_hash
from joinlib.state.run import time_values
from joinlib.why.few import Few


@dataclass(frozen=True)
class Ranks:
    """The functions of rows of whole partitions, none of them late."""

    over: Over
    few: Few

    @cached_property
    def _found(self) -> Computed:
        columns = [self.few.rows.column(name).combine_chunks() for name, _ in self.over.columns]
        keys = [
            column
            for (name, _), column in zip(self.over.columns, columns, strict=True)
            if name in self.over.partition
        ]
        hashes = content_hash(keys, self.few.rows.num_rows)
        schema = pa.schema([(HASH, pa.uint64()), *self.over.columns])
        return computed(self.over, pa.record_batch([pa.array(hashes), *columns], schema))

    @cached_property
    def passing(self) -> frozenset[int]:
        """The rows that QUALIFY leaves, by their positions."""
        at = self._found.passing(self.over.qualify, np.arange(self.few.rows.num_rows))
        return frozenset(self._found.layout.rows[at].tolist())

    def final(self, watermark: int) -> Mask:
        """Return which rows have come out at a watermark, µs."""
        rows, limit = self.few.rows.num_rows, bound(self.over, watermark)
        if self.over.changelog or self.over.settles_by is None:
            return np.full(rows, self.over.changelog or watermark == ALWAYS)
        out = times(self.over, self.few) < limit
        for call in self.over.calls if self.over.sessions and limit != ALWAYS else ():
            out[self._found.layout.rows[growing(self._found, call, limit)]] = False
        return out

    def result(self, rows: Sequence[int]) -> Few:
        """Return rows of the result, by the positions of the rows that they come from."""
        at = self._found.layout.at[np.array(rows, np.int64)]
        made = self._found.result(self.over, at)
        return Few(pa.Table.from_batches([made]), self.few.take(rows).origins)

    def values(self, row: int) -> list[object]:
        """Return what the functions of a row are."""
        at = int(self._found.layout.at[row])
        return [self._found.values[call.name][at].as_py() for call in self.over.calls]

    def first(self, row: int) -> int:
        """Return the first row of the partition of a row, in the order of the first function."""
        layout = self._found.layout
        return int(layout.rows[layout.head[layout.at[row]]])


def times(over: Over, few: Few) -> I64:
    """Return the times by which rows come out, in the units of their column; none is NULL."""
    assert over.settles_by is not None
    return time_values(few.rows.column(over.settles_by).combine_chunks())
