"""What is drawn for the law of changes: how the rows of an input come, change and go, and what is there after each event.

    moves ─► events: (op, row), in the order of their arrival ─► the table after so many of them

An input that appends has inserts only; one of changes sends -old and +new; one of upserts the last row of each key.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

Values = tuple[object, ...]
INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"
_OPS = (INSERT, DELETE, BEFORE, AFTER)
WORDS: tuple[dict[str, object], ...] = (  # how an input says what a row is
    dict(zip(_OPS, _OPS, strict=True)),
    dict(zip(_OPS, ("I", "D", "U-", "U+"), strict=True)),
    dict(zip(_OPS, ("+I", "-D", "-U", "+U"), strict=True)),
    dict(zip(_OPS, ("+1", "-1", "-1", "+1"), strict=True)),
    dict(zip(_OPS, (1, -1, -1, 1), strict=True)),
)
START = dt.datetime(2026, 1, 1)  # noqa: DTZ001 - as in most files, no zone


@dataclass(frozen=True)
class Event:
    op: str
    row: Values


@dataclass(frozen=True)
class History:
    """All that happens to an input. `key`: places of the columns of an upsert's key."""

    events: tuple[Event, ...] = ()
    words: dict[str, object] | None = None
    key: tuple[int, ...] | None = None
    unknown: str | None = None  # what is done about the deletion of a row that is not there

    def table(self, count: int | None = None) -> list[Values]:
        """The rows that are there after so many events."""
        if self.key is None:
            return _bag(self.events[:count])
        last: dict[Values, Values] = {}
        for event in self.events[:count]:
            key = same(tuple(event.row[at] for at in self.key))
            if event.op == DELETE:
                last.pop(key, None)
            elif event.op != BEFORE:
                last[key] = event.row
        return list(last.values())


def _bag(events: Sequence[Event]) -> list[Values]:
    there: dict[Values, list[Values]] = {}
    for event in events:
        rows = there.setdefault(same(event.row), [])
        if event.op in (INSERT, AFTER):
            rows.append(event.row)
        elif rows:  # else a row that never was
            rows.pop()
    return [row for rows in there.values() for row in rows]


def same(row: Values) -> Values:
    """Two rows are the same row if these are equal: NaN equals itself, and -0.0 equals 0.0."""
    return tuple("NaN" if value != value else value for value in row)


# --- what happens ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Move:
    """What a writer does next, to one of the rows that are there (`which`)."""

    kind: str
    which: int
    row: Values
    keep: int  # a bit for each column that an update leaves as it was, one for the sign of zero, one for what need not be said


class Clock:
    """No event is later than `delay_s` (None: times do not matter). `time`: the place of the event time in a row."""

    def __init__(self, time: int, delay_s: int | None) -> None:
        self.time, self.delay_s = time, delay_s
        self.top: dt.datetime | None = None

    def tell(self, row: Values) -> None:
        time = row[self.time]
        if isinstance(time, dt.datetime):
            self.top = time if self.top is None else max(self.top, time)

    @property
    def earliest(self) -> dt.datetime | None:
        if self.top is None or self.delay_s is None:
            return None
        return self.top - dt.timedelta(seconds=self.delay_s)

    def allows(self, row: Values) -> bool:
        time, earliest = row[self.time], self.earliest
        return earliest is None or not isinstance(time, dt.datetime) or time >= earliest

    def punctual(self, row: Values) -> Values:
        return row if self.allows(row) else (*row[: self.time], self.earliest, *row[self.time + 1 :])


class Writer:
    """Plays moves on an input of changes. `unique`: no two rows that are there have the same last column, their id."""

    def __init__(self, clock: Clock, unique: bool) -> None:
        self.clock, self.unique = clock, unique
        self.there: list[Values] = []
        self.gone: list[Values] = []
        self.events: list[Event] = []

    def play(self, move: Move) -> None:
        old = [row for row in self.there if self.clock.allows(row)]
        if move.kind in ("update", "delete") and old:
            was = old[move.which % len(old)]
            self._delete(was, move) if move.kind == "delete" else self._update(was, move)
            return
        comes = self.gone[move.which % len(self.gone)] if move.kind == "back" and self.gone else move.row
        for _ in range(2 if move.kind == "twice" else 1):
            row = self._insert(comes)
            if row is not None and move.kind == "fleeting":
                self._delete(row, move)

    def _insert(self, row: Values, op: str = INSERT, instead: Values | None = None) -> Values | None:
        row = self.clock.punctual(row)
        if self.unique and any(row[-1] == other[-1] for other in self.there):
            if instead is None:
                return None
            row = (*row[:-1], instead[-1])
        self.there.append(row)
        self._say(op, row)
        return row

    def _update(self, was: Values, move: Move) -> None:
        self._delete(was, move, BEFORE)
        self._insert(_updated(was, move), AFTER, was)

    def _delete(self, row: Values, move: Move, op: str = DELETE) -> None:
        self.there.remove(row)
        self.gone.append(row)
        self._say(op, _other_zero(row) if move.keep & 32 else row)

    def _say(self, op: str, row: Values) -> None:
        self.clock.tell(row)
        self.events.append(Event(op, row))


def _updated(was: Values, move: Move) -> Values:
    return tuple(a if move.keep >> at & 1 else b for at, (a, b) in enumerate(zip(was, move.row, strict=True)))


def _other_zero(row: Values) -> Values:
    return tuple(-value if isinstance(value, float) and value == 0 else value for value in row)


class Upserter:
    """Plays moves on an input of upserts. `words`: how it says what a row is; without, there is no deletion."""

    def __init__(self, clock: Clock, key: tuple[int, ...], words: dict[str, object] | None) -> None:
        self.clock, self.key, self.words = clock, key, words
        self.there: dict[Values, Values] = {}
        self.events: list[Event] = []

    def play(self, move: Move) -> None:
        old = [row for row in self.there.values() if self.clock.allows(row)]
        was = old[move.which % len(old)] if old else None
        if move.kind == "delete" and self.words:
            self._delete(was or move.row, move)
            return
        row = _updated(was, move) if was and move.kind == "update" else move.row
        for _ in range(2 if move.kind == "twice" else 1):
            self._upsert(row, move)
        if move.kind == "fleeting" and self.words:
            self._delete(row, move)

    def _key(self, row: Values) -> Values | None:
        """None where a row of it cannot be said: a part is NULL, or what is there is too old to be taken back."""
        key = same(tuple(row[at] for at in self.key))
        was = self.there.get(key)
        return None if None in key or (was is not None and not self.clock.allows(was)) else key

    def _upsert(self, row: Values, move: Move) -> None:
        row, key = self.clock.punctual(row), self._key(row)
        if key is None:
            return
        was = self.there.get(key)
        if self.words and was and self.words[BEFORE] != self.words[DELETE] and move.keep & 64:
            self.events.append(Event(BEFORE, was))
        self.there[key] = row
        self.clock.tell(row)
        self.events.append(Event(AFTER if was and move.keep & 64 else INSERT, row))

    def _delete(self, row: Values, move: Move) -> None:
        row, key = self.clock.punctual(row), self._key(row)
        if key is None:
            return
        self.there.pop(key, None)
        keys = {at % len(row) for at in self.key}
        bare = tuple(value if at in keys else None for at, value in enumerate(row))
        said = bare if move.keep & 64 else row
        self.clock.tell(said)
        self.events.append(Event(DELETE, said))


HOWS = ("append", "changes", "changes", "changes", "upsert", "upsert with words")
_KINDS = ("insert", "insert", "insert", "update", "update", "delete", "delete", "twice", "fleeting", "back")


@st.composite
def histories(
    draw: st.DrawFn,
    rows: st.SearchStrategy[Values],
    time: int,
    delay_s: int | None,
    *,
    unique: bool,
    stranger: Values,
    hows: Sequence[str] = HOWS,
) -> History:
    """Of one stream that appends, changes or is upserted. The last column of a row is its id, the place `time` its event time.

    Where a deletion of what is not there is to be skipped, `stranger` is deleted now and then: a row of values that no other
    row has in any column, since a query does not read all of them.
    """
    clock = Clock(time, delay_s)
    how = draw(st.sampled_from(hows))
    kinds = ["insert"] if how == "append" else _KINDS
    one = st.builds(Move, st.sampled_from(kinds), st.integers(0, 9), rows, st.integers(0, 127))
    least = draw(st.sampled_from([0, 4, 8]))
    moves = draw(st.lists(one, min_size=least, max_size=least + 4))
    words = None if how in ("append", "upsert") else draw(st.sampled_from(WORDS))
    if how.startswith("upsert"):
        key = (-1,) if unique else draw(st.sampled_from([(-1,), (-1,), (1, -1), (0,)]))
        upserter = Upserter(clock, key, words)
        for move in moves:
            upserter.play(move)
        return History(tuple(upserter.events), words, key)
    writer = Writer(clock, unique)
    unknown = "skip" if words and draw(st.integers(0, 4)) == 0 else None
    for move in moves:
        writer.play(move)
        if unknown and move.keep & 64:
            now = (clock.top or START) + dt.timedelta(milliseconds=250)
            row = (*stranger[:time], now, *stranger[time + 1 :])
            clock.tell(row)
            writer.events.append(Event(DELETE, row))
    return History(tuple(writer.events), words, None, unknown)
