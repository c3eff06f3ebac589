"""What became of a row: frozen values, which `jobs.cli.why` puts into words."""

from dataclasses import dataclass
from typing import TypeAlias

Values: TypeAlias = tuple[tuple[str, object], ...]  # by what the SQL calls them


@dataclass(frozen=True)
class SourceRow:
    """Where a row of an input came from."""

    source: str  # name of the input in the spec
    alias: str  # its name in the SQL, as which it was read
    file: str  # a path, or a topic; empty for generated rows
    partition: int | None  # of a topic
    at: int  # the offset of its message, or its number in the file, from 1
    batch: int | None  # that read it; None: not known, or not read yet
    exact: bool = True  # False: that batch or an earlier one, which the checkpoint does not know any more
    read: bool = True  # False: no batch that is done has read it


@dataclass(frozen=True)
class Filtered:
    """A condition of the query on this input alone is false or NULL."""

    clause: str
    values: Values = ()  # of the columns that it reads, where they are of rows that an earlier stage has made


@dataclass(frozen=True)
class KeyIsNull:
    """A column of the key is NULL, which equals nothing."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class Late:
    """The row was behind the watermark when it came, and was left out."""

    by_us: int
    watermark_us: int
    sure: bool = True  # False: it may have been, as the watermark of its batch is not known any more
    dead: str | None = None  # the folder that keeps it as a dead letter; None: it is only counted


@dataclass(frozen=True)
class Failed:
    """An expression fails for it."""

    error: str
    dead: str | None  # the folder that keeps it as a dead letter; None: it stops the job


@dataclass(frozen=True)
class Unread:
    """No batch that is done has read it."""

    batch: int | None  # that has begun with it; None: none


@dataclass(frozen=True)
class Withdrawn:
    """The row was deleted, or is a deletion itself."""

    by: SourceRow | None  # the deletion; None: it is one


@dataclass(frozen=True)
class Replaced:
    """A later row of an upsert has its key."""

    by: SourceRow


@dataclass(frozen=True)
class Limit:
    """Until when a row waits for partners, or to be emitted without one."""

    until_us: int | None  # it waits until the watermark is later; None: forever
    watermark_us: int
    holder: str  # the input that holds the watermark back; empty: none
    holder_us: (
        int | None
    )  # how far that input is: its highest event time minus its delay; None: no row has come
    over: bool  # whether the watermark has passed it


@dataclass(frozen=True)
class NoPartner:
    """No row of another input has its key and counts."""

    input: str  # in which there is none
    key: str  # what was looked for
    nearest: tuple[str, ...]  # keys that are there, below and above
    lost: tuple[tuple[SourceRow, "Verdict"], ...]  # rows that have the key and do not count, with the reason
    limit: Limit


@dataclass(frozen=True)
class TooFar:
    """A partner is there, outside of a time bound or of the retention."""

    partner: SourceRow | None
    bound: str
    by_us: int
    limit: Limit


@dataclass(frozen=True)
class Unmatched:
    """Partners are there, and a condition over them is false or NULL."""

    partner: SourceRow | None
    clause: str
    values: Values = ()  # that it reads of rows that an earlier stage has made


@dataclass(frozen=True)
class NotInTable:
    """A table that it is looked up in has no row that matches."""

    table: str
    key: str  # what was looked for
    version: int


@dataclass(frozen=True)
class Excluded:
    """An anti join leaves it out, since it has a partner."""

    partner: SourceRow | None


@dataclass(frozen=True)
class Excludes:
    """A row that an anti join looks for: it brings nothing into the result, and takes its partners out."""

    partner: SourceRow | None  # None: it has none


@dataclass(frozen=True)
class Waiting:
    """It has no partner, and is emitted without one once none can come any more."""

    limit: Limit
    why: "Verdict | None"  # why it has no partner


@dataclass(frozen=True)
class RowGroup:
    """A group of rows, of which the result has one row."""

    keys: tuple[
        tuple[str, object], ...
    ]  # as the SQL has them, with their values; empty: all rows are one group
    having: str  # a condition on the group; empty: none


@dataclass(frozen=True)
class Counted:
    """It counts in a group."""

    group: RowGroup
    rows: tuple[SourceRow, ...]  # that were joined
    limit: Limit | None  # until when the group waits to come out; None: each batch shows it
    timed: bool  # whether it waits for the watermark, and not for the end of the inputs


@dataclass(frozen=True)
class InGroup:
    """It counts in a group whose row goes on within the query."""

    group: RowGroup
    limit: Limit | None  # until when the group waits to go on; None: it has
    timed: bool  # whether it waits for the watermark, and not for the end of the inputs


@dataclass(frozen=True)
class TooLate:
    """Its group had come out before it came."""

    group: RowGroup


@dataclass(frozen=True)
class GroupRefused:
    """A condition on its group is false or NULL: of HAVING, or of a query that reads the groups."""

    group: RowGroup
    rows: int  # that count in it
    clause: str
    values: Values  # of the aggregates that it reads


@dataclass(frozen=True)
class Unqualified:
    """A condition on its window functions, or that of a set operation, is false or NULL."""

    clause: str
    values: Values = ()  # of the window functions
    first: SourceRow | None = None  # the first row of its partition; None: it is that


@dataclass(frozen=True)
class NoNearest:
    """An as-of join has no partner for it, and leaves it out."""

    input: str  # the right side
    where: str  # where a partner would be: before it


@dataclass(frozen=True)
class NotNearest:
    """It is on the right side of an as-of join, and the partner of no row so far."""

    input: str  # the left side
    next: SourceRow | None  # the next row of its key on the right side; None: there is none


@dataclass(frozen=True)
class PartnerRefused:
    """A condition over it and its partner in an as-of join is false or NULL."""

    partner: SourceRow
    clause: str  # empty: the tolerance, without which it comes out


@dataclass(frozen=True)
class Unsettled:
    """Its window functions are computed, and it comes out once no row can change them any more."""

    limit: Limit
    timed: bool  # whether it waits for the watermark, and not for the end of the inputs


@dataclass(frozen=True)
class Beyond:
    """It came as far as a part of the query that is not followed row by row."""

    what: str


@dataclass(frozen=True)
class ResultRow:
    """A row of the result, and what it was made of."""

    output: str  # name of the output; empty for the only one
    values: tuple[tuple[str, object], ...]  # of a group: its keys
    rows: tuple[SourceRow, ...]
    group: bool = False
    read: tuple[SourceRow, ...] = ()  # other rows, whose values its window functions have

    @property
    def batch(self) -> int | None:
        """The batch that read its last row; None if one is not known."""
        known = [row.batch for row in self.rows]
        return None if None in known or not known else max(b for b in known if b is not None)


@dataclass(frozen=True)
class Found:
    """It is in the result."""

    results: tuple[ResultRow, ...]


Verdict: TypeAlias = (
    Filtered
    | KeyIsNull
    | Late
    | Failed
    | Unread
    | Withdrawn
    | Replaced
    | NoPartner
    | TooFar
    | Unmatched
    | NotInTable
    | Excluded
    | Excludes
    | Waiting
    | Counted
    | InGroup
    | TooLate
    | GroupRefused
    | Unqualified
    | NoNearest
    | NotNearest
    | PartnerRefused
    | Unsettled
    | Beyond
    | Found
)


@dataclass(frozen=True)
class Fate:
    """A row that meets the condition, and what became of it."""

    row: SourceRow
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True)
class Looked:
    """What was found in one input, as it is named in the SQL."""

    source: str
    alias: str
    fates: tuple[Fate, ...]
    rows: int  # that were looked at
    unknown: tuple[str, ...] = ()  # columns of the condition that it does not have
    by: str = ""  # the part of the condition that it was asked by; empty: it was not asked
    notes: tuple[str, ...] = ()  # what could not be looked at
