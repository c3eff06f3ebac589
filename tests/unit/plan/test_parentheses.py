"""A text without the parentheses that nobody needs is read as the same value."""

from random import Random
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from joinlib.plan.explain.parentheses import lighter


@pytest.mark.parametrize(
    ("sql", "light"),
    [
        ("((0.9 * p) > 10) AND ((0.9 * p) < 50)", "0.9 * p > 10 AND 0.9 * p < 50"),
        ("(((a = 1) OR (b = 2)) OR (c = 3))", "a = 1 OR b = 2 OR c = 3"),
        ("(a = 1) OR ((b = 2) AND (c = 3))", "a = 1 OR (b = 2 AND c = 3)"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a - b) - c", "a - b - c"),
        ("-(a + b)", "-(a + b)"),
        ("NOT (a = b)", "NOT (a = b)"),
        ("(a = b) IS NULL", "(a = b) IS NULL"),
        ("x IN (1, 2)", "x IN (1, 2)"),
        ("f((a, b))", "f((a, b))"),
        ("(a).b", "(a).b"),
        ("sum((a + b)) OVER (PARTITION BY (a) ORDER BY b)", "sum(a + b) OVER (PARTITION BY a ORDER BY b)"),
        ("CASE WHEN (a = 1) THEN (b + 1) END", "CASE WHEN a = 1 THEN b + 1 END"),
        ("('(' = `)`)", "'(' = `)`"),
        ("30 - (days", "30 - (days"),
    ],
)
def test_words(sql: str, light: str) -> None:
    assert lighter(sql) == light


def _random(draw: Random, depth: int) -> str:
    """A text in which every operator has its parentheses."""
    if not depth:
        return draw.choice(("a", "b", "f(a, b)", "'(x'", "1", "CAST(a AS INT)"))
    one, two = _random(draw, depth - 1), _random(draw, draw.randrange(depth))
    form = draw.choice(
        ("{} AND {}", "{} OR {}", "NOT {}", "{} = {}", "{} < {}", "{} + {}", "{} - {}", "{} * {}", "{} / {}",
         "- {}", "{} IN ({}, 1)", "CASE WHEN {} THEN {} ELSE 1 END", "f({}, {})", "{} IS NULL", "{} || {}", "{} LIKE {}")
    )  # fmt: skip
    return f"({form.format(one, two)})" if form[0] in "{-N" else form.format(one, two)


def _form(value: Any) -> Any:
    """A tree without parentheses, in which AND of AND and OR of OR are one."""
    if isinstance(value, list):
        return [_form(each) for each in value]
    if not isinstance(value, exp.Expr):
        return value
    while isinstance(value, exp.Paren):
        value = value.this
    if isinstance(value, exp.And | exp.Or):
        word, sides = type(value).__name__, (_form(value.this), _form(value.expression))
        return [word, *(part for side in sides for part in (side[1:] if side[0] == word else [side]))]
    return [type(value).__name__, *((name, _form(part)) for name, part in value.args.items() if part)]


def test_the_same_value() -> None:
    draw = Random(19)
    for _ in range(300):
        sql = _random(draw, 4)
        light = lighter(sql)
        assert len(light) <= len(sql)
        one, two = (_form(sqlglot.parse_one(text, dialect="spark")) for text in (light, sql))
        assert one == two, (sql, light)
