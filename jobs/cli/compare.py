"""`streamjoin compare`: do two jobs, one of them a fork of the other, have the same results?

    A   … batch 7 ─┬─ 8 ── 9 ── 10 ── 11        the rows of 8 to 11 and of 8 to 9 are compared, where the inputs
    B              └─ 8 ─────── 9               were read equally far behind 7; columns that one of them lacks are not

Batches differ, since each job composes its own: what an input was read to is compared, not its number. Results that
change are compared as what they come to. Results that wait for the watermark may come a batch later in one of the jobs.

    first job's output     compared with the files of the fork
    files                  the rows of its batches
    topic, table           the rows behind where it ended when the fork began (`jobs.cli.ends`)
    topic, table: upsert   of each key that the fork has changed, the row that is there now

A topic and a table have no batches, so the first job must have ended none behind the last place that both have read to.
Cost: a pass over the results behind the fork, or over all that is there of upserts, in memory.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from jobs.cli import words
from jobs.cli.cases.differ import Difference, difference
from jobs.cli.ends import End, is_told
from jobs.cli.result_files import FileRows
from jobs.cli.result_tables import XID, TableRows
from jobs.cli.result_topics import TopicRows
from jobs.cli.shell.contents import Contents
from jobs.cli.summary import near
from joinlib.checkpoint import batches
from joinlib.checkpoint.identity import begun, identity_of, origin_of
from joinlib.compiled import Compiled, compiled
from joinlib.errors import SpecError, StateError
from joinlib.expr.equality import key as equality
from joinlib.model.changelog import BATCH, CHANGE_TYPE, DELETE, PREIMAGE
from joinlib.sink.publish import numbers
from joinlib.source import StreamInput, opened
from joinlib.spec.model import StreamJoin
from joinlib.spec.output import Output, OutputFiles, field_of

_PAIRED = 1000  # rows of each side, among which the nearest is looked for
Offset = Mapping[str, Any]
Read = frozenset[tuple[tuple[object, ...], int]]  # how much of what
Key = tuple[object, ...]


class _Rows(Protocol):
    """The rows of an output that are compared, wherever they are."""

    @property
    def columns(self) -> Mapping[str, pa.DataType]: ...
    def tables(self, columns: pa.Schema) -> Iterator[pa.Table]: ...


@dataclass(frozen=True)
class ComparedOutput:
    """How an output of one job differs from that of the other.

    Attributes:
        rows: How many rows of A were compared.
        found: The difference, if there is one.
        left_out: The columns of one job alone.
        told: Which rows these are, where they are not those of batches.
    """

    rows: int
    found: Difference | None
    left_out: Sequence[str]
    told: str = ""

    @property
    def lines(self) -> Iterator[str]:
        if self.told:
            yield f"compared {self.told}"
        if self.left_out:
            yield f"not compared, of one job alone or of two types: {', '.join(self.left_out)}"
        if self.found is None:
            yield f"equal, {words.rows(self.rows)}"
        else:
            yield f"different, first in {_first(self.found)}"


@dataclass(frozen=True)
class ComparedResults:
    """What two jobs have in common. `outputs`: by name."""

    head: str
    outputs: Mapping[str, ComparedOutput] = field(default_factory=dict)

    @property
    def equal(self) -> bool:
        return all(output.found is None for output in self.outputs.values())

    @property
    def text(self) -> str:
        """Several lines for people: `-` is a row of A alone, `+` one of B alone."""
        lines = [self.head]
        for name, output in self.outputs.items():
            title = f"output {name}: " if name else ""
            lines += [f"{title}{line}" for line in output.lines]
            lines += [f"  {line}" for line in output.found.lines] if output.found else []
        return "\n".join(lines)


def _first(found: Difference) -> str:
    if found.row is None:
        return "a row that A has not"
    if found.column is None:
        return "a row that B has not"
    return f"column {found.column} of a row"


@dataclass(frozen=True)
class _Parting:
    """Where one job was forked from the other: behind which batch, and how far inputs and outputs were by then."""

    batch: int = -1
    inputs: Offset = field(default_factory=dict)
    ends: Mapping[str, End] = field(default_factory=dict)


def compared(one: StreamJoin, other: StreamJoin) -> ComparedResults:
    """Compare the results of two jobs since one was forked from the other.

    Raises:
        SpecError: Neither is a fork of the other, or their results cannot be compared.
        StateError: They have no place in common at which the inputs were read equally far, or the rows up to there cannot
            be told.
    """
    sides = _sides(one, other)
    ends = _common(*sides)
    start = sides[0].start.batch
    if start in ends:
        raise StateError(
            f"there is nothing to compare yet: behind batch {start}, where one was forked from the other, they have"
            " no batch by which both have read the same; let both read what is there, by `streamjoin run FILE"
            " --until-done`, and compare again"
        )
    names = [name for name in sides[0].results if name in sides[1].results]
    found = {name: _output(name, sides, ends) for name in names}
    told = (f"{side.name}: batches {start + 1} to {end}" for side, end in zip(sides, ends, strict=True))
    return ComparedResults(", ".join(told) + ", by which both have read the same", found)


def behind(first: StreamJoin, fork: StreamJoin) -> int:
    """Return how many rows a job has read that its fork has not.

    Raises:
        StateError: A log has forgotten what was read behind the fork.
    """
    sides = _sides(first, fork)
    latest = (ends[max(ends)] for ends in (side.ends() for side in sides))
    ahead, done = (dict(read) for read, _ in latest)
    return sum(max(size - done.get(where, 0), 0) for where, size in ahead.items())


def _sides(one: StreamJoin, other: StreamJoin) -> "tuple[_Side, _Side]":
    sides = _Side(one, "A"), _Side(other, "B")
    fork, start = _parted(*sides)
    for side in sides:
        side.start, side.is_fork = start, side is fork
    return sides


class _Side:
    """One of the jobs."""

    def __init__(self, document: StreamJoin, name: str) -> None:
        self.document, self.name = document, name
        self.folder = document.spec.checkpoint.folder
        if not begun(self.folder):
            raise SpecError(f"{name}: {near(self.folder)} holds no checkpoint; run the job first")
        self.plan: Compiled = compiled(document, 1)
        self.results = {result.name: result for result in self.plan.pipeline.results}
        self.start, self.is_fork = _Parting(), False

    def ends(self) -> dict[int, tuple[Read, bool]]:
        """Return how far the inputs were read by the end of each batch, and whether they were closed.

        Raises:
            StateError: A log has forgotten what was read behind the fork.
        """
        spark, inputs = self.folder / "spark", opened(self.plan.source.sources, self.plan.source.logs)
        ends = {b: batches.offset(spark, b) for b in batches.all_done(spark) if b >= self.start.batch}
        try:
            return {b: (self._read(inputs, end["inputs"]), bool(end["closed"])) for b, end in ends.items()}
        except StateError as error:
            raise StateError(
                f"{self.name}: {near(self.folder)} no longer knows what was read since the fork; fork again ({error})"
            ) from error

    def _read(self, inputs: Mapping[str, StreamInput], end: Mapping[str, int]) -> Read:
        """Return how much was read behind the fork: by file and row group, or by topic and partition."""
        read: dict[tuple[object, ...], int] = {}
        for name, known in inputs.items():
            for piece in known.slices(self.start.inputs.get(name, 0), end[name]):
                where = (name, piece.path.removeprefix(str(self._root(name))), piece.group)
                read[where] = read.get(where, 0) + piece.stop - piece.start
        return frozenset(read.items())

    def _root(self, name: str) -> Path | str:
        files = self.document.spec.inputs[name].files
        return files.path if files else ""

    def rows(self, name: str, end: int) -> _Rows:
        """Return the rows of an output from the fork to the end of a batch; of an upsert, all that are there now.

        Raises:
            SpecError: They cannot be compared, or those of later batches are among them.
            StateError: Where they begin is not known.
        """
        output = self.document.spec.results[name]
        schema = self.plan.pipeline.stages[self.results[name].stage].schema
        if output.files:
            files = tuple(self._files(output.files, end))
            return FileRows(files, output.files, schema, output.adds_columns)
        place = f"{self.name}: {field_of(name)}"
        if self.is_fork:
            raise SpecError(f"{place}: the results of a fork are compared from files; write them to files")
        if not (output.kafka or output.postgres):
            raise SpecError(
                f"{place}: only results in files, a topic or a table are compared; write them there"
            )
        since = self._ended(name, output)
        if output.kafka:
            return TopicRows(output, schema, since)
        at = list(self.document.spec.results).index(name)
        target = self.plan.join.sinks[at].postgres
        assert target is not None
        return TableRows.of(target, schema, None if since is None else since[XID])

    def _ended(self, name: str, output: Output) -> End | None:
        """Return where the output ended when the fork began; None if that is not asked for."""
        if not is_told(output):
            return None
        if name not in self.start.ends:
            raise StateError(
                f"{self.name}: {field_of(name)}: where {_place(output)} ended was not noted when one job was forked from the"
                f" other, as {self.name} was writing to it; stop {self.name}, fork again, and let both read on"
            )
        return self.start.ends[name]

    def check_ended(self, name: str, end: int) -> None:
        """Check that the output holds nothing of batches behind this one, where they cannot be told.

        Raises:
            StateError: It may.
        """
        output = self.document.spec.results[name]
        latest = batches.begun(self.folder / "spark")
        if (output.kafka or output.postgres) and latest != end:
            raise StateError(
                f"{self.name}: {field_of(name)}: batch {end} is the last by which both have read the same, and {self.name} has"
                f" begun batch {latest}, whose rows cannot be told in {_place(output)}; stop {self.name}, let the other job"
                " read what it has read, by `streamjoin run FILE --until-done`, and compare again"
            )

    def _files(self, written: OutputFiles, end: int) -> Iterator[Path]:
        """Yield the result files of an output, from the fork to the end of a batch.

        Raises:
            SpecError: The results of later batches are among them.
        """
        there = sorted(batch for batch in numbers(Path(written.path)) if self.start.batch < batch)
        if written.compact and end not in there and any(batch > end for batch in there):
            raise SpecError(
                f"{self.name}: output.files.compact has put results up to batch {end} into a folder with later"
                " ones; remove it from both jobs to compare them, or stop both and compare again"
            )
        folders = (Path(written.path) / f"batch={batch}" for batch in there if batch <= end)
        for folder in folders:
            yield from sorted(folder.glob("part-*"))


def _place(output: Output) -> str:
    if output.kafka:
        return f"topic {output.kafka.topic}"
    assert output.postgres is not None
    return f"table {output.postgres.table}"


def _parted(one: _Side, other: _Side) -> tuple[_Side, _Parting]:
    """Return which of them is the fork, and where it began."""
    for fork, first in ((other, one), (one, other)):
        origin = origin_of(fork.folder)
        if origin is not None and origin["id"] == identity_of(first.folder):
            return fork, _Parting(int(origin["batch"]), origin["inputs"], origin.get("ends", {}))
    raise SpecError(
        f"neither {near(one.folder)} nor {near(other.folder)} is a fork of the other; begin one by `streamjoin fork A"
        " --as B`"
    )


def _common(one: _Side, other: _Side) -> tuple[int, int]:
    """Return the last batch of each by which the inputs were read equally far."""
    theirs = {read: batch for batch, read in other.ends().items()}
    for batch, read in sorted(one.ends().items(), reverse=True):
        if read in theirs:
            return batch, theirs[read]
    raise StateError(
        "the jobs have no batch in common by which they have read the same; let both read what is there, by"
        " `streamjoin run FILE --until-done`, and compare again"
    )


def _output(name: str, sides: tuple[_Side, _Side], ends: tuple[int, int]) -> ComparedOutput:
    """Compare an output."""
    each = list(zip(sides, ends, strict=True))
    for side, end in each:
        side.check_ended(name, end)
    rows = [side.rows(name, end) for side, end in each]
    one, other = (found.columns for found in rows)
    both = pa.schema([(column, kind) for column, kind in one.items() if other.get(column) == kind])
    alone = sorted({*one, *other} - {*both.names})
    if not both.names:
        raise SpecError(f"the results have no column in common: {', '.join(alone)}")
    found, told = _contents(name, sides, rows, both)
    for side, end in each:
        side.check_ended(name, end)  # nothing has come while it was read
    mine, theirs = found[0].minus(found[1])
    differ = difference(both.names, mine.plain(_PAIRED), theirs.plain(_PAIRED))
    return ComparedOutput(found[0].count, differ, alone, told)


def _contents(
    name: str, sides: tuple[_Side, _Side], rows: Sequence[_Rows], columns: pa.Schema
) -> tuple[list[Contents], str]:
    """Return what the rows of both sides come to, and which rows these are."""
    first, fork = (0, 1) if sides[1].is_fork else (1, 0)
    output = sides[first].document.spec.results[name]
    tables = [list(some.tables(columns)) for some in rows]
    if output.mode != "upsert":
        told = "" if output.files else f"with the rows of {_place(output)} behind the fork"
        return [_sum(some) for some in tables], told
    if missing := [column for column in output.key if column not in columns.names]:
        raise SpecError(
            f"{sides[first].name}: {field_of(name)}.key: {', '.join(missing)} cannot be compared, so that no row has its"
            " pair; select it in both jobs"
        )
    tables[fork], changed = _now(tables[fork], output.key)
    tables[first] = [table.filter(_of_keys(table, output.key, changed)) for table in tables[first]]
    keys = words.counted(len(changed), "keys")
    told = f"with the rows of {_place(output)} as they are now, of the {keys} that {sides[fork].name} has changed"
    return [_sum(some) for some in tables], told


def _sum(tables: Sequence[pa.Table]) -> Contents:
    found = Contents()
    for table in tables:
        found = found.after(table)
    return found


def _now(tables: Sequence[pa.Table], key: Sequence[str]) -> tuple[list[pa.Table], set[Key]]:
    """Return the rows that are there after changes, and all keys that have changed.

    Within a batch a key's row may go and come in any order: it is there if one has come.
    """
    if not any(CHANGE_TYPE in table.column_names for table in tables):
        return list(tables), {value for table in tables for value in _keys(table, key)}
    changes = pa.concat_tables(tables)
    last: dict[Key, tuple[int, bool, int]] = {}
    came = [word not in (DELETE, PREIMAGE) for word in changes[CHANGE_TYPE].to_pylist()]
    for at, step in enumerate(zip(_keys(changes, key), changes[BATCH].to_pylist(), came, strict=True)):
        value, batch, there = step
        last[value] = max(last.get(value, (-1, False, -1)), (batch, there, at))
    alive = sorted(at for _, there, at in last.values() if there)
    kept = changes.take(pa.array(alive, pa.int64())).drop_columns([CHANGE_TYPE, BATCH])
    return [kept], {*last}


def _of_keys(table: pa.Table, key: Sequence[str], wanted: Collection[Key]) -> pa.BooleanArray:
    return pa.array([value in wanted for value in _keys(table, key)], pa.bool_())


def _keys(table: pa.Table, key: Sequence[str]) -> Iterator[Key]:
    """Yield the key of each row, which equals an equal one."""
    return zip(*(map(equality, table[column].to_pylist()) for column in key), strict=True)
