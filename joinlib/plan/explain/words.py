"""Says a plan in the words of the text: the same plan, with the names that its writer knows.

    bid_2.auction                               bid.auction
    w.price, of rows that nothing is joined to  price
    $0.at, of rows that nothing is joined to    at
    $tumble(at, 10000000, 0)                    TUMBLE(at, 10s)
    $e0.start, of a list                        start
    NOT (a.x IS NULL)                           a.x IS NOT NULL, or nothing, if paths alone ask it of their keys
    (a.x = 1) AND (a.y = 2)                     a.x = 1 AND a.y = 2

Law: inputs of one stage are called differently.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from joinlib.model.inputs import InputPlan
from joinlib.model.stage import AnyStage, HopStage, PathStage, Pipeline, Stage
from joinlib.plan.explain.calls import in_sql
from joinlib.plan.explain.parentheses import lighter
from joinlib.plan.explain.texts import Say, bare, in_all, in_text, renaming
from joinlib.plan.explain.unnamed import naming, unnamed
from joinlib.plan.paths import as_asked

SUBQUERY = "subquery"  # what an input is called that the text gives no name
_OURS = r"(?<![\w.$`])\$(?:(?:e?\d+)\.(?=\w)|(?=(?:left|right|at|k\d+|session_start|session_end)\b))"


def spoken(plan: Pipeline) -> Pipeline:
    """Return the plan in the words of the text."""
    stages = tuple(as_asked(s) if isinstance(s, PathStage) else s for s in plan.stages)
    names, plan = _names(plan), unnamed(replace(plan, stages=stages))
    say = _say(names)
    stages = tuple(_renamed(in_all(stage, say), names) for stage in plan.stages)
    called = tuple(replace(c, alias=names[c.alias]) for c in plan.called if c.alias in names)
    joins = (replace(j, inputs=tuple(names.get(i, i) for i in j.inputs)) for j in plan.joined.joins)
    joined = replace(plan.joined, joins=in_all(tuple(joins), say))
    orders = tuple(order.called(names) for order in plan.orders)
    return replace(plan, stages=stages, called=called, joined=joined, orders=orders)


def saying(plan: Pipeline) -> Say:
    """Return what says a text of the plan in the words of the query."""
    name, say = naming(plan), _say(_names(plan))
    return lambda text: say(name(text))


def parts(told: Pipeline) -> dict[str, str]:
    """Return the CTE, view or derived table that each alias of a plan in the words of the text stands for."""
    return {c.alias: c.part for c in told.called if c.part and c.alias}


def plain(sql: str, alias: str) -> str:
    """Return a text over one input without the input's name."""
    call = re.fullmatch(r"(\w+\((?:DISTINCT )?)(.*)\)", sql)
    sql = f"{call[1]}{bare(call[2])})" if call else sql
    return in_text(rf"(?<![\w.$`]){re.escape(alias)}\.(?=[\w$`])", "", bare(sql))


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
            wanted = SUBQUERY if len(others) > 1 else ""
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


# --- texts --------------------------------------------------------------------------------------------


def _say(names: Mapping[str, str]) -> Say:
    """Return the function that says a text of the plan."""
    named = renaming(names)

    @cache  # many texts of a plan are alike
    def say(text: str) -> str:
        return lighter(in_sql(in_text(_OURS, "", named(text))))

    return say
