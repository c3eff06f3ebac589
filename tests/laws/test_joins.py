"""The law of every join: the same multiset as a nested loop, however the streams arrive, are cut, stored and disturbed."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings

from joinlib.model.tuning import Tuning
from tests.laws.cases import KEYS, UTC, Case, cases, holds, pairs, stars, trees
from tests.laws.harness import CALM
from tests.laws.oracle import Query, same


@pytest.mark.slow
@given(cases(pairs()))
def test_pairs(case: Case) -> None:
    """Every kind of join of two inputs agrees with a nested loop and with DuckDB."""
    holds(case)


@pytest.mark.slow
@given(cases(trees(), most=12))
def test_trees(case: Case) -> None:
    """Joins of joins agree, whatever is bounded in time by what."""
    holds(case)


@pytest.mark.slow
@settings(max_examples=25)
@given(cases(stars(), cuts=(2, 7), units=(1, 4), most=8))
def test_chains(case: Case) -> None:
    """A chain of binary joins agrees as the n-way join does, with times bounded between any of its inputs."""
    holds(replace(case, strategy="binary"))


@settings(max_examples=5)
@given(cases(pairs(), cuts=(50,), units=(1, 2)))
def test_many_small_batches(case: Case) -> None:
    """Fifty batches of less than a row each say the same as one."""
    holds(case)


@pytest.mark.parametrize("key", list(KEYS), ids=str)
@pytest.mark.parametrize("hash_bits", [64, 3])
@pytest.mark.parametrize("composite", [False, True])
def test_every_key_against_every_key(key: pa.DataType, hash_bits: int, composite: bool) -> None:
    """Keys are equal as SQL has it, whether or not their hashes collide: NaN, -0.0, NULL, "" and composites too."""
    on = (same("a.k", "b.k"), same("a.j", "b.j")) if composite else (same("a.k", "b.k"),)
    rows = [(k, j, v, 0) for v, (k, j) in enumerate((k, j) for k in KEYS[key] for j in ("", "x", None))]
    query = Query(("a.v", "b.v"), ("full", "a", "b", on))
    cuts = {name: [len(rows) // 2, len(rows)] for name in "ab"}
    holds(
        Case(query, key, UTC, dict.fromkeys("ab", rows), 0, cuts, 2, Tuning(hash_bits=hash_bits), CALM, 1000)
    )


@pytest.mark.parametrize("kind", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("first", ["a", "b", "both"])
def test_many_partners(kind: str, first: str) -> None:
    """Three rows on each side of one key, and one that meets nobody, whichever side comes first."""
    rows = [(1, "x", v, 0) for v in range(3)]
    columns = ("a.v",) if kind in ("semi", "anti") else ("a.v", "b.v")
    query = Query(columns, (kind, "a", "b", (same("a.k", "b.k"),)))
    cuts = {name: [4 if first in (name, "both") else 0, 4] for name in "ab"}
    lonely = {"a": [*rows, (0, "x", 9, 0)], "b": [*rows, (2, "x", 9, 0)]}
    holds(Case(query, pa.int64(), UTC, lonely, 0, cuts, 1, Tuning(), CALM, 1000))
