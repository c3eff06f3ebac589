"""The inputs of a stage: which rows reach the join, in which columns, and how they are routed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from joinlib.arrays import I64
from joinlib.expr import Expr
from joinlib.model.maps import Map

HASH = "$hash"  # first column of every block: the hash of the row's key
WEIGHT = "$weight"  # last column of rows that are changes: +n came, -n went; int64, never 0 or NULL
UNCHANGED = "$unchanged"  # of upserts: a bit for each column of the schema whose value was not sent
ORDINAL = "$ordinal"  # a column made by the source: the number of each row in its input, from 0


@dataclass(frozen=True)
class StoredColumn:
    """One column of a block. `name` is qualified by the input's alias ("o.order_id", "o.$key0")."""

    name: str
    value: Expr  # over the source's columns, qualified by the same alias


@dataclass(frozen=True)
class InputPlan:
    """One input as named in the SQL; a self-join has two over one source.

    Blocks hold the columns `columns`, in this order, of the rows that pass `filter` (neither false nor NULL).

    Rows of an earlier stage have no alias in the SQL: those of stage 0 are "$0", and columns keep their
    names ("o.order_id"). `behind` says how far behind the watermark each of their event times may be; one
    that it does not name may be any time.
    """

    number: int  # position among the stage's inputs: the `input` of a block
    alias: str  # name in the SQL, unique: "o"
    source: str  # name of the input in the spec: "orders"; "$stage0" for the rows of stage 0
    read: tuple[str, ...]  # the columns needed of the source; unqualified, except those of a stage
    filter: Expr | None
    columns: tuple[StoredColumn, ...]
    keys: tuple[str, ...]  # names among columns; position i of every input is the same key class, same type
    # Name among columns: the event time, timestamp('us', 'UTC') or timestamp('us'), or the row's number.
    time: str | None
    delay_us: int  # how far rows may be behind the highest event time
    idle_us: int | None  # an input silent for this long does not hold back the watermark
    keep_null_keys: bool  # an outer or anti join emits rows with a NULL key as unmatched
    upstream: int | None = None  # the earlier stage whose rows these are; they are never late
    behind: tuple[tuple[str, int], ...] = ()  # of upstream rows: column, µs behind the watermark
    # Over the source's columns: rows for which it is true go to unit 0, whatever their key is.
    apart: Expr | None = None
    copies: int = 0  # if not 0: rows, without keys, are copied to the first `copies` units, a power of two
    changes: bool = False  # rows end with their weights; False: rows only come
    skip_unknown: bool = False  # a deletion without its row is left out and counted; False: it is an error
    null_is_value: bool = False  # rows are routed by a result's key, in which NULL is a value like others
    maps: tuple[Map, ...] = ()  # what becomes of rows before they are filtered
    clock: str | None = None  # the source's column whose highest value says how far it has been read
    settled: bool = False  # of upstream rows: those behind the watermark are late, as those of a source are
    united: bool = (
        False  # of upstream rows: their stage only passes on what sources have, unknown deletions too
    )
    again: int | None = None  # the stage's input with the same rows by another key; figures count only that
    stored: bool = True  # False: rows of a path join that come in by a key by which nothing looks for them
    # The stage's input that has the same rows, by another name (`plan.once`): they are sent and stored as that one's.
    twin: int | None = None

    def of_stage(self, number: int) -> "InputPlan":
        """Return this input as one that reads the rows of stage `number`."""
        return replace(self, upstream=number, source=f"$stage{number}")

    def below(self, column: str) -> str | None:
        """Return the column of the source, or of the stage below, that a stored column is; None if it is computed."""
        name = next(c.value.column for c in self.columns if c.name == column)
        for step in reversed(self.maps):
            value = dict(step.columns).get((name or "").removeprefix(f"{self.alias}."))
            name = value.column if value is not None else None
        return name

    @property
    def schema(self) -> pa.Schema:
        """The schema of the stored columns."""
        return pa.schema([pa.field(c.name, c.value.type) for c in self.columns])

    @property
    def numbered(self) -> bool:
        """Whether rows are stored with their numbers, by which they expire."""
        return self.time == f"{self.alias}.{ORDINAL}"

    @property
    def tells_time(self) -> bool:
        """Whether units of groups and of window functions hear from it how far time is."""
        return self.upstream is not None or self.source_time is not None

    @property
    def lag_us(self) -> int:
        """How far behind the watermark its event time may be when rows are not late, µs."""
        return dict(self.behind).get(self.time, 0) if self.time is not None else 0

    @property
    def source_time(self) -> str | None:
        """The source's column that holds the event time."""
        return self.clock or (self.time and self.time.removeprefix(f"{self.alias}."))


KeepLate = Callable[[InputPlan, pa.RecordBatch, I64], None]  # is told late rows, and by how many µs each is


@dataclass(frozen=True)
class Group:
    """The units that store one input: [first, first + units), in equal subgroups. All are powers of two."""

    first: int
    units: int
    subgroups: int  # d (or e) of join-biclique


@dataclass(frozen=True)
class Cells:
    """Pieces of one width into which the values of a band are cut: rows that match lie in the same or the next one.

    A pair matches only if second + low <= first <= second + high. The width is a power of two, at least four
    times as large as high - low.
    """

    # Of the first and of the second input, over stored columns; whole numbers or doubles.
    values: tuple[Expr, Expr]
    low: int | float
    high: int | float
    width: int | float

    def reach(self, number: int) -> tuple[int | float, int | float]:
        """Return what is added to a value of an input for the least and the greatest value of its partners."""
        return (-self.high, -self.low) if number == 0 else (self.low, self.high)


@dataclass(frozen=True)
class Biclique:
    """The groups of a stage's two inputs, by input number."""

    groups: tuple[Group, Group]
    cells: Cells | None = None  # if given, the cell of a row's value stands for its key
    once: bool = False  # both inputs are one: all its rows come, and are stored, as those of the first

    def partner(self, number: int) -> int:
        """Return the input as which the partners of an input's rows are stored."""
        return number if self.once else 1 - number

    @property
    def skip_bits(self) -> int:
        """Top bits of a key's hash that are equal in all rows of a unit, whichever input they belong to."""
        return min(g.subgroups for g in self.groups).bit_length() - 1


def read_columns(plans: Iterable[InputPlan]) -> list[str]:
    """Return the columns of one source that the inputs over it need, each once."""
    return list(dict.fromkeys(c for p in plans for c in p.read))
