"""Says a plan in the words of the text: the same plan, with the names that its writer knows.

    bid_2.auction                               bid.auction
    w.price, of rows that nothing is joined to  price
    s._k, the mean that stage 0 computes        avg(lineitem.l_quantity)
    $tumble(at, 10000000, 0)                    TUMBLE(at, 10s)
    $e0.start, of a list                        start
    NOT (a.x IS NULL)                           a.x IS NOT NULL
    INTERVAL 10000000 MICROSECONDS              INTERVAL 10 SECONDS

Law: inputs of one stage are called differently.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from joinlib.expr import Expr
from joinlib.model.inputs import InputPlan
from joinlib.model.stage import AnyStage, HopStage, Pipeline, Stage, selected
from joinlib.spec.duration import text as duration

Say = Callable[[str], str]
_QUOTED = r"'(?:[^'\\]|\\.|'')*'"
_INNER = r"((?:[^()]|\((?:[^()]|\([^()]*\))*\))*?)"
_WINDOW = re.compile(rf"\$(tumble|hop|cumulate)\({_INNER}, (\d+)(?:, (\d+))?, (\d+)\)")
_MICROS = re.compile(rf"{_QUOTED}|INTERVAL (-?\d+) MICROSECONDS")
_OURS = r"(?<![\w.$`])\$(?:e\d+\.(?=\w)|(?=(?:left|right|at|k\d+|session_start|session_end)\b))"
_NOT_NULL = re.compile(rf"\bNOT \({_INNER} IS NULL\)")
_UNITS = {
    "DAYS": 86_400_000_000,
    "HOURS": 3_600_000_000,
    "MINUTES": 60_000_000,
    "SECONDS": 1_000_000,
    "MILLISECONDS": 1000,
}


def spoken(plan: Pipeline) -> Pipeline:
    """Return the plan in the words of the text."""
    names = _names(plan)
    values = {
        f"{given.alias}.{column}": value
        for stage in plan.stages
        for given in stage.inputs
        for column, value in _computed(plan, given)
    }
    say = _say(names, values)
    stages = tuple(_renamed(_told(stage, say), names) for stage in plan.stages)
    called = tuple(replace(c, alias=names[c.alias]) for c in plan.called if c.alias in names)
    joins = (replace(j, inputs=tuple(names.get(i, i) for i in j.inputs)) for j in plan.joined.joins)
    joined = replace(plan.joined, joins=_told(tuple(joins), say))
    orders = tuple(order.called(names) for order in plan.orders)
    return replace(plan, stages=stages, called=called, joined=joined, orders=orders)


def parts(told: Pipeline) -> dict[str, str]:
    """Return the CTE, view or derived table that each alias of a plan in the words of the text stands for."""
    return {c.alias: c.part for c in told.called if c.part}


def bare(sql: str) -> str:
    """Return the text of an expression without the parentheses around all of it."""
    if not (sql.startswith("(") and sql.endswith(")")):
        return sql
    depth = 0
    for at, sign in enumerate(re.sub(_QUOTED, lambda m: " " * len(m[0]), sql)):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and at < len(sql) - 1:
            return sql
    return bare(sql[1:-1])


def plain(sql: str, alias: str) -> str:
    """Return a text over one input without the input's name."""
    call = re.fullmatch(r"(\w+\((?:DISTINCT )?)(.*)\)", sql)
    sql = f"{call[1]}{bare(call[2])})" if call else sql
    return _sub(rf"(?<![\w.$`]){re.escape(alias)}\.(?=[\w$`])", "", bare(sql))


# --- names --------------------------------------------------------------------------------------------


def _names(plan: Pipeline) -> dict[str, str]:
    """Return what each alias is called: as in the text, if no other input of its stages is called so."""
    known = {c.alias: c.name.removeprefix("$") for c in plan.called}
    beside: dict[str, set[str]] = {}
    for stage in plan.stages:
        own = list(dict.fromkeys(_aliases(stage)))
        for alias in own:
            beside.setdefault(alias, set()).update(own)
    names: dict[str, str] = {}
    for alias, others in beside.items():
        wanted = known.get(alias, alias)
        if not wanted:
            wanted = "subquery" if len(others) > 1 else ""
        taken, name, number = {names.get(other) for other in others - {alias}}, wanted, 1
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        names[alias] = name
    return names


def _aliases(stage: AnyStage) -> Iterator[str]:
    for given in stage.inputs:
        if not given.alias.startswith("$"):
            yield given.alias
        yield from (c.partition(".")[0] for c in given.read if "." in c and not c.startswith("$"))
    yield from (lookup.table.alias for lookup in stage.lookups)


def _renamed(stage: AnyStage, names: Mapping[str, str]) -> AnyStage:
    """Give the inputs of a stage their names."""

    def named(given: InputPlan) -> InputPlan:
        return replace(given, alias=names.get(given.alias, given.alias) or given.source)

    inputs = tuple(map(named, stage.inputs))
    if not isinstance(stage, Stage | HopStage):
        return replace(stage, inputs=inputs)
    lookups = tuple(replace(asked, table=named(asked.table)) for asked in stage.lookups)
    return replace(stage, inputs=inputs, lookups=lookups)


def _computed(plan: Pipeline, given: InputPlan) -> Iterator[tuple[str, str]]:
    """Yield the columns that the text has no names for, and what they are."""
    made: tuple[tuple[str, Expr], ...] = ()
    if given.maps:
        made = given.maps[-1].columns
    elif given.upstream is not None:
        made = selected(plan.stages[given.upstream])
    for column, value in made:
        if column.startswith("_") and value.column != column:
            yield column, value.sql


# --- texts --------------------------------------------------------------------------------------------


def _say(names: Mapping[str, str], values: Mapping[str, str]) -> Say:
    """Return the function that says a text of the plan."""
    changed = {alias: name for alias, name in names.items() if alias != name}
    some = "|".join(map(re.escape, sorted([*values, *changed], key=len, reverse=True))) or "(?!)"
    pattern = rf"(?<![\w.$`])(?:{some})(?![\w`])(?:\.(?=[\w$`]))?"

    def word(found: re.Match[str]) -> str:
        text = found[0]
        if text in values:
            return say(values[text])
        if not text.endswith("."):
            return text
        name = changed[text[:-1]]
        return f"{name}." if name else ""

    def say(text: str) -> str:
        plainer = _sub(_OURS, "", _sub(pattern, word, text))
        return _MICROS.sub(_interval, _WINDOW.sub(_window, _NOT_NULL.sub(r"\1 IS NOT NULL", plainer)))

    return say


def _sub(pattern: str, word: str | Callable[[re.Match[str]], str], text: str) -> str:
    """Replace what is not within quotes."""

    def change(found: re.Match[str]) -> str:
        if found[0].startswith("'"):
            return found[0]
        return word if isinstance(word, str) else word(found)

    return re.sub(rf"{_QUOTED}|{pattern}", change, text)


def _window(found: re.Match[str]) -> str:
    kind, at, size, step, offset = found.groups()
    lengths = [int(step), int(size)] if step else [int(size)]
    lengths += [int(offset)] if int(offset) else []
    return f"{kind.upper()}({at}, {', '.join(map(duration, lengths))})"


def _interval(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[0]
    micros = int(found[1])
    unit = next((u for u, length in _UNITS.items() if micros and micros % length == 0), None)
    return f"INTERVAL {micros // _UNITS[unit]} {unit}" if unit else found[0]


def _told(value: Any, say: Say) -> Any:
    """Return a frozen value with all texts in it said."""
    if isinstance(value, str):
        return say(value)
    if isinstance(value, tuple):
        return tuple(_told(each, say) for each in value)
    if isinstance(value, Expr):  # its node computes, and has no words
        return replace(value, sql=say(value.sql), columns=tuple(map(say, value.columns)))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _told(getattr(value, f.name), say) for f in fields(value)})
    return value
