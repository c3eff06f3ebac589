"""What a plan stores, drops, keeps and refuses."""

import dataclasses
import json
import pickle

import pyarrow as pa
import pytest

from joinlib.errors import SpecError
from joinlib.expr.bound import Bound
from joinlib.model.fingerprint import compare, fingerprint
from joinlib.model.joins import Join, Leaf
from joinlib.plan import JoinOptions, SourceInput, Stage, build
from joinlib.plan.explain import explain

TIMESTAMP = pa.timestamp("us", "UTC")
HOUR = 3_600_000_000
INPUTS = {
    "orders": SourceInput(
        pa.schema([("id", pa.int64()), ("customer", pa.string()), ("note", pa.string()), ("at", TIMESTAMP)]),
        "at",
        delay_us=10_000_000,
    ),
    "ships": SourceInput(
        pa.schema([("order_id", pa.int32()), ("carrier", pa.string()), ("at", TIMESTAMP)]), "at"
    ),
    "pays": SourceInput(
        pa.schema([("order_id", pa.int64()), ("sum", pa.float64()), ("at", TIMESTAMP)]), "at"
    ),
    "untimed": SourceInput(pa.schema([("id", pa.int64())])),
}
BOUNDED = "SELECT o.id, s.carrier FROM orders o {} JOIN ships s ON o.id = s.order_id AND s.at BETWEEN o.at AND o.at + INTERVAL 1 HOUR"
PLAIN = "SELECT o.id, s.carrier FROM orders o {} JOIN ships s ON o.id = s.order_id"

BELOW = "SELECT o.id FROM orders o JOIN ships s ON o.id < s.order_id"
ODD = "SELECT o.id FROM orders o JOIN ships s ON (o.id + s.order_id) % 2 = 1"


def plan(sql: str, retention_us: int | None = None, units: int = 8) -> Stage:
    return build(sql, INPUTS, JoinOptions(units=units, retention_us=retention_us))


def stored(stage: Stage) -> list[list[str]]:
    return [[c.name for c in i.columns] for i in stage.inputs]


def test_only_what_is_needed_is_read_and_stored() -> None:
    """A column that only the filter needs is read, not stored; an unused one is neither."""
    stage = plan(PLAIN.format("INNER") + " WHERE o.customer = 'x'")

    assert stage.inputs[0].read == ("id", "customer")
    assert stored(stage) == [["o.id"], ["s.$key0", "s.carrier"]]
    assert stage.inputs[0].filter is not None
    assert not stage.timed


def test_keys_meet_in_one_type() -> None:
    """BIGINT and INT are both stored as BIGINT."""
    stage = plan(PLAIN.format("INNER"))
    keys = [i.schema.field(i.keys[0]).type for i in stage.inputs]

    assert keys == [pa.int64(), pa.int64()]


def test_inner_joins_of_one_class_are_one_node() -> None:
    """a = b and b = c is one join of three inputs."""
    stage = plan(
        "SELECT o.id FROM orders o JOIN ships s ON o.id = s.order_id JOIN pays p ON p.order_id = s.order_id"
    )

    assert stage.tree.kind == "inner"
    assert stage.tree.inputs == (Leaf(0), Leaf(1), Leaf(2))
    assert stage.tree.predicate is None


def test_outer_joins_stay_binary_above() -> None:
    """The key of a joined input is the one that no outer join fills with NULL."""
    stage = plan(
        "SELECT o.id FROM orders o LEFT JOIN ships s ON o.id = s.order_id LEFT JOIN pays p ON p.order_id = o.id"
    )
    inner = stage.tree.inputs[0]

    assert isinstance(inner, Join)
    assert (stage.tree.kind, inner.kind) == ("left", "left")
    assert stage.tree.keys == (("o.id",), ("p.order_id",))


def test_right_is_left_with_its_sides_exchanged() -> None:
    """Inputs are numbered in the order of the tree."""
    stage = plan(PLAIN.format("RIGHT"))

    assert stage.tree.kind == "left"
    assert [i.alias for i in stage.inputs] == ["s", "o"]


@pytest.mark.parametrize(
    ("kind", "kept"),
    [("INNER", [False, False]), ("LEFT", [True, False]), ("FULL", [True, True]), ("LEFT SEMI", [False, False]),
     ("LEFT ANTI", [True, False])],
)  # fmt: skip
def test_null_keys_are_kept_where_they_come_out(kind: str, kept: list[bool]) -> None:
    """Rows with a NULL key match nothing, but outer and anti joins let them out."""
    stage = plan(PLAIN.format(kind).replace(", s.carrier", ""))

    assert [i.keep_null_keys for i in stage.inputs] == kept


def test_null_keys_go_where_an_ancestor_drops_them() -> None:
    """The left side of a LEFT join below an inner join needs a key after all."""
    stage = plan(
        "SELECT o.id FROM orders o LEFT JOIN ships s ON o.id = s.order_id JOIN pays p ON p.order_id = o.id"
    )

    assert [i.keep_null_keys for i in stage.inputs] == [False, False, False]


def test_time_bounds_replace_their_conditions() -> None:
    """BETWEEN over two event times is one bound, and both times are stored."""
    stage = plan(BOUNDED.format("INNER"))

    assert stage.tree.bounds == (Bound("o.at", "s.at", 0, HOUR),)
    assert stage.tree.predicate is None
    assert [i.time for i in stage.inputs] == ["o.at", "s.at"]
    assert stage.timed
    assert not stage.final_close


@pytest.mark.parametrize(
    ("clause", "low", "high"),
    [
        ("s.at > o.at", 1, None),
        ("o.at > s.at", None, -1),
        ("s.at = o.at", 0, 0),
        ("s.at - o.at <= INTERVAL 1 HOUR", None, HOUR),
        ("INTERVAL 1 HOUR >= s.at - o.at", None, HOUR),
        ("s.at - INTERVAL '1:00' HOUR TO MINUTE < o.at", None, HOUR - 1),
        ("o.at BETWEEN s.at - INTERVAL 1 HOUR AND s.at", 0, HOUR),
        (
            "s.at >= o.at AND s.at >= o.at + INTERVAL 1 HOUR AND s.at < o.at + INTERVAL 2 HOURS",
            HOUR,
            2 * HOUR - 1,
        ),
    ],
)
def test_bound(clause: str, low: int | None, high: int | None) -> None:
    """However it is written, a bound is low <= s.at - o.at <= high."""
    stage = plan(PLAIN.format("LEFT") + " AND " + clause)

    assert stage.tree.bounds == (Bound("o.at", "s.at", low, high),)
    assert stage.tree.predicate is None


@pytest.mark.parametrize(
    "clause", ["s.at <> o.at", "s.at > o.at + INTERVAL 1 MONTH", "(s.at < o.at OR s.at > o.at)"]
)
def test_no_bound(clause: str) -> None:
    """What is no bound stays a condition."""
    stage = plan(PLAIN.format("INNER") + " AND " + clause)

    assert stage.tree.bounds == ()
    assert stage.tree.predicate is not None


def test_a_bound_lies_between_two_sides() -> None:
    """Times of one side of an outer join are compared by its condition: its rows come out either way."""
    stage = plan(
        BOUNDED.format("INNER") + " LEFT JOIN pays p ON p.order_id = o.id AND s.at > o.at AND p.at > o.at"
    )

    assert [(b.left, b.right) for b in stage.tree.bounds] == [("o.at", "p.at")]
    assert stage.tree.predicate is not None
    assert stage.tree.predicate.sql == "(s.at > o.at)"


def test_retention_bounds_every_pair() -> None:
    """Retention is a predicate, and narrower bounds stay."""
    stage = plan(BOUNDED.format("INNER") + " JOIN pays p ON p.order_id = o.id", retention_us=HOUR // 2)
    bounds = {(b.left, b.right): (b.low_us, b.high_us) for b in stage.tree.bounds}

    assert bounds == {
        ("o.at", "s.at"): (0, HOUR // 2),
        ("o.at", "p.at"): (-HOUR // 2, HOUR // 2),
        ("s.at", "p.at"): (-HOUR // 2, HOUR // 2),
    }


def test_retention_skips_times_that_may_be_null() -> None:
    """A time that an outer join fills with NULL bounds nothing above it."""
    stage = plan(
        "SELECT o.id FROM orders o LEFT JOIN ships s ON o.id = s.order_id LEFT JOIN pays p ON p.order_id = o.id",
        retention_us=HOUR,
    )

    assert [(b.left, b.right) for b in stage.tree.bounds] == [("o.at", "p.at")]


@pytest.mark.parametrize(
    ("sql", "options", "message"),
    [
        (PLAIN.format("INNER"), {"units": 12}, "join.units is 12; it must be a power of two"),
        (PLAIN.format("INNER"), {"units": 8, "strategy": "quick"}, "join.strategy is 'quick'"),
        (PLAIN.format("LEFT"), {"units": 8, "strategy": "biclique"}, "for the INNER join of two inputs"),
        (PLAIN.format("INNER"), {"units": 8, "strategy": "inequality"}, "inequality needs a comparison"),
        (PLAIN.format("INNER"), {"units": 8, "subgroups": 2}, "join.subgroups is for join.strategy biclique"),
        (BELOW, {"units": 8, "strategy": "multiway"}, "this join has none"),
        (BELOW, {"units": 8, "subgroups": 2}, "has no key to choose subgroups by"),
        (ODD, {"units": 8, "strategy": "inequality"}, "needs a comparison"),
        ("SELECT o.id FROM orders o JOIN untimed u USING (id)", {"units": 8, "retention_us": 1}, "input untimed an eventTime"),
    ],
)  # fmt: skip
def test_refused(sql: str, options: dict[str, object], message: str) -> None:
    """What does not fit the rest of the spec is named with the fix."""
    with pytest.raises(SpecError, match=message):
        build(sql, INPUTS, JoinOptions(**options))  # type: ignore[arg-type]


def test_event_time_must_be_a_timestamp() -> None:
    """A source says at once what is wrong with its time."""
    with pytest.raises(SpecError, match="eventTime: id is BIGINT"):
        SourceInput(pa.schema([("id", pa.int64())]), "id")


def test_stages_pickle() -> None:
    """A stage travels to the workers."""
    stage = plan(BOUNDED.format("FULL"), retention_us=HOUR)

    assert fingerprint(pickle.loads(pickle.dumps(stage))) == fingerprint(stage)


def test_explain_says_what_is_kept_and_why() -> None:
    """Filters, stored columns with their reasons, hold times and warnings are in the text."""
    text = explain(plan(BOUNDED.format("LEFT") + " WHERE o.customer = 'x'"))

    assert "where   o.customer = 'x'" in text
    assert "o.id, BIGINT: key, result" in text
    assert "0s <= s.at - o.at <= 1h" in text
    assert "keeps   o until the watermark is 1h past o.at" in text
    assert "rows up to 10s behind the latest are taken" in text
    assert "Warnings" not in text


def test_explain_warns() -> None:
    """State without end, and outer rows that wait for the end, are said."""
    text = explain(plan(PLAIN.format("LEFT")))

    assert "are emitted only when the inputs are closed" in text
    assert "LEFT JOIN of o, s: o and s are kept forever" in text


def test_same_plan_same_fingerprint() -> None:
    """A fingerprint is plain JSON, and aliases of results do not matter."""
    old, new = (
        plan(BOUNDED.format("INNER")),
        plan(BOUNDED.format("INNER").replace("o.id,", "o.id AS number,")),
    )
    there_and_back = json.loads(json.dumps(fingerprint(old)))

    assert compare(there_and_back, fingerprint(new)) == []


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (BOUNDED.format("LEFT"), "the joins were inner(0, 1) and are left(0, 1)"),
        (
            BOUNDED.format("INNER").replace("1 HOUR", "2 HOURS"),
            "the time bounds of the inner join were 0s <= s.at",
        ),
        (BOUNDED.format("INNER") + " WHERE o.id > 1", "the filter of o was none and is (o.id > 1)"),
        (
            BOUNDED.format("INNER").replace("o.id,", "o.id, o.note,"),
            "o.note is not among the stored columns of o",
        ),
        (
            BOUNDED.format("INNER").replace(", s.carrier", ""),
            "s.carrier is stored but the query does not use it",
        ),
        (
            BOUNDED.format("INNER").replace("orders o", "pays o").replace("o.id", "o.order_id"),
            "the inputs were",
        ),
    ],
)
def test_changes_that_need_a_new_checkpoint(sql: str, message: str) -> None:
    """Each is a sentence."""
    old, new = fingerprint(plan(BOUNDED.format("INNER"))), fingerprint(plan(sql))

    assert any(message in reason for reason in compare(old, new))


def test_another_number_of_units() -> None:
    """Rows that lie by the hash of a key can be divided anew; at random, or copied to every unit, they cannot."""
    keyed, crossed = (
        BOUNDED.format("LEFT"),
        "SELECT o.id, s.carrier FROM orders o JOIN ships s ON o.id < s.order_id",
    )
    at_random = dataclasses.replace(plan(keyed), route=plan(crossed).route)
    assert compare(fingerprint(plan(keyed)), fingerprint(plan(keyed, units=16))) == []
    for one in (plan(crossed), at_random):
        [why] = compare(fingerprint(one), fingerprint(dataclasses.replace(one, units=16)))
        assert "join.units was 8 and is 16" in why


@pytest.mark.parametrize("select", ["s.carrier", "o.note, s.carrier", "o.id"])
def test_other_columns_of_joined_rows_need_a_new_checkpoint(select: str) -> None:
    """The inputs store both columns for the condition; of joined rows those are stored that come out above."""
    text = "SELECT {}, p.sum FROM orders o JOIN ships s ON o.id = s.order_id AND o.note <> s.carrier LEFT JOIN pays p ON p.order_id = o.id"
    old, new = (plan(text.format(columns)) for columns in ("o.note", select))
    assert stored(old) == stored(new)
    (said,) = compare(json.loads(json.dumps(fingerprint(old))), fingerprint(new))
    assert "of rows joined so far the columns o.id, o.note are stored, and the query needs o.id" in said

    earlier = {name: value for name, value in fingerprint(old).items() if name != "joined"}
    assert compare(earlier, fingerprint(old)) == [], "earlier versions wrote no such columns"
