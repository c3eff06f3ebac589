"""An n-way join or a chain: what each costs, what a plan says of it, and that both say the same."""

from collections import Counter

import pyarrow as pa
import pytest

from joinlib.errors import SpecError
from joinlib.plan import JoinOptions, SourceInput, pipeline
from joinlib.plan.explain import explain
from joinlib.plan.merge import is_chain
from joinlib.plan.tradeoff import JoinWork, chained, merged
from tests.unit.plan.nested import run_all

SOURCE = SourceInput(pa.schema([("k", pa.int64()), ("j", pa.int64()), ("v", pa.int64())]))
STAR = "SELECT a.v, d.v AS w FROM a, b, c, d WHERE a.k = b.k AND b.k = c.k AND c.k = d.k AND a.v < d.v AND a.j = c.j"
ROWS = pa.table({"k": [1, 1, 2, None, 3], "j": [1, 2, 1, 1, None], "v": [1, 2, 3, 4, 5]}, SOURCE.schema)


def test_costs() -> None:
    """Two inputs are the same either way; of three, a third row asks twice, or finds what was stored."""
    assert merged(2) == chained(2) == JoinWork(2, 1)
    assert merged(3) == JoinWork(4.5, 2.5)
    assert chained(3) == JoinWork(4, 2, 1)
    assert chained(3, 4) == JoinWork(8 + 20, 16 + 64, 16)


def test_a_chain_decides_each_condition_where_it_can() -> None:
    """The last join knows what the first one cannot; the answer is that of the n-way join."""
    plans = [
        pipeline(STAR, dict.fromkeys("abcd", SOURCE), JoinOptions(units=4, strategy=s))
        for s in ("auto", "binary")
    ]
    texts = [[j.predicate and j.predicate.sql for j in reversed(p.last.operators)] for p in plans]
    answers = [Counter(run_all(p, dict.fromkeys("abcd", ROWS))) for p in plans]

    assert texts == [["((a.v < d.v) AND (a.j = c.j))"], ["(a.v < d.v)", "(a.j = c.j)", None]]
    assert answers[0] == answers[1] != Counter()
    assert [is_chain(p.last.tree) for p in plans] == [False, True]


def test_the_plan_says_why() -> None:
    """What both would do, whichever is made; and of several stages that TSC's group was not used."""
    merged, chain = (
        explain(pipeline(STAR, dict.fromkeys("abcd", SOURCE), JoinOptions(units=4, strategy=s)))
        for s in ("auto", "binary")
    )
    assert "takes 7.33 probes; a chain of binary joins would take 6 probes and 2 stored rows" in merged
    assert "join.strategy binary: a chain of 3 joins" in chain


def test_without_a_key_there_is_no_chain() -> None:
    """Nor anything else to choose from."""
    with pytest.raises(SpecError, match="binary joins by equality"):
        pipeline(
            "SELECT a.v FROM a JOIN b ON a.v < b.v",
            dict.fromkeys("ab", SOURCE),
            JoinOptions(units=4, strategy="binary"),
        )
