"""Law: joins whose conditions are changed go on from what is stored, if rows are not stored by these conditions.

What comes out after the change is what the new query's answer has changed since then: with its answer over the rows before,
it is its answer over all. DuckDB answers after each batch. Conditions come, change, and go; some batches run twice, some in
new processes.
"""

from collections import Counter
from random import Random

import pytest

from tests.laws.product import own_folder
from tests.laws.test_followed_groups import CUTS, Row, World, answers, runs

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
    "itself": "a JOIN a b ON a.k = b.k",
    "by NULL, too": "a JOIN b ON a.k IS NOT DISTINCT FROM b.k",
    "less": "a JOIN b ON a.v < b.v",
    "unequal": "a JOIN b ON a.v <> b.v",
    "a band": "a JOIN b ON a.v BETWEEN b.v - 1 AND b.v + 1",
    "a table": "a JOIN b ON a.k = b.k JOIN t ON t.k = a.k AND t.v <> b.v",
    "left a table": "a LEFT JOIN b ON a.k = b.k LEFT JOIN t ON t.k = b.v",
    "less and a table": "a JOIN b ON a.v < b.v JOIN t ON t.k = a.k",
}
INNER = (
    "inner",
    "three",
    "a chain",
    "paths",
    "itself",
    "by NULL, too",
    "less",
    "unequal",
    "a band",
    "a table",
    "less and a table",
)
CONDITIONS = (
    "a.v > 1",
    "b.x IS NOT NULL",
    "a.v <= b.x",
    "a.v = b.v",
    "a.v + b.v > 3",
    "(a.s = b.s OR a.v = 2)",
    "a.s < b.s",
    "coalesce(b.s, 'x') <> 'yy'",
)
OF_THE_TABLE = "t.v > 1", "(t.s IS NULL OR t.s <> a.s)"


def drawn(draw: Random, name: str) -> list[str]:
    """A query, and two that have other conditions as well, in any order: rows are stored by those of the first."""
    known = [*CONDITIONS, *(OF_THE_TABLE if "t.k" in JOINS[name] else ())]
    always = draw.sample(known, draw.randint(0, 2)) if name in INNER else []
    rest = [c for c in known if c not in always]
    found = []
    for most in (0, 2, 2):
        own = [*always, *draw.sample(rest, draw.randint(0, most))]
        draw.shuffle(own)
        where = f" WHERE {' AND '.join(own)}" if own else ""
        found.append(f"SELECT a.k, a.v, a.s, b.v AS bv, b.s AS bs, b.x AS bx FROM {JOINS[name]}{where}")
    return found


@pytest.mark.parametrize("seed", range(1))
@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("name", JOINS)
def test_changes_of_conditions(name: str, deleted: bool, seed: int) -> None:
    """Rows come and go."""
    goes_on(name, "changelog", deleted, seed)


@pytest.mark.parametrize("seed", range(1))
@pytest.mark.parametrize("name", INNER)
def test_rows_that_are_final(name: str, seed: int) -> None:
    goes_on(name, "append", False, seed)


def goes_on(name: str, mode: str, deleted: bool, seed: int) -> None:
    draw = Random(f"{name} {deleted} {seed}")
    asked = drawn(draw, name)
    more = {"join": {"units": 2, "strategy": "paths"}} if name == "paths" else {}
    with own_folder() as folder:
        inputs = [
            known
            for known in "abct"
            if any(f"{word} {known} " in f"FROM {JOINS[name]}" for word in ("FROM", "JOIN"))
        ]
        world = World(folder, draw, inputs, deleted)
        told, last = Counter[Row](), 0
        for at, batch in runs(folder, asked, mode, deleted, seed, more):
            if at != last:
                told, last = world.answer(asked[at], CUTS[last]), at
            answers(told, folder, batch, world, asked[at])
        assert last == len(CUTS)


VIEWS = {"j": f"SELECT a.k, a.v, a.s, b.v AS bv, b.s AS bs, b.x AS bx FROM {JOINS['left']}"}
OUTPUTS = {  # by their names: a query over the view, which says where conditions stand
    "rows": "SELECT * FROM j{}",
    "groups": "SELECT k, count(*) AS n FROM j GROUP BY k",
    "joined": "SELECT j.v, j.bv, j.bx, c.s FROM j JOIN c ON c.k = j.k AND c.v <> j.v{}",
}
OF_THE_VIEW = (
    "j.v > 1",
    "j.bx IS NOT NULL",
    "j.v = j.bv",
    "(j.s = j.bs OR j.v = 2)",
    "coalesce(j.bs, 'x') <> 'yy'",
)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("deleted", [False, True])
def test_conditions_of_one_of_several_outputs(deleted: bool, seed: int) -> None:
    """What others of them read does not change."""
    draw = Random(f"{deleted} {seed}")
    asked: list[dict[str, str]] = []
    for most in (0, 2, 2):
        own = {
            name: draw.sample(OF_THE_VIEW[: 3 if name == "joined" else 5], draw.randint(0, most))
            for name in OUTPUTS
        }
        asked.append(
            {n: sql.format(f" WHERE {' AND '.join(own[n])}" if own[n] else "") for n, sql in OUTPUTS.items()}
        )
    specs = [
        {
            "views": VIEWS,
            "outputs": {
                n: {"sql": sql, "mode": "changelog", "files": {"path": f"{n}/out"}} for n, sql in one.items()
            },
        }
        for one in asked
    ]
    with own_folder() as folder:
        world = World(folder, draw, "abc", deleted)
        told, last = {name: Counter[Row]() for name in OUTPUTS}, 0
        for at, batch in runs(folder, specs, "changelog", deleted, seed):
            for name, seen in told.items():
                query = f"WITH j AS ({VIEWS['j']}) {asked[at][name]}"
                if at != last:
                    seen.clear()
                    seen.update(world.answer(query, CUTS[last]))
                answers(seen, folder / name, batch, world, query)
            last = at
        assert last == len(CUTS)
