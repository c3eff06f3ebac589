"""Law: joins whose conditions are changed go on from what is stored, if rows are not stored by these conditions.

What comes out after the change is what the new query's answer has changed since then: with its answer over the rows before,
it is its answer over all. DuckDB answers after each batch. Conditions come, change, and go; some batches run twice, some in
new processes.
"""

from collections import Counter
from random import Random

import pytest

from tests.laws.product import own_folder
from tests.laws.test_followed_groups import CUTS, FILES, Row, World, runs, sent

JOINS = {  # by their names: what is joined; behind it stands WHERE
    "inner": "a JOIN b ON a.k = b.k AND a.v <> b.v",
    "left": "a LEFT JOIN b ON a.k = b.k",
    "full": "a FULL JOIN b ON a.k = b.k",
    "semi": "a JOIN b ON a.k = b.k AND EXISTS (SELECT 1 FROM c WHERE c.k = a.k AND c.v < a.v)",
    "anti": "a JOIN b ON a.k = b.k AND NOT EXISTS (SELECT 1 FROM c WHERE c.k = a.k AND c.v < a.v)",
    "three": "a JOIN b ON a.k = b.k JOIN c ON c.k = a.k",
    "a chain": "a JOIN b ON a.k = b.k JOIN c ON c.v = b.v",
    "left of a chain": "a JOIN b ON a.k = b.k LEFT JOIN c ON c.v = b.v",
    "paths": "a JOIN b ON a.k = b.k JOIN c ON c.v = b.v",
}
INNER = "inner", "three", "a chain", "paths"
CONDITIONS = (
    "a.v > 1",
    "b.x IS NOT NULL",
    "a.v < b.v",
    "a.v + b.v > 3",
    "(a.s = b.s OR a.v = 2)",
    "coalesce(b.s, 'x') <> 'yy'",
)


def drawn(draw: Random, name: str) -> list[str]:
    """A query, and two that have other conditions as well: rows are stored by those of the first."""
    always = draw.sample(CONDITIONS, draw.randint(0, 2)) if name in INNER else []
    rest = [c for c in CONDITIONS if c not in always]
    found = []
    for most in (0, 2, 2):
        own = [*always, *draw.sample(rest, draw.randint(0, most))]
        where = f" WHERE {' AND '.join(own)}" if own else ""
        found.append(f"SELECT a.k, a.v, a.s, b.v AS bv, b.s AS bs, b.x AS bx FROM {JOINS[name]}{where}")
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("name", JOINS)
def test_changes_of_conditions(name: str, deleted: bool, seed: int) -> None:
    """Rows come and go."""
    goes_on(name, "changelog", deleted, seed)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", INNER)
def test_rows_that_are_final(name: str, seed: int) -> None:
    goes_on(name, "append", False, seed)


def goes_on(name: str, mode: str, deleted: bool, seed: int) -> None:
    draw = Random(f"{name} {deleted} {seed}")
    asked = drawn(draw, name)
    more = {"join": {"units": 2, "strategy": "paths"}} if name == "paths" else {}
    with own_folder() as folder:
        world = World(folder, draw, "abc" if " c " in JOINS[name] else "ab", deleted)
        told, last = Counter[Row](), 0
        for at, batch in runs(folder, asked, mode, deleted, seed, more):
            if at != last:
                told, last = world.answer(asked[at], CUTS[last]), at
            for row, weight in sent(folder, batch):
                told[row] += weight
            assert all(count >= 0 for count in told.values()), "rows are taken back that were not there"
            assert +told == world.answer(asked[at], min(batch, FILES - 1)), (asked[at], batch)
        assert last == len(CUTS)
