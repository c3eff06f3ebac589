"""Groups as they stand: keys and aggregates of each, whether or not HAVING would leave it out.

partials and bags of a unit ─► one partial a group ─► what the aggregates are so far
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from joinlib.aggregate.finish import finished
from joinlib.aggregate.found import found
from joinlib.aggregate.groups import families, opened
from joinlib.aggregate.partial import merge
from joinlib.apart import Failing
from joinlib.expr import Expr, Node, Ref, ref
from joinlib.expr.nodes import Call
from joinlib.expr.packed import unpack, unpacked, unpacked_list
from joinlib.expr.rows import Rule, by_rows
from joinlib.model.bags import Bag, bags_of
from joinlib.model.grouping import AggregateCall, Grouping, GroupKey
from joinlib.model.stage import GroupStage
from joinlib.plan.explain.groups import WINDOWS
from joinlib.plan.explain.texts import bare
from joinlib.plan.explain.words import plain
from joinlib.state.manifest import Manifest
from joinlib.why.stored import NamedStore, column_of, names, passed

_NAME = "groups"


@dataclass(frozen=True)
class KeptGroups:
    """The groups of a stage. `grouping` has the columns of the table as its select list, and no HAVING."""

    grouping: Grouping
    kept: str

    @property
    def schema(self) -> pa.Schema:
        return self.grouping.schema

    def mapped(self, folder: Path, manifest: Manifest) -> Iterator[pa.RecordBatch]:
        groups, *bags = (own.parts() for own in opened(folder, families(self.grouping), manifest))
        return self._rows(groups, dict(zip(bags_of(self.grouping), bags, strict=True)))

    def _rows(
        self, parts: Sequence[pa.RecordBatch], bags: Mapping[Bag, Sequence[pa.RecordBatch]]
    ) -> Iterator[pa.RecordBatch]:
        groups = merge(parts, self.grouping)
        yield finished(groups, self.grouping, found(self.grouping, groups, bags), _left_out)


def _left_out(rows: pa.RecordBatch, failing: Sequence[Failing]) -> None:
    """Take groups of which a value does not fit its type: they have no row in the result either."""


def kept_groups(stage: GroupStage, told: GroupStage) -> NamedStore:
    """Return the groups of a stage. told: the stage in the words of the text."""
    grouping = stage.grouping
    values = [*map(_key, grouping.keys), *(_value(call, grouping) for call in grouping.every)]
    select = tuple(zip(names(_named(stage, told)), values, strict=True))
    return NamedStore(_NAME, "", KeptGroups(replace(grouping, having=None, select=select), _kept(told)))


def _kept(told: GroupStage) -> str:
    grouping, release = told.grouping, told.grouping.release
    if release is not None:
        return passed(f"all of its {_text(told, release.value.sql)}", release.behind_us)
    if grouping.final_close:
        return "until the inputs are closed"
    return "until their last rows are deleted" if grouping.changes and grouping.keys else "forever"


# --- columns ------------------------------------------------------------------------------------------


def _key(key: GroupKey) -> Expr:
    column = ref(key.name, key.type)
    return column if key.kind is None else unpack(column, key.kind)


def _value(call: AggregateCall, grouping: Grouping) -> Expr:
    """Return the value of an aggregate, taken out again where it is packed and the query says what it is."""
    read = [value for _, value in grouping.select] + ([] if grouping.having is None else [grouping.having])
    for node in (node for value in read if call.name in value.columns for node in _nodes(value.node)):
        if isinstance(node, Call) and node.kernel is by_rows and node.arguments == (Ref(call.name),):
            [rule] = node.parameters
            if isinstance(rule, Rule) and rule.of in (unpacked, unpacked_list):
                return Expr(call.sql, (call.name,), rule.kind, node)
    return ref(call.name, call.type)


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, Call):
        for one in node.arguments:
            yield from _nodes(one)


# --- names --------------------------------------------------------------------------------------------


def _named(stage: GroupStage, told: GroupStage) -> list[tuple[str, str]]:
    """Return what keys and aggregates are called: as in the select list, else by what they are; and the latter."""
    say = partial(_text, told)
    pairs = zip(stage.grouping.select, told.grouping.select, strict=True)
    selected = {value.sql: say(name) for (_, value), (name, _) in reversed([*pairs])}
    texts = [
        *(_window(say(key.sql)) for key in told.grouping.keys),
        *(say(c.sql) for c in told.grouping.every),
    ]
    own = [*(key.sql for key in stage.grouping.keys), *(call.sql for call in stage.grouping.every)]
    return [(selected.get(sql, column_of(text)), text) for sql, text in zip(own, texts, strict=True)]


def _text(told: GroupStage, text: str) -> str:
    """Return a text of the stage; columns of its only input are without the input's name."""
    return plain(text, told.inputs[0].alias) if len(told.inputs) == 1 else bare(text)


def _window(text: str) -> str:
    """Return what a key is; a window is called as in the query."""
    if not WINDOWS.match(text):
        return text
    return "window_end" if re.search(r"\) \+ INTERVAL \d+ \w+$", text) else "window_start"
