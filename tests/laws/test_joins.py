"""The law of every join: the same multiset as a nested loop, however the streams arrive, are cut, stored and disturbed."""

from hypothesis import given, settings

from tests.laws.cases import Case, cases, holds, pairs, trees


@given(cases(pairs()))
def test_pairs(case: Case) -> None:
    """Every kind of join of two inputs agrees with a nested loop and with DuckDB."""
    holds(case)


@given(cases(trees(), most=12))
def test_trees(case: Case) -> None:
    """Joins of joins agree, whatever is bounded in time by what."""
    holds(case)


@settings(max_examples=5)
@given(cases(pairs(), cuts=(50,), units=(1, 2)))
def test_many_small_batches(case: Case) -> None:
    """Fifty batches of less than a row each say the same as one."""
    holds(case)
