"""Which lookups have a stage of their own: of tables that are too large, by another key than that of the units of their rows."""

import pyarrow as pa
import pytest

from joinlib.model.fingerprint import as_json, compare
from joinlib.model.joins import Caching
from joinlib.model.stage import Pipeline
from joinlib.plan import JoinOptions, SourceInput, pipeline
from joinlib.plan.asking import with_asking_stages
from joinlib.plan.changes import Mode
from joinlib.plan.explain import explain

STREAM = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("j", pa.int32())])
TABLE = pa.schema([("id", pa.int64()), ("name", pa.string()), ("next", pa.int64())])
JOINED = "SELECT o.j, t.name FROM o JOIN s ON o.id = s.id {} JOIN t ON {} = t.id"
TWO = f"{JOINED.format('LEFT', 'o.k')} LEFT JOIN u ON t.next = u.id"
GROUPED = "SELECT t.name, count(*) AS n FROM o JOIN s ON o.id = s.id JOIN t ON o.k = t.id GROUP BY t.name"


def plan(sql: str, scarce: bool | None = True, mode: Mode = "append", units: int = 4) -> Pipeline:
    """The plan, once it is known whether the tables' budgets are too small; None: it is not known yet."""
    table = SourceInput(TABLE, role="table", caching=Caching("incremental", scarce=scarce))
    given = {"o": SourceInput(STREAM), "s": SourceInput(STREAM), "t": table, "u": table}
    key = ("j",) if mode == "upsert" else ()
    return with_asking_stages(pipeline(sql, given, JoinOptions(units=units), mode=mode, key=key))


def lookups(plan: Pipeline) -> list[list[str]]:
    """The tables that each stage looks up."""
    return [[lookup.table.alias for lookup in stage.lookups] for stage in plan.stages]


@pytest.mark.parametrize(
    ("found", "stages"),
    [
        (plan(JOINED.format("", "o.k")), [[], ["t"]]),
        (plan(JOINED.format("", "s.id")), [["t"]]),  # its rows are together already
        (plan(JOINED.format("", "o.k"), False), [["t"]]),
        (plan(JOINED.format("", "o.k"), None), [["t"]]),
        (plan(JOINED.format("", "o.k"), units=1), [["t"]]),
        (plan(TWO), [[], ["t"], ["u"]]),
        (plan("SELECT o.j FROM o JOIN t ON o.k = t.id JOIN u ON t.next = u.id"), [["t"], ["u"]]),
        (plan("SELECT o.j FROM o JOIN t ON o.k = t.id JOIN u ON o.k = u.id"), [["t", "u"]]),
        (plan(JOINED.format("", "o.k").replace("o.id = s.id", "o.id < s.id")), [[], ["t"]]),
        (
            plan(JOINED.format("", "o.k"), mode="upsert"),
            [["t"], []],
        ),  # a key's last row comes out of one unit
        (plan(GROUPED, mode="changelog"), [["t"], []]),  # a stage behind it stores
    ],
)
def test_stages(found: Pipeline, stages: list[list[str]]) -> None:
    """By the text, the tables' sizes and the output."""
    assert lookups(found) == stages


def test_rows_go_on_by_the_key_that_is_asked_for() -> None:
    """With what is read of them later, and no more; a row whose key is NULL goes on where it has a result."""
    inner, left = plan(JOINED.format("", "o.k + 1")), plan(TWO)
    (rows,) = inner.last.inputs
    assert (rows.keys, rows.read, rows.upstream) == (("$0.$key0",), ("o.j", "o.k"), 0)
    assert [stage.inputs[0].keep_null_keys for stage in (inner.last, *left.stages[1:])] == [False, True, True]
    assert left.last.inputs[0].read == ("o.j", "t.name", "t.next")
    assert "rows go to the 4 units by the key of u" in explain(left)


def test_hot_keys_are_spread_where_a_task_that_runs_again_sends_the_same_rows() -> None:
    """What a database says may differ, so that rows behind it go by their hashes alone."""
    assert plan(JOINED.format("", "o.k")).ruled == {1}
    assert plan(TWO).ruled == {1}
    assert "a new rule" not in explain(plan(TWO)).split("Stage 2")[1]


def test_the_state_is_that_of_the_plan_without() -> None:
    """So caches change in the life of a checkpoint; and what is stored is told of no such stage."""
    for sql in (JOINED.format("", "o.k"), TWO):
        asked, whole = as_json(plan(sql)), as_json(plan(sql, False))
        assert asked == whole
        assert compare(asked, whole) == []
    other = JOINED.format("", "o.k").replace("o.id = s.id", "o.j = s.j")
    assert compare(as_json(plan(JOINED.format("", "o.k"))), as_json(plan(other)))


def test_a_plan_says_what_the_tables_decide() -> None:
    """Before their sizes are known; after that it is what is planned."""
    title = "If a table is larger than its budget"
    said = explain(plan(TWO, None))
    assert f"{title}\n  t is asked in a stage of its own, to which rows go by o.k: each key" in said
    u = "u is asked in a stage of its own, to which rows go by t.next: each key is kept in one of the 4 units"
    assert said.endswith(u)
    for known in (plan(TWO), plan(TWO, False), plan(JOINED.format("", "s.id"), None)):
        assert title not in explain(known)
