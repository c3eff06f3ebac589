"""Which rows of an input reach the join, in which columns, and by what they are routed: plain frozen values."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from joinlib.expr import Expr

HASH = "$hash"  # first column of every block: the hash of the row's key
ORDINAL = "$ordinal"  # a column that the source makes: the number of each row in its input, from 0 on


@dataclass(frozen=True)
class StoredColumn:
    """One column of a block. `name` is qualified by the input's alias ("o.order_id", "o.$key0")."""

    name: str
    value: Expr  # over the source's columns, qualified by the same alias


@dataclass(frozen=True)
class InputPlan:
    """One input as the SQL names it. A self-join makes two of them over one source.

    Blocks hold the columns `columns`, in this order, after rows that fail `filter` (false or NULL) are gone.

    Rows of an earlier stage have no alias in the SQL: they are "$0" of stage 0, and columns keep their names ("o.order_id").
    `behind` says how far behind the watermark each event time of theirs may be; one that it does not name: any time.
    """

    number: int  # position among the stage's inputs: the `input` of a block
    alias: str  # name in the SQL, unique: "o"
    source: str  # name of the input in the spec: "orders"; "$stage0" for the rows of stage 0
    read: tuple[str, ...]  # the source's columns that are needed; unqualified, but those of a stage
    filter: Expr | None
    columns: tuple[StoredColumn, ...]
    keys: tuple[str, ...]  # names among columns; position i of every input is the same key class, same type
    # Name among columns: event time, timestamp('us', 'UTC') or timestamp('us'); or the row's number.
    time: str | None
    delay_us: int  # how far rows may be behind the highest event time
    idle_us: int | None  # silent for so long: out of the watermark's minimum
    keep_null_keys: bool  # an outer or anti join wants rows whose key is NULL: they come out unmatched
    upstream: int | None = None  # its rows are those of this earlier stage; none of them is ever late
    behind: tuple[tuple[str, int], ...] = ()  # of those: how late, in µs, an event time may be

    @property
    def schema(self) -> pa.Schema:
        """Schema of the stored columns."""
        return pa.schema([pa.field(c.name, c.value.type) for c in self.columns])

    @property
    def numbered(self) -> bool:
        """Its rows are stored with their numbers, by which they expire."""
        return self.time == f"{self.alias}.{ORDINAL}"

    @property
    def source_time(self) -> str | None:
        """The source's column that holds the event time."""
        return self.time and self.time.removeprefix(f"{self.alias}.")


@dataclass(frozen=True)
class Group:
    """The units that store one input: [first, first + units), in equal subgroups. All are powers of two."""

    first: int
    units: int
    subgroups: int  # d (or e) of join-biclique


@dataclass(frozen=True)
class Biclique:
    """The groups of a stage's two inputs, by their numbers."""

    groups: tuple[Group, Group]

    @property
    def skip_bits(self) -> int:
        """Top bits of a key's hash that have chosen its unit, whichever input it is of."""
        return min(g.subgroups for g in self.groups).bit_length() - 1


def read_columns(plans: Iterable[InputPlan]) -> list[str]:
    """The columns of one source that the inputs over it need, each once."""
    return list(dict.fromkeys(c for p in plans for c in p.read))
