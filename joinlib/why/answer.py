"""The two questions: what became of rows that meet a condition, and which rows was a row of the result made of?"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.checkpoint.identity import orders_of
from joinlib.compiled import Compiled, compiled
from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.model.stage import Pipeline
from joinlib.spec.model import StreamJoin
from joinlib.sql.condition import condition, parsed, unknown
from joinlib.why.few import Few
from joinlib.why.node import Level, level_of
from joinlib.why.progress import Progress
from joinlib.why.scan import Scans
from joinlib.why.trace import Trace, stored_as
from joinlib.why.verdict import Fate, Found, Looked, ResultRow


@dataclass(frozen=True)
class _Entry:
    """Where rows of a source come in: a leaf of a level, and what a condition may call its columns."""

    level: Level
    leaf: int
    columns: Mapping[str, str]  # the source's column by each of its names

    def types(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        """Return the types of the columns by name."""
        return {name: schema.field(column).type for name, column in self.columns.items()}


def whynot(document: StreamJoin, text: str) -> list[Looked]:
    """Say what became of the rows that meet a condition, for each input as it is named in the SQL.

    Raises:
        SpecError: There is no checkpoint, the condition is wrong, or no input has its columns.
    """
    return list(_Question(document, text).looked())


def why(document: StreamJoin, text: str) -> tuple[list[ResultRow], list[str]]:
    """Return the rows of the result that meet a condition, and notes on what could not be looked at.

    Raises:
        SpecError: As for `whynot`.
    """
    return _Question(document, text).results()


class _Question:
    def __init__(self, document: StreamJoin, text: str) -> None:
        checkpoint = document.spec.checkpoint.folder
        if orders_of(checkpoint) is None:
            raise SpecError(f"no run so far: {checkpoint} holds no checkpoint")
        self._text, self._tree = text, parsed(text)
        self._plan: Compiled = compiled(document, 1)
        self._schemas = {source.name: source.schema for source in self._plan.source.sources}
        self._progress = Progress(checkpoint, self._plan.pipeline)
        self._entries = list(_entries(self._plan.pipeline, self._schemas))
        self._check()

    def _check(self) -> None:
        """Check that some input has all columns of the condition."""
        if not any(not self._unknown(entry) for entry in self._entries):
            missing = {name for entry in self._entries for name in self._unknown(entry)}
            lines = dict.fromkeys(
                f"  {e.level.inputs[e.leaf].source}: {', '.join(dict.fromkeys(e.columns.values()))}"
                for e in self._entries
            )
            raise SpecError(
                f"no input has all columns of the condition ({', '.join(sorted(missing))}); there are\n"
                + "\n".join(lines)
            )

    def _unknown(self, entry: _Entry) -> list[str]:
        return unknown(self._tree, dict.fromkeys(entry.columns, pa.null()))

    def looked(self) -> Iterator[Looked]:
        """Yield what was found in each input."""
        for entry in self._entries:
            plan = entry.level.inputs[entry.leaf]
            if missing := self._unknown(entry):
                yield Looked(plan.source, plan.alias, (), 0, tuple(missing))
                continue
            trace, count = self._traced(entry)
            fates = tuple(Fate(trace.row_of(n), tuple(trace.verdicts[n])) for n in sorted(trace.asked))
            yield Looked(plan.source, plan.alias, fates, count, notes=tuple(trace.notes))

    def results(self) -> tuple[list[ResultRow], list[str]]:
        """Return the rows of the result, and notes."""
        rows, notes = list[ResultRow](), dict[str, None]()
        for entry in self._entries:
            if self._unknown(entry):
                continue
            trace, _ = self._traced(entry)
            notes |= trace.notes
            for verdicts in trace.verdicts.values():
                for found in (v for v in verdicts if isinstance(v, Found)):
                    rows += [row for row in self._meeting(found.results) if row not in rows]
        return rows, list(notes)

    def _traced(self, entry: _Entry) -> tuple[Trace, int]:
        plan = entry.level.inputs[entry.leaf]
        asked = condition(self._tree, self._text, entry.types(self._schemas[plan.source]))
        scans = Scans(self._plan.source.sources, self._plan.source.logs, self._progress)
        trace = Trace(self._plan, self._progress, scans)
        columns = [entry.columns[name] for name in asked.columns]
        scanned = trace.follow(entry.level.number, entry.leaf, partial(_met, asked, entry.columns), columns)
        return trace, scanned.count

    def _meeting(self, rows: tuple[ResultRow, ...]) -> list[ResultRow]:
        """Return the rows that meet the condition, as far as the output has its columns."""
        found = []
        for row in rows:
            result = next(r for r in self._plan.pipeline.results if r.name == row.output)
            schema = self._plan.pipeline.only(result).schema
            if unknown(self._tree, dict.fromkeys(schema.names, pa.null())):
                found.append(row)
                continue
            asked = condition(self._tree, self._text, {f.name: f.type for f in schema})
            one = pa.Table.from_pylist([dict(row.values)], schema)
            found += [row] if Few(one, ((),)).truth(asked)[0] else []
        return found


def _met(asked: Expr, columns: Mapping[str, str], rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    value = asked.evaluate(lambda name: rows.column(columns[name]), rows.num_rows)
    return np.asarray(pc.fill_null(value, False).to_numpy(zero_copy_only=False), np.bool_)


def _entries(pipeline: Pipeline, schemas: Mapping[str, pa.Schema]) -> Iterator[_Entry]:
    """Yield where rows of sources come in."""
    renamed = _renamed(pipeline)
    for number, stage in enumerate(pipeline.stages):
        if pipeline.store_of(number) != number:
            continue
        level = level_of(pipeline, number)
        for leaf, plan in enumerate(level.inputs):
            if plan.upstream is not None or stage.inputs[level.own[leaf]].again is not None:
                continue
            own = schemas[plan.source].names
            names = {name: name for name in own} | {f"{plan.alias}.{name}": name for name in own}
            yield _Entry(level, leaf, {**renamed.get((number, leaf), {}), **names})


def _renamed(pipeline: Pipeline) -> dict[tuple[int, int], dict[str, str]]:
    """Return, by level and leaf, which columns of outputs are columns of a source."""
    found: dict[tuple[int, int], dict[str, str]] = {}
    for result in pipeline.results:
        for name in pipeline.only(result).schema.names:
            at, column = result.stage, name
            while (stored := stored_as(pipeline, at, column)) is not None:
                level, leaf, column = stored
                plan = level.inputs[leaf]
                value = next(c.value for c in plan.columns if c.name == column).column
                if value is None or plan.maps:
                    break
                if plan.upstream is None:
                    own = value.removeprefix(f"{plan.alias}.")
                    found.setdefault((level.number, leaf), {}).setdefault(name, own)
                    break
                at, column = plan.upstream, value
    return found
