"""The two questions: what became of rows that meet a condition, and which rows was a row of the result made of?"""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial

import pyarrow as pa
from sqlglot import exp

from joinlib.compiled import Compiled, compiled
from joinlib.errors import ConditionError
from joinlib.expr import Expr
from joinlib.model.inputs import InputPlan
from joinlib.model.stage import NamedResult
from joinlib.spec.model import StreamJoin
from joinlib.sql.condition import condition, known_part, parsed, unknown
from joinlib.sql.parse import parse_query
from joinlib.sql.text import composed
from joinlib.why.entry import Carried, Entry, carried, covered, entries
from joinlib.why.few import Few
from joinlib.why.progress import Progress, check_known
from joinlib.why.scan import Scans
from joinlib.why.trace import Trace
from joinlib.why.verdict import Beyond, Counted, Fate, Found, Looked, ResultRow, RowGroup

_GROUPS = "groups are shown with the rows that meet the condition and their partners; they may have others"
_UNKNOWN = "the groups are more, or have more rows, than are looked at; name keys of groups in the condition, with AND"
_LACKING = "rows of the result without a row of that input are not looked at; name columns of the output"
_Ask = tuple[Entry, Expr]  # an input, and what is asked of its rows


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
        schemas = {source.name: source.schema for source in self._plan.source.sources}
        self._progress = Progress(checkpoint, self._plan.pipeline)
        self._aliases = _aliases(document)
        self._entries = list(entries(self._plan.pipeline, schemas, self._aliases, self._carried))

    def _check(self) -> None:
        """Check that each column of the condition is in some input, and that some input can be asked."""
        missing = set.intersection(*({*self._unknown(entry)} for entry in self._entries))
        if missing or not any(self._part(entry) for entry in self._entries):
            inputs = dict.fromkeys(f"  {e.plan.source}: {', '.join(e.source.names)}" for e in self._entries)
            names = ", ".join(sorted(missing)) or "they are of several"
            raise ConditionError(f"no input has its columns ({names}); there are\n" + "\n".join(inputs))

    def _unknown(self, entry: Entry) -> list[str]:
        return unknown(self._tree, entry.types)

    def _part(self, entry: Entry) -> Expr | None:
        """Return the part of the condition that an input can be asked."""
        part = known_part(self._tree, entry.types)
        return None if part is None else condition(part, self._text, entry.types)

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
        asks = list(self._of_outputs() if self._whole else self._of_inputs())
        if not self._whole and any(self._may_lack(asks, one) for one in self._plan.pipeline.results):
            notes[_LACKING] = None
        for entry, part in _each_once(asks):
            trace, _ = self._traced(entry, part)
            notes |= trace.notes
            for verdict in (v for verdicts in trace.verdicts.values() for v in verdicts):
                if isinstance(verdict, Found):
                    rows = _with(rows, self._meeting(verdict.results))
                if isinstance(verdict, Counted):
                    counted.setdefault(verdict.group, []).append(verdict)
                if isinstance(verdict, Beyond):
                    notes[f"rows of {entry.plan.source} are not followed where {verdict.what}"] = None
        computed = self._computed
        if counted:
            notes[_UNKNOWN if computed else _GROUPS] = None
        groups = [] if computed else [_of_group(of) for of in counted.values()]
        return rows + groups, list(notes)

    def _of_inputs(self) -> list[_Ask]:
        """Return the inputs that have all columns of the condition.

        Raises:
            ConditionError: There is none.
        """
        self._check()
        parts = ((entry, self._part(entry)) for entry in self._entries if not self._unknown(entry))
        if asks := [(entry, part) for entry, part in parts if part is not None]:
            return asks
        there = ", ".join(dict.fromkeys(name for schema in self._outputs for name in schema.names))
        raise ConditionError(
            f"it is over several inputs, and the output has not all of its columns, but {there}"
        )

    def _of_outputs(self) -> Iterator[_Ask]:
        """Yield inputs such that each row of an output that meets the condition has an asked row of one of them.

        Raises:
            ConditionError: It is no condition.
        """
        every = condition(parsed("TRUE"), "TRUE", {})
        results = self._plan.pipeline.results
        for result, schema, names in zip(results, self._outputs, self._carried, strict=True):
            condition(self._tree, self._text, {f.name: f.type for f in schema})
            parts = [(entry, self._part(entry)) for entry in (one.of(names) for one in self._entries)]
            asks = [(entry, part) for entry, part in parts if part is not None]
            yield from asks
            if self._may_lack(asks, result):
                yield from ((entry, every) for entry, part in parts if part is None)

    def _may_lack(self, asks: Sequence[_Ask], result: NamedResult) -> bool:
        """Whether rows of an output may meet the condition without a row of any of these inputs."""
        places = {entry.place for entry, _ in asks}
        return all(entry.meets_without(part) for entry, part in asks) and not covered(
            self._plan.pipeline, result.stage, places
        )

    @cached_property
    def _carried(self) -> list[Carried]:
        return [carried(self._plan.pipeline, result) for result in self._plan.pipeline.results]

    @property
    def _computed(self) -> bool:
        """Whether a column of the condition is one of outputs that is not of a row of an input."""
        known = {name: pa.null() for names in self._carried for values in names.values() for name in values}
        return self._whole and bool(unknown(self._tree, known))

    @cached_property
    def _outputs(self) -> list[pa.Schema]:
        plan = self._plan.pipeline
        return [plan.only(result).schema for result in plan.results]

    @cached_property
    def _whole(self) -> bool:
        """Whether every output has all columns of the condition."""
        return not any(
            unknown(self._tree, dict.fromkeys(schema.names, pa.null())) for schema in self._outputs
        )

    def _traced(self, entry: Entry, asked: Expr) -> tuple[Trace, int]:
        scans = Scans(self._plan.source.sources, self._plan.source.logs, self._progress)
        trace = Trace(self._plan, self._progress, scans, self._shown)
        scanned = trace.follow(
            entry.level.number, entry.leaf, partial(entry.meets, asked), entry.read_by(asked)
        )
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


def _each_once(asks: Sequence[_Ask]) -> list[_Ask]:
    """Return what outputs ask of inputs, without what others of them ask as well."""
    found: dict[object, list[_Ask]] = {}
    for entry, part in asks:
        same = found.setdefault((entry.place, part.sql), [])
        if all(entry.values != other.values for other, _ in same):
            same.append((entry, part))
    return [one for same in found.values() for one in same]


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


def _aliases(document: StreamJoin) -> dict[str, str]:
    """Return what inputs are called in the texts of a spec, by what they are called."""
    spec = document.spec
    texts = [output.sql for output in spec.outputs.values()] or [spec.sql]
    trees = (parse_query(composed(text, spec.views, spec.parameters).sql) for text in texts)
    found = ((table.alias_or_name, table.name) for tree in trees for table in tree.find_all(exp.Table))
    return {alias: name for alias, name in found if name in spec.inputs}
