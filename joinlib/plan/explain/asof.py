"""Says an as-of join as the join that it is: rewrites make it a window function over the rows of both sides.

    y: last_value(y) FILTER (WHERE right) OVER (PARTITION BY k0 ORDER BY at, right DESC ...)        NOT right AND y > x
    asof left join a ⟕ b on k and b.t <= a.t                                        y: b.y          b.y > a.x

Law: the map that makes the sides alike has the columns of both, the keys, the time, and which side it is, in this order.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.model.inputs import InputPlan
from joinlib.model.maps import Map
from joinlib.model.stage import OverStage
from joinlib.plan.explain.texts import in_text
from joinlib.sql.condition import parsed
from joinlib.sql.rewrite import trees
from joinlib.sql.supported import written

_RIGHT, _NULL = "right", "NULL"
Side = tuple[
    str, Mapping[str, str]
]  # what it is called, and its expressions by the names that both sides have


@dataclass(frozen=True)
class _Joined:
    """An as-of join in the words of the text."""

    left: InputPlan
    right: InputPlan
    inner: bool
    sign: str
    keys: int

    @property
    def called(self) -> tuple[str, str]:
        """What the sides are called, each otherwise."""
        left, right = (given.alias.removeprefix("$") for given in (self.left, self.right))
        return left, f"{right}_2" if left == right else right

    @property
    def word(self) -> str:
        kind, mark = ("asof join", "⋈") if self.inner else ("asof left join", "⟕")
        return f"{kind} {self.called[0]} {mark} {self.called[1]}"

    @property
    def on(self) -> str:
        """The equalities, and the order of the times."""
        (one, two), (left, right) = (_columns(self.left), _columns(self.right)), self.called
        equal = [
            a if a == b else f"{_value(left, a)} = {_value(right, b)}"
            for (_, a), (_, b) in zip(one[-2 - self.keys : -2], two[-2 - self.keys : -2], strict=True)
        ]
        times = f"{_value(right, two[-2][1])} {self.sign} {_value(left, one[-2][1])}"
        return " and ".join([*equal, times])

    @property
    def sides(self) -> Mapping[bool, Side]:
        """The sides, by whether they are the right one."""
        every = zip((False, True), self.called, (self.left, self.right), strict=True)
        return {side: (name, dict(_columns(given)[: -2 - self.keys])) for side, name, given in every}


def asof(stage: OverStage) -> str:
    """Return the join that a stage in the words of the text computes; "" if it computes none."""
    joined = _joined(stage)
    return f"{joined.word} on {joined.on}" if joined is not None else ""


def in_sides(stage: OverStage) -> OverStage:
    """Return an as-of join with what it computes as columns of its sides, and inputs without what makes these alike."""
    joined = _joined(stage)
    assert joined is not None
    sides, over = joined.sides, stage.over
    nearest = {call.sql: _of(sides, call.arguments[0][0], right=True) for call in over.calls}
    names = {name: _of(sides, name) for name in sides[True][1]}
    some = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"
    pattern = rf"(?<![\w.$`])(?:{some})(?![\w`.(])"

    def say(text: str) -> str:
        parts = re.split("(" + "|".join(map(re.escape, nearest)) + ")", text)
        return "".join(nearest.get(p) or in_text(pattern, lambda n: names[n[0]], p) for p in parts)

    calls = tuple(
        replace(call, sql=nearest[call.sql]) for call in over.calls if call.arguments[0][0] != _RIGHT
    )
    clause = clause_of(over.qualify.sql, sides) if over.qualify is not None else ""
    qualify = replace(over.qualify, sql=clause) if over.qualify is not None and clause else None
    select = tuple(
        (name, replace(value, sql=say(value.sql))) for name, value in over.select if not name.startswith("$")
    )
    inputs = tuple(replace(given, maps=_below(given)) for given in stage.inputs)
    return replace(stage, inputs=inputs, over=replace(over, calls=calls, qualify=qualify, select=select))


def clause_of(qualify: str, sides: Mapping[bool, Side]) -> str:
    """Return the conditions of QUALIFY that are the query's, over the columns of the sides; nothing if they are not SQL."""
    try:
        parts = trees.ands(parsed(qualify)) if qualify else []
        own = [part for part in parts if _RIGHT not in {c.name for c in part.find_all(exp.Column)}]
        text = " AND ".join(written(part.transform(lambda node: _column(node, sides))) for part in own)
        return re.sub(r"\bINTERVAL '(\d+)'", r"INTERVAL \1", text)
    except SqlError:
        return ""


def _joined(stage: OverStage) -> _Joined | None:
    calls = stage.over.calls
    if (
        not calls
        or len(stage.inputs) < 2
        or any(call.condition != _RIGHT or len(call.order) != 2 for call in calls)
    ):
        return None
    sides = {dict(_columns(given)).get(_RIGHT, ""): given for given in stage.inputs}
    if sides.keys() != {"TRUE", "FALSE"}:
        return None
    at, first = calls[0].order
    sign = f"{'>' if at.descending else '<'}{'=' if first.descending else ''}"
    inner = any(call.arguments[0][0] == _RIGHT for call in calls)  # asks whether there is a row
    return _Joined(sides["FALSE"], sides["TRUE"], inner, sign, len(stage.over.partition))


def _at(given: InputPlan) -> int:
    """Return which map of an input makes the sides alike."""
    known = (at for at, step in enumerate(given.maps) if _RIGHT in dict(step.columns))
    return next(known, len(given.maps))


def _columns(given: InputPlan) -> list[tuple[str, str]]:
    """Return what the map that makes the sides alike computes."""
    return [(name, value.sql) for step in given.maps[_at(given) :][:1] for name, value in step.columns]


def _below(given: InputPlan) -> tuple[Map, ...]:
    """Return the maps of an input as far as they are the query's: they choose its rows, and compute before that."""
    at = _at(given)
    return (*given.maps[:at], *(replace(step, columns=()) for step in given.maps[at : at + 1]))


def _value(alias: str, value: str) -> str:
    return f"{alias}.{value}" if value.isidentifier() else value


def _of(sides: Mapping[bool, Side], name: str, right: bool = False) -> str:
    """Return a column of both sides as the column of the side that has it."""
    alias, known = sides[right or sides[True][1].get(name, _NULL) != _NULL]
    value = known.get(name, name)
    return f"{alias}.{value}" if value.isidentifier() else f"({value})"


def _column(node: exp.Expr, sides: Mapping[bool, Side]) -> exp.Expr:
    if not isinstance(node, exp.Column):
        return node
    alias, known = sides[sides[True][1].get(node.name, _NULL) != _NULL]
    value = known.get(node.name, node.name)
    return exp.column(value, table=alias) if value.isidentifier() else parsed(value)
