"""Tables in a plan: lookups after all joins of streams, what is kept of them, and what cannot be."""

from dataclasses import replace

import pyarrow as pa
import pytest

from joinlib.errors import SpecError
from joinlib.model.fingerprint import compare, fingerprint
from joinlib.model.joins import Caching, Join, Leaf
from joinlib.plan import JoinOptions, SourceInput, Stage, build
from joinlib.plan.explain import explain
from joinlib.spec.inputs import CacheMode

ORDERS = pa.schema([("id", pa.int64()), ("customer", pa.int64()), ("item", pa.string()), ("x", pa.float64())])
TABLE = pa.schema([("id", pa.int32()), ("name", pa.string()), ("low", pa.float64()), ("high", pa.float64())])
INPUTS = {
    "orders": SourceInput(ORDERS),
    "ships": SourceInput(pa.schema([("id", pa.int64()), ("carrier", pa.string())])),
    "customers": SourceInput(TABLE, role="table"),
    "names": SourceInput(TABLE, role="table"),
}
ONE = "SELECT o.id, c.name FROM orders o {} JOIN customers c ON o.customer = c.id"


def plan(sql: str, caching: Caching | None = None) -> Stage:
    given = {n: replace(i, caching=caching or i.caching) for n, i in INPUTS.items()}
    return build(sql, given, JoinOptions(units=4))


def test_a_stream_alone_goes_by_the_key_of_its_first_lookup() -> None:
    """Rows with a NULL key are dropped for INNER, and kept for LEFT."""
    inner, left = plan(ONE.format("")), plan(ONE.format("LEFT"))
    assert inner.tree == left.tree == Leaf(0)
    assert inner.inputs[0].keys == ("o.customer",)
    assert [s.inputs[0].keep_null_keys for s in (inner, left)] == [False, True]
    assert inner.lookups[0].table.read == ("id", "name")


def test_streams_are_joined_first() -> None:
    """Wherever the table stands, and the columns that its key needs are stored."""
    for sql in (
        "SELECT c.name, s.carrier FROM orders o JOIN customers c ON o.customer = c.id LEFT JOIN ships s ON o.id = s.id",
        "SELECT c.name, s.carrier FROM customers c JOIN orders o ON o.customer = c.id LEFT JOIN ships s ON o.id = s.id",
    ):
        stage = plan(sql)
        assert isinstance(stage.tree, Join) and stage.tree.kind == "left"
        assert "o.customer" in stage.inputs[0].schema.names
        assert [lookup.kind for lookup in stage.lookups] == ["inner"]


def test_tables_are_asked_in_an_order_that_finds_its_keys() -> None:
    """The second table's key is a column of the first, whichever is written first."""
    stage = plan(
        "SELECT n.low FROM names n JOIN customers c ON n.name = c.name JOIN orders o ON c.id = o.customer WHERE n.low > 1"
    )
    assert [lookup.table.alias for lookup in stage.lookups] == ["c", "n"]
    assert stage.lookups[1].table.filter is not None


def test_state_does_not_depend_on_tables() -> None:
    """A checkpoint serves a query that asks another table, as long as the streams store the same."""
    one = fingerprint(plan(ONE.format("LEFT")))
    other = fingerprint(plan(ONE.format("LEFT").replace("customers", "names")))
    assert compare(one, other) == []


def test_the_plan_says_what_is_kept() -> None:
    """Whole, by key, or decided at the start; how often it is read; ranges."""
    said = explain(plan(ONE.format("LEFT"), Caching("auto", 600_000_000, 1 << 20)))
    assert "c = customers, LEFT lookup" in said
    assert "key     o.customer = c.$key0, BIGINT" in said
    assert (
        "decided at the start by the table's size" in said
        and "again every 10m" in said
        and "holds for 10m" in said
    )
    said = explain(plan("SELECT o.id FROM orders o JOIN customers c ON o.x BETWEEN c.low AND c.high"))
    assert "range   c.low <= o.x and o.x <= c.high" in said
    assert "evenly" in said


@pytest.mark.parametrize(
    ("on", "why"),
    [("o.item = upper(c.name)", "computed from its columns"), ("o.x >= c.low", "looks for ranges")],
)
def test_a_database_is_asked_for_its_columns_only(on: str, why: str) -> None:
    """Incremental is refused where keys are computed or ranges are looked for; auto means the whole table there."""
    sql = f"SELECT o.id FROM orders o JOIN customers c ON {on}"
    with pytest.raises(SpecError, match=why):
        plan(sql, Caching("incremental"))
    assert plan(sql, Caching("auto")).lookups[0].caching.mode == "full"


@pytest.mark.parametrize(
    ("on", "why"),
    [
        ("o.item = c.id", r"o\.item is STRING and c\.id is INT; write CAST\(o\.item AS INT\)"),
        (
            "o.customer = c.name",
            r"o\.customer is BIGINT and c\.name is STRING; write CAST\(c\.name AS BIGINT\)",
        ),
        ("o.customer = (c.id = 1)", "cannot compare BIGINT with BOOLEAN; add a CAST"),
        ("o.customer = c.nope", "nope"),
    ],
)
@pytest.mark.parametrize("mode", ["full", "incremental", "auto"])
def test_keys_that_cannot_be_compared_are_refused(on: str, why: str, mode: CacheMode) -> None:
    """With the place and a fix, before anything is read; numbers of other widths meet in the wider type."""
    with pytest.raises(SpecError, match=why):
        plan(f"SELECT o.id FROM orders o JOIN customers c ON {on}", Caching(mode))
    lookup = plan(ONE.format(""), Caching(mode)).lookups[0]
    assert lookup.probe[0].type == pa.int64() == lookup.table.columns[0].value.type
