"""LIKE with patterns that are values, and ILIKE, match what the one regular expression of all parts would."""

import re

from hypothesis import given
from hypothesis import strategies as st

from joinlib.expr.patterns import sql_like

SAID = {"%": ".*", "_": "."}


@given(st.text("ab%_", max_size=8), st.text("abB\n", max_size=10))
def test_as_one_expression(pattern: str, value: str) -> None:
    """Over all patterns, with and without regard to case."""
    whole = "".join(SAID.get(c) or re.escape(c) for c in pattern)
    assert sql_like(value, pattern) == (re.fullmatch(whole, value, re.DOTALL) is not None)
    assert sql_like(value, pattern, fold=True) == (re.fullmatch(whole, value.lower(), re.DOTALL) is not None)


def test_parts_that_could_be_anywhere() -> None:
    """A text of which each part is found in many places: with one expression this takes days."""
    assert not sql_like("foobarbaz" * 10_000, "%foo%bar%baz%foo%bar%baz%x", fold=True)
    assert sql_like("fooBARbaz" * 10_000, "%foo%bar%baz%foo%bar%baz%", fold=True)
