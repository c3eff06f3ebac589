"""The two questions: what became of rows that meet a condition, and which rows was a row of the result made of?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from joinlib.compiled import Compiled, compiled
from joinlib.errors import ConditionError
from joinlib.expr import Expr
from joinlib.model.inputs import InputPlan
from joinlib.model.stage import Pipeline
from joinlib.spec.model import StreamJoin
from joinlib.sql.condition import condition, known_part, parsed, unknown
from joinlib.sql.parse import parse_query
from joinlib.sql.text import composed
from joinlib.why.few import Few
from joinlib.why.node import Level, level_of
from joinlib.why.progress import Progress, check_known
from joinlib.why.scan import Scans
from joinlib.why.trace import Trace, stored_as
from joinlib.why.verdict import Beyond, Counted, Fate, Found, Looked, ResultRow, RowGroup

_GROUPS = "groups are shown with the rows that meet the condition and their partners; they may have others"
_UNKNOWN = "the groups are more, or have more rows, than are looked at; name keys of groups in the condition, with AND"


@dataclass(frozen=True)
class _Entry:
    """Where rows of a source come in: a leaf of a level, and what a condition may call its columns."""

    level: Level
    leaf: int
    columns: Mapping[str, str]  # the source's column by each of its names

    @property
    def plan(self) -> InputPlan:
        return self.level.inputs[self.leaf]

    def types(self, schemas: Mapping[str, pa.Schema]) -> dict[str, pa.DataType]:
        """Return the types of the columns by name."""
        schema = schemas[self.plan.source]
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
        self._text, self._tree = text, parsed(text)
        self._plan: Compiled = compiled(document, 1)
        check_known(checkpoint, self._plan.pipeline)
        self._schemas = {source.name: source.schema for source in self._plan.source.sources}
        self._progress = Progress(checkpoint, self._plan.pipeline)
        self._aliases = _aliases(document)
        self._entries = list(_entries(self._plan.pipeline, self._schemas, self._aliases))

    def _check(self) -> None:
        """Check that each column of the condition is in some input, and that some input can be asked."""
        missing = set.intersection(*({*self._unknown(entry)} for entry in self._entries))
        if missing or not any(self._part(entry) for entry in self._entries):
            inputs = dict.fromkeys(
                f"  {e.plan.source}: {', '.join(dict.fromkeys(e.columns.values()))}" for e in self._entries
            )
            names = ", ".join(sorted(missing)) or "they are of several"
            raise ConditionError(f"no input has its columns ({names}); there are\n" + "\n".join(inputs))

    def _unknown(self, entry: _Entry) -> list[str]:
        return unknown(self._tree, dict.fromkeys(entry.columns, pa.null()))

    def _part(self, entry: _Entry) -> Expr | None:
        """Return the part of the condition that an input can be asked."""
        part = known_part(self._tree, types := entry.types(self._schemas))
        return None if part is None else condition(part, self._text, types)

    def looked(self) -> Iterator[Looked]:
        """Yield what was found in each input."""
        self._check()
        for entry in self._entries:
            plan, missing = entry.plan, tuple(self._unknown(entry))
            if (part := self._part(entry)) is None:
                yield Looked(plan.source, self._shown(plan), (), 0, missing)
                continue
            trace, count = self._traced(entry, part)
            fates = tuple(Fate(trace.row_of(n), tuple(trace.verdicts[n])) for n in sorted(trace.asked))
            yield Looked(plan.source, self._shown(plan), fates, count, missing, part.sql, tuple(trace.notes))

    def results(self) -> tuple[list[ResultRow], list[str]]:
        """Return the rows of the result, and notes."""
        rows, notes = list[ResultRow](), dict[str, None]()
        counted = dict[RowGroup, list[Counted]]()
        every = self._every()
        for entry in self._entries:
            part = self._part(entry) or every
            if part is None or (self._unknown(entry) and not self._of_output):
                continue
            trace, _ = self._traced(entry, part)
            notes |= trace.notes
            for verdict in (v for verdicts in trace.verdicts.values() for v in verdicts):
                if isinstance(verdict, Found):
                    rows = _with(rows, self._meeting(verdict.results))
                if isinstance(verdict, Counted):
                    counted.setdefault(verdict.group, []).append(verdict)
                if isinstance(verdict, Beyond):
                    notes[f"rows of {entry.plan.source} are not followed where {verdict.what}"] = None
        if counted:
            notes[_UNKNOWN if self._computed else _GROUPS] = None
        groups = [] if self._computed else [_of_group(of) for of in counted.values()]
        return rows + groups, list(notes)

    def _every(self) -> Expr | None:
        """Return what asks an input for all rows, where the condition is only over columns that the query computes.

        Raises:
            ConditionError: Neither inputs nor outputs can be asked.
        """
        if not self._whole:
            self._check()
        for schema in self._outputs if self._whole else ():
            condition(self._tree, self._text, {f.name: f.type for f in schema})
        return None if any(map(self._part, self._entries)) else condition(parsed("TRUE"), "TRUE", {})

    @cached_property
    def _computed(self) -> bool:
        """Whether a column of the condition is of no input."""
        return bool(set.intersection(*({*self._unknown(entry)} for entry in self._entries)))

    @property
    def _outputs(self) -> list[pa.Schema]:
        plan = self._plan.pipeline
        return [plan.only(result).schema for result in plan.results]

    @cached_property
    def _whole(self) -> bool:
        """Whether every output has all columns of the condition."""
        return not any(
            unknown(self._tree, dict.fromkeys(schema.names, pa.null())) for schema in self._outputs
        )

    @cached_property
    def _of_output(self) -> bool:
        """Whether every output has all columns of the condition.

        Raises:
            ConditionError: Neither it nor one input has.
        """
        schemas, whole = self._outputs, self._whole
        if not whole and all(map(self._unknown, self._entries)):
            there = ", ".join(dict.fromkeys(name for schema in schemas for name in schema.names))
            raise ConditionError(
                f"it is over several inputs, and the output has not all of its columns, but {there}"
            )
        return whole

    def _traced(self, entry: _Entry, asked: Expr) -> tuple[Trace, int]:
        scans = Scans(self._plan.source.sources, self._plan.source.logs, self._progress)
        trace = Trace(self._plan, self._progress, scans, self._shown)
        columns = [entry.columns[name] for name in asked.columns]
        scanned = trace.follow(entry.level.number, entry.leaf, partial(_met, asked, entry.columns), columns)
        return trace, scanned.count

    def _shown(self, plan: InputPlan) -> str:
        """Return what an input is called in the text; where a rewrite has named it and that is not clear, in the spec."""
        if plan.alias in self._aliases:
            return plan.alias
        called = [alias for alias, name in self._aliases.items() if name == plan.source]
        return called[0] if len(called) == 1 else plan.source

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


def _with(rows: list[ResultRow], more: list[ResultRow]) -> list[ResultRow]:
    """Return rows and more rows, each once: that which knows most of what it was made of."""
    for row in more:
        same = [one for one in rows if (one.output, one.values) == (row.output, row.values)]
        if not any({*row.rows} <= {*one.rows} for one in same):
            rows = [*(one for one in rows if one not in same or not {*one.rows} <= {*row.rows}), row]
    return rows


def _of_group(counted: Sequence[Counted]) -> ResultRow:
    rows = dict.fromkeys(row for one in counted for row in one.rows)
    return ResultRow("", counted[0].group.keys, tuple(rows), group=True)


def _met(asked: Expr, columns: Mapping[str, str], rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    value = asked.evaluate(lambda name: rows.column(columns[name]), rows.num_rows)
    return np.asarray(pc.fill_null(value, False).to_numpy(zero_copy_only=False), np.bool_)


def _aliases(document: StreamJoin) -> dict[str, str]:
    """Return what inputs are called in the texts of a spec, by what they are called."""
    spec = document.spec
    texts = [output.sql for output in spec.outputs.values()] or [spec.sql]
    trees = (parse_query(composed(text, spec.views, spec.parameters).sql) for text in texts)
    found = ((table.alias_or_name, table.name) for tree in trees for table in tree.find_all(exp.Table))
    return {alias: name for alias, name in found if name in spec.inputs}


def _entries(
    pipeline: Pipeline, schemas: Mapping[str, pa.Schema], aliases: Mapping[str, str]
) -> Iterator[_Entry]:
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
            called = (
                [plan.alias] if plan.alias in aliases else [a for a, n in aliases.items() if n == plan.source]
            )
            names = {f"{one}.{name}": name for one in (plan.source, *called) for name in own}
            names |= {name: name for name in own}
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
