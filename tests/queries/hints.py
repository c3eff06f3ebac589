"""What a query compares its columns with: values that make rows of random tables count.

l_shipdate >= date '1994-01-01'    l_shipdate: 1994-01-01
d_year in (1999, 1999 + 1)         d_year: 1999, 2000
substr(ca_zip, 1, 5) in ('85669')  ca_zip: '85669'
p_name like 'forest%'              p_name: 'forest'
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

import sqlglot
from sqlglot import exp

Value = int | Decimal | str | dt.date
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like)


def hints(text: str) -> dict[str, list[Value]]:
    """Of each column's name, lower case, the values next to it, in the order of the text."""
    tree = sqlglot.parse_one(text, dialect="spark")
    called = {
        a.alias.lower(): a.this.name.lower()
        for a in tree.find_all(exp.Alias)
        if isinstance(a.this, exp.Column)
    }
    found: dict[str, list[Value]] = defaultdict(list)
    for compared in tree.find_all(*_COMPARED):
        for column, value in _near(compared):
            for name in {column, called.get(column, column)}:
                if value not in found[name]:
                    found[name].append(value)
    return dict(found)


def _near(compared: exp.Expression) -> Iterator[tuple[str, Value]]:
    sides = [compared.this, *compared.args.get("expressions", [])]
    sides += [compared.args[part] for part in ("expression", "low", "high") if compared.args.get(part)]
    values = [value for side in sides if (value := constant(side)) is not None]
    columns = {c.name.lower() for side in sides if constant(side) is None for c in _columns(side)}
    for column in columns:
        for value in values:
            yield (
                column,
                value.strip("%").replace("%", " ").replace("_", "x")
                if (isinstance(compared, exp.Like) and isinstance(value, str))
                else value,
            )


def _columns(side: exp.Expression) -> Iterator[exp.Column]:
    """Those that are compared themselves, not within a subquery."""
    if isinstance(side, exp.Column):
        yield side
    elif not isinstance(side, exp.Query | exp.Subquery):
        for child in side.iter_expressions():
            yield from _columns(child)


def constant(node: exp.Expression) -> Value | None:
    """The value of a literal, a cast of one, a sum of such; None: it is none, or an interval."""
    if isinstance(node, exp.Paren):
        return constant(node.this)
    if isinstance(node, exp.Literal):
        return (
            _date(node.this) if node.is_string else Decimal(node.this) if "." in node.this else int(node.this)
        )
    if isinstance(node, exp.Neg):
        value = constant(node.this)
        return -value if isinstance(value, int | Decimal) else None
    if isinstance(node, exp.Cast):
        return constant(node.this)
    if isinstance(node, exp.Add | exp.Sub):
        left, right = constant(node.this), constant(node.expression)
        sign = 1 if isinstance(node, exp.Add) else -1
        if isinstance(left, dt.date) and isinstance(node.expression, exp.Interval):
            return left + sign * _interval(node.expression)
        if isinstance(left, int | Decimal) and isinstance(right, int | Decimal):
            return left + sign * right
    return None


def _interval(node: exp.Interval) -> dt.timedelta:
    days = {"YEAR": 365, "MONTH": 30, "DAY": 1}.get(str(node.unit).upper().rstrip("S"), 1)
    return dt.timedelta(days=days * int(str(node.this.this).split()[0]))


def _date(text: str) -> Value:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return text
