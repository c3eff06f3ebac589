"""Law: what a query says several times is computed once, and the answer is that of DuckDB, which computes it as it likes.

Groups, sets, window functions, unions and joins, said twice or three times with other names, select lists and
conditions on what comes out, then joined, united or grouped again.
"""

import random
from pathlib import Path

import pytest

from joinlib.model.tuning import Tuning
from tests.laws.product import Course, Product
from tests.laws.test_windows import contents, document, events, expected, folder, so_far  # noqa: F401 - a fixture

COURSE = Course((2, 1, 3), frozenset({2}), frozenset({3}), 1)
BOTH = "(SELECT k, v FROM a UNION ALL SELECT v AS k, k AS v FROM b)"
# What is said again, in {t}, a name for its input; of {x} and {y} it selects something else each time.
PARTS = {
    "groups": "SELECT {t}.k AS {x}, count(*) + {n} AS {y}, sum({t}.v) AS z FROM a {t} GROUP BY {t}.k",
    "having": (
        "SELECT {t}.k AS {x}, sum({t}.v) AS {y} FROM a {t} WHERE {t}.v IS NOT NULL GROUP BY {t}.k, {t}.v % 2"
        " HAVING sum({t}.v) > {n}"
    ),
    "bags": "SELECT {t}.k AS {x}, max({t}.v) AS {y}, count(DISTINCT {t}.v) + {n} AS z FROM a {t} GROUP BY {t}.k",
    "distinct": "SELECT DISTINCT {t}.k AS {x}, {t}.v AS {y} FROM a {t} WHERE {t}.v > 1",
    "over": (
        "SELECT {t}.k AS {x}, {t}.v - {n} AS z, row_number() OVER (PARTITION BY {t}.k ORDER BY {t}.v) AS {y}"
        " FROM (SELECT DISTINCT k, v FROM a) {t}"
    ),
    "union": "SELECT {t}.v AS {y}, {t}.k AS {x}, count(*) + {n} AS z FROM " + BOTH + " {t} GROUP BY {t}.v, {t}.k",
    "join": "SELECT {t}.k AS {x}, {t}.v + {n} AS {y} FROM a {t} JOIN b {t}b ON {t}.k = {t}b.k",
    "groups of groups": (
        "SELECT {t}.n AS {x}, count(*) + {n} AS {y} FROM"
        " (SELECT count(*) + {n} - {n} AS n, {t}0.k AS g{t} FROM a {t}0 GROUP BY {t}0.k) {t} GROUP BY {t}.n"
    ),
}  # fmt: skip
WHOLE = (
    "SELECT p.{x0} AS x, p.{y0} AS y, q.{y1} AS z FROM ({0}) p JOIN ({1}) q ON p.{x0} = q.{x1}",
    "SELECT p.{x0} AS x, q.most AS y FROM ({0}) p JOIN (SELECT max(r.{y1}) AS most FROM ({1}) r) q ON p.{y0} = q.most",
    "SELECT p.{x0} AS x, p.{y0} AS y FROM ({0}) p UNION ALL SELECT q.{y1}, q.{x1} + 1 FROM ({1}) q",
    (
        "SELECT p.{x0} AS x, q.{y1} AS y, r.n AS z FROM ({0}) p LEFT JOIN ({1}) q ON p.{x0} = q.{x1}"
        " JOIN (SELECT s.{x2} AS x, count(*) AS n FROM ({2}) s GROUP BY s.{x2}) r ON p.{x0} = r.x"
    ),
)  # fmt: skip


def drawn(draw: random.Random, kind: str) -> str:
    """A query in which a part is said several times."""
    names = [{"t": f"t{i}", "x": f"x{i}", "y": f"y{i}", "n": str(draw.randint(0, 2))} for i in range(3)]
    parts = [PARTS[kind].format(**own) for own in names]
    whole = draw.choice(WHOLE)
    used = {f"{letter}{i}": own[letter] for i, own in enumerate(names) for letter in "xy"}
    return whole.format(*parts, **used)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", PARTS)
def test_right_after_each_batch(kind: str, seed: int, folder: Path) -> None:  # noqa: F811
    draw = random.Random(f"{kind} {seed}")
    sql = drawn(draw, kind)
    given = events(draw, 4, nulls=True)
    run = Product(document(folder, sql, "changelog", given), Tuning(), COURSE)
    for _ in run.batches():
        assert contents(folder) == expected(sql, so_far(run, given))
    assert run.batch == 4
