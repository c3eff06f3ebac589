"""What a query says twice is one stage, read twice, whatever its columns and inputs are called."""

from pathlib import Path

import pyarrow as pa
import pytest

from joinlib.expr.nodes import constant
from joinlib.model.stage import Pipeline
from joinlib.plan import JoinOptions, SourceInput, pipeline
from joinlib.plan.forms import Forms

Q5 = Path(__file__).parents[2] / "queries" / "nexmark" / "q5.sql"
BID = SourceInput(pa.schema([("auction", pa.int64()), ("dateTime", pa.timestamp("us"))]), "dateTime")
ROW = SourceInput(pa.schema([("k", pa.int64()), ("v", pa.int64()), ("d", pa.float64())]))


def plan(first: str, second: str) -> Pipeline:
    """The plan of a join of two queries."""
    sql = f"SELECT p.x AS x, q.y AS y FROM ({first}) p JOIN ({second}) q ON p.x = q.y"
    return pipeline(sql, {"a": ROW, "b": ROW}, JoinOptions(units=4), mode="changelog")


@pytest.mark.parametrize("mode", ["append", "changelog"])
def test_q5_of_nexmark(mode: str) -> None:
    """Its windows are counted once, and read twice."""
    found = pipeline(Q5.read_text(), {"bid": BID}, JoinOptions(units=4), mode=mode)  # type: ignore[arg-type]

    assert len(found.stages) == 3
    (largest, below), (joined, beside) = found.readers(0)
    assert (largest, joined) == (1, 2)
    assert below.read == ("num", "starttime", "endtime")
    assert beside.read == ("auction", "num", "starttime", "endtime")


SAME = {
    "names": ("SELECT k AS x, count(*) AS n FROM a GROUP BY k", "SELECT o.k AS y, count(*) AS m FROM a o GROUP BY o.k"),
    "of what comes out": (
        "SELECT k + 1 AS x FROM (SELECT k, sum(v) AS s FROM a GROUP BY k) t WHERE s > 1",
        "SELECT k AS y FROM a GROUP BY k HAVING sum(v) < 9",
    ),
    "names below": (
        "SELECT l AS x, sum(w) AS s FROM (SELECT k AS l, v + 1 AS w, d FROM a) t GROUP BY l HAVING sum(w) > 0",
        "SELECT m AS y FROM (SELECT v + 1 AS u, k AS m FROM a) t GROUP BY m HAVING sum(u) > 1",
    ),
    "window functions": (
        "SELECT row_number() OVER (PARTITION BY k ORDER BY v) AS x FROM a",
        "SELECT row_number() OVER (PARTITION BY o.k ORDER BY o.v) + o.v AS y FROM a o",
    ),
    "joins": ("SELECT a.k AS x FROM a LEFT JOIN b ON a.v = b.v", "SELECT p.k + 1 AS y FROM a p LEFT JOIN b q ON p.v = q.v"),
    "joins below groups": (
        "SELECT a.k AS x FROM a JOIN b ON a.v = b.v GROUP BY a.k HAVING count(*) > 1",
        "SELECT p.k AS y FROM a p JOIN b q ON p.v = q.v GROUP BY p.k HAVING count(*) < 3",
    ),
}  # fmt: skip
OTHER = {
    "conditions": ("SELECT DISTINCT k AS x FROM a WHERE v > 1", "SELECT DISTINCT k AS y FROM a WHERE v > 2"),
    "constants that are equal, but not the same": (
        "SELECT k AS x FROM a GROUP BY k, d / 0.0D",
        "SELECT k AS y FROM a GROUP BY k, d / -0.0D",
    ),
    "an empty list and none": (
        "SELECT DISTINCT k AS x FROM a WHERE size(CASE WHEN v > 1 THEN array(k) END) > 0",
        "SELECT DISTINCT k AS y FROM a WHERE size(CASE WHEN v > 1 THEN array(k) ELSE array() END) > 0",
    ),
    "inputs": ("SELECT DISTINCT k AS x FROM a", "SELECT DISTINCT k AS y FROM b"),
    "columns of one name": (
        "SELECT k AS x FROM (SELECT k, v FROM a) t GROUP BY k",
        "SELECT k AS y FROM (SELECT v AS k, k AS v FROM a) t GROUP BY k",
    ),
    "aggregates": (
        "SELECT k AS x FROM a GROUP BY k HAVING max(v) > 1",
        "SELECT k AS y FROM a GROUP BY k HAVING min(v) > 1",
    ),
    "sides": (
        "SELECT p.k AS x FROM a p LEFT JOIN a q ON p.v = q.k",
        "SELECT q.k AS y FROM a p LEFT JOIN a q ON p.v = q.k",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_the_same(name: str) -> None:
    """A stage for both, or two, and one that joins them."""
    assert len(plan(*SAME[name]).stages) == 2 + (name == "joins below groups")


@pytest.mark.parametrize("name", OTHER)
def test_not_the_same(name: str) -> None:
    assert len(plan(*OTHER[name]).stages) == 3


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64())], ids=str)
def test_an_empty_constant_is_not_null(kind: pa.DataType) -> None:
    forms = Forms()
    empty, null, again = (forms.expr(constant(pa.scalar(v, kind), ""), {}) for v in ([], None, []))
    assert empty == again != null


def test_what_is_equal_below_is_equal_above() -> None:
    """Groups of groups."""
    inner = "SELECT k AS {0}, count(*) AS {1} FROM a {2} GROUP BY k"
    outer = "SELECT {1} AS {3}, max({0}) AS m FROM ({4}) t GROUP BY {1}"
    names = [("k1", "n1", "p", "x"), ("k2", "n2", "q", "y")]

    found = plan(*[outer.format(*own, inner.format(*own)) for own in names])

    assert len(found.stages) == 3
    assert [len(found.readers(number)) for number in range(3)] == [1, 2, 0]
