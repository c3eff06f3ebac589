"""Maps: how rows of a source or a stage become rows of a named part of the query, without state.

    SELECT o.id, p.n, upper(p.item) AS item FROM orders o LATERAL VIEW posexplode(o.items) p AS n, item WHERE p.n < 3

        expands   posexplode(items) -> n, item
        filter    n < 3
        columns   id = id, n = n, item = upper(item)

Names are unqualified: those of the rows below, and those that the expands before add.
"""

from dataclasses import dataclass

import pyarrow as pa

from joinlib.expr import Expr


@dataclass(frozen=True)
class Expand:
    """One row becomes a row for each element of a list, with the row's other columns beside it.

    One name (after that of the position) is the element; several are the fields of a struct, or the key and
    the value of a map.
    """

    value: Expr  # a list or a map
    columns: tuple[str, ...]  # names of what it adds: [position,] element or fields
    outer: bool  # a row whose list is empty or NULL stays once, with NULLs; False: it goes
    position: bool  # the first name is the element's place in the list, INT, from 0

    @property
    def added(self) -> tuple[tuple[str, pa.DataType], ...]:
        """The columns that it adds, with their types."""
        place = ((self.columns[0], pa.int32()),) if self.position else ()
        names = self.columns[len(place) :]
        kind = self.value.type
        if pa.types.is_map(kind):
            kinds = [kind.key_type, kind.item_type]
        elif len(names) == 1:
            kinds = [kind.value_type]
        else:
            kinds = [kind.value_type.field(n).type for n in range(kind.value_type.num_fields)]
        return (*place, *zip(names, kinds, strict=True))


@dataclass(frozen=True)
class Map:
    """First the expands, each over what the ones before gave; then the filter; then the columns."""

    filter: Expr | None  # rows for which it is false or NULL go
    expands: tuple[Expand, ...]
    columns: tuple[tuple[str, Expr], ...]  # name and value

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows that it makes, without weights."""
        return pa.schema([pa.field(name, value.type) for name, value in self.columns])
