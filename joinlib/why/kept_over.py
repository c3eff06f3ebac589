"""What window functions, as-of joins and `now()` keep of rows, and of partitions.

    rows          that a batch may still change the functions of, or that wait for the watermark
    near          final rows that functions of later ones read
    sums          what final rows have been counted and summed to, a row for each partition

The rows of an as-of join are those of its two sides, as two tables.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.aggregate.groups import opened
from joinlib.model.inputs import InputPlan
from joinlib.model.over import Over
from joinlib.model.stage import OverStage
from joinlib.over.kept import families, living, summed
from joinlib.over.totals import counting, totals, totals_schema
from joinlib.plan.explain.asof import asof
from joinlib.plan.explain.texts import bare
from joinlib.state.manifest import Manifest
from joinlib.why.stored import NamedStore, column_of, name_of, names, passed

FINAL, PRESENT = "final", "present"  # columns that are added where no column is called so
_TOTALS = "partitions"
_COMES, _GOES = "comes", "goes"
_SIDE = "$right"

Columns = tuple[tuple[str, str], ...]  # what they are called in the table, and where they are stored


@dataclass(frozen=True)
class KeptRows:
    """Rows that are stored; of an as-of join those of one side."""

    over: Over
    columns: Columns
    kept: str
    marks: tuple[bool, ...]  # of the rows of each family that the table has: what the mark says
    mark: str = ""  # the column that tells families apart; empty: nothing does
    right: bool | None = None  # the side of an as-of join

    @property
    def schema(self) -> pa.Schema:
        kinds = dict(self.over.columns)
        more = [(self.mark, pa.bool_())] if self.mark else []
        return pa.schema([*((name, kinds[stored]) for name, stored in self.columns), *more])

    def mapped(self, folder: Path, manifest: Manifest) -> Iterator[pa.RecordBatch]:
        stores = opened(folder, families(self.over), manifest)[: len(self.marks)]
        parts = [own.parts() for own in stores]
        return (
            self._shown(some, own.family.schema, mark)
            for own, some, mark in zip(stores, parts, self.marks, strict=True)
        )

    def _shown(self, parts: Sequence[pa.RecordBatch], schema: pa.Schema, mark: bool) -> pa.RecordBatch:
        rows = living(summed(parts, schema))
        if self.right is not None:
            rows = rows.filter(pc.equal(rows.column(_side_column(self.over)), self.right))
        more = [pa.repeat(mark, rows.num_rows)] if self.mark else []
        return pa.record_batch([*(rows.column(stored) for _, stored in self.columns), *more], self.schema)


@dataclass(frozen=True)
class KeptTotals:
    """What final rows have been counted and summed to, by partition."""

    over: Over
    called: tuple[str, ...]  # keys of partitions, then functions
    kept: str = "forever"

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(
            [field.with_name(name) for field, name in zip(totals_schema(self.over), self.called, strict=True)]
        )

    def mapped(self, folder: Path, manifest: Manifest) -> Iterator[pa.RecordBatch]:
        *_, own = opened(folder, families(self.over), manifest)
        return self._rows(own.parts(), own.family.schema)

    def _rows(self, parts: Sequence[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        found = totals(self.over, living(summed(parts, schema)))
        yield pa.record_batch(found.columns, self.schema)


def kept_over(stage: OverStage, told: OverStage) -> Iterator[NamedStore]:
    """Yield what a stage keeps. told: the stage in the words of the text."""
    if asof(told):
        yield from _sides(stage, told)
        return
    over = stage.over
    yield _rows(stage, told)
    if _goes_on(over) and counting(over):
        yield _totals(over, told.over)


# --- rows ---------------------------------------------------------------------------------------------


def _rows(stage: OverStage, told: OverStage) -> NamedStore:
    over = stage.over
    mark, marks = _marks(over)
    columns = tuple(zip(_columns(over, told.over), (stored for stored, _ in over.columns), strict=True))
    rows = KeptRows(over, columns, _kept(told.over), marks, _free(mark, columns))
    return NamedStore(*_united(stage.inputs), rows)


def _united(inputs: Sequence[InputPlan]) -> tuple[str, str]:
    """Return what rows of these inputs are called, and the input of the spec if there is only one."""
    known = dict.fromkeys(map(name_of, inputs))
    return "_".join(name for name, _ in known), next(iter(known))[1] if len(known) == 1 else ""


def _marks(over: Over) -> tuple[str, tuple[bool, ...]]:
    """Return the column that tells families of rows apart, and what it says of the rows of each."""
    if over.present is not None:
        return (PRESENT if over.present[0] is not None else ""), (True, False)
    return (FINAL, (False, True)) if _goes_on(over) else ("", (False,))


def _columns(over: Over, told: Over) -> list[str]:
    """Return what stored columns are called in the table."""
    ends = dict(zip(over.present or (), (_COMES, _GOES), strict=False))
    pairs = zip(over.columns, told.columns, strict=True)
    wanted = ((ends.get(stored) or column_of(bare(text)), stored) for (stored, _), (text, _) in pairs)
    return names([(text, column_of(stored)) for text, stored in wanted])


def _free(mark: str, columns: Columns) -> str:
    """Return the column of a mark, if no other is called so."""
    return "" if mark in (name.lower() for name, _ in columns) else mark


def _goes_on(over: Over) -> bool:
    """Whether something is kept of rows that have come out."""
    return over.settles_by is not None and not over.sessions


def _kept(told: Over) -> str:
    """Say for how long rows are kept. told: in the words of the text."""
    if told.present is not None:
        return f"until the watermark reaches {_COMES if told.present[1] is None else _GOES}"
    if told.sessions and told.settles_by is not None:
        return passed("the end of their session", told.behind_us)
    if told.settles_by is not None:
        return (
            f"{passed(column_of(told.settles_by), told.behind_us)}, and then as far as later rows read them"
        )
    if told.top is not None and not told.changes:
        return f"while they are up to rank {told.top[1]} of their partition"
    if not told.changelog:
        return "until the inputs are closed"
    return "until they are deleted" if told.changes else "forever"


# --- as-of joins --------------------------------------------------------------------------------------


def _sides(stage: OverStage, told: OverStage) -> Iterator[NamedStore]:
    """Yield the rows of the left side, and those of the right side."""
    over, goes_on = stage.over, _goes_on(stage.over)
    pairs = [(given, *_side(given, text)) for given, text in zip(stage.inputs, told.inputs, strict=True)]
    for right in (False, True):
        inputs, texts = zip(*((given, texts) for given, side, texts in pairs if side is right), strict=True)
        there = {text: stored for text, stored in texts[0].items() if stored in dict(over.columns)}
        columns = tuple(zip(names([(column_of(text), text) for text in there]), there.values(), strict=True))
        kept = _kept(told.over) if right else _kept(told.over).partition(", and")[0]
        mark = _free(FINAL, columns) if goes_on and right else ""
        rows = KeptRows(over, columns, kept, (False, True) if goes_on and right else (False,), mark, right)
        yield NamedStore(*_united(inputs), rows)


def _side(given: InputPlan, told: InputPlan) -> tuple[bool, dict[str, str]]:
    """Return whether an input is the right side, and where its columns are stored, by the texts that compute them.

    The map that makes the sides alike has NULL for the columns of the other one.
    """
    maps = zip(given.maps, told.maps, strict=True)
    plain, said = next((one.columns, two.columns) for one, two in maps if _SIDE in dict(one.columns))
    texts: dict[str, str] = {}
    for (name, value), (_, text) in zip(plain, said, strict=True):
        if name != _SIDE and value.sql != "NULL":
            texts.setdefault(bare(text.sql), f"{given.alias}.{name}")
    return dict(plain)[_SIDE].sql == "TRUE", texts


def _side_column(over: Over) -> str:
    """Return where it is stored which side of an as-of join a row is of."""
    column = over.calls[0].condition
    assert column is not None
    return column


# --- partitions ---------------------------------------------------------------------------------------


def _totals(over: Over, told: Over) -> NamedStore:
    """Return what final rows have been counted and summed to, which is kept once a partition has been."""
    selected = {value.column: name for name, value in reversed(told.select)}
    texts = dict(zip((stored for stored, _ in over.columns), (text for text, _ in told.columns), strict=True))
    keys = [(column_of(bare(texts[stored])), texts[stored]) for stored in over.partition]
    words = {call.name: call.sql for call in told.calls}
    calls = [(selected.get(call.name, words[call.name]), words[call.name]) for call in counting(over)]
    return NamedStore(_TOTALS, "", KeptTotals(over, tuple(names([*keys, *calls]))))
