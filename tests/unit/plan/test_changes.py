"""What changes in a plan: edges, upserts in front of joins, the result's key, and what is refused."""

from dataclasses import replace

import pyarrow as pa
import pytest

from joinlib.errors import SpecError
from joinlib.model.fingerprint import compare, fingerprint
from joinlib.model.inputs import WEIGHT
from joinlib.model.joins import Caching, Leaf
from joinlib.model.stage import Pipeline
from joinlib.plan import JoinOptions, SourceInput, pipeline
from joinlib.plan.changes import Mode
from joinlib.plan.explain import cautions, explain
from joinlib.plan.explain.formats import render
from joinlib.route.split import prepare

UTC = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("j", pa.string()), ("t", UTC)])
GROWS = SourceInput(SCHEMA, "t")
CHANGES = SourceInput(SCHEMA, "t", changes=True)
UPSERT = SourceInput(SCHEMA, "t", upsert=("id",))
TABLE = SourceInput(SCHEMA, role="table", caching=Caching("full"))
INNER = "SELECT a.id, a.k, b.id AS other FROM a JOIN b ON a.k = b.k"
LEFT = INNER.replace("JOIN", "LEFT JOIN")


def plan(
    sql: str,
    mode: Mode = "changelog",
    key: tuple[str, ...] = (),
    strategy: str = "auto",
    **inputs: SourceInput,
) -> Pipeline:
    known = {"a": GROWS, "b": GROWS, "c": GROWS, **inputs}
    return pipeline(sql, known, JoinOptions(units=4, strategy=strategy), mode=mode, key=key)


def test_edges_that_only_grow_have_no_weights() -> None:
    """Whatever the output may take."""
    for mode in ("append", "changelog", "upsert"):
        found = plan(INNER, mode, ("k", "id"))
        assert not found.changes and found.emitted == found.schema
        assert not any(p.changes for p in found.inputs) and not any(s.mutable for s in found.last.sides)
        assert len(found.stages) == 1 and "Changes" not in explain(found)


def test_an_outer_join_waits_only_for_an_output_that_can_only_append() -> None:
    """Otherwise its rows are taken back."""
    waits, eager = plan(LEFT, "append"), plan(LEFT)
    assert waits.final_close and not waits.changes
    assert eager.changes and not eager.final_close and "at once" in explain(eager)
    assert [s.mutable for s in eager.last.sides] == [False, False], "partners only come: marks are enough"
    assert not list(cautions(eager)) or "emitted only when" not in " ".join(cautions(eager))
    assert any("output.mode" in why for why in compare(fingerprint(waits), fingerprint(eager)))


def test_rows_may_be_deleted_where_an_input_or_its_partner_says_so() -> None:
    """A mark is taken when the partner goes, so the other side's rows change too."""
    found = plan(LEFT, b=CHANGES)
    assert [s.mutable for s in found.last.sides] == [True, True]
    inner = plan(INNER, b=CHANGES)
    assert [s.mutable for s in inner.last.sides] == [False, True]
    assert any("may be deleted" in why for why in compare(fingerprint(plan(INNER)), fingerprint(inner)))


def test_a_side_waits_for_the_partners_of_its_partners() -> None:
    """A row that a deleted partner leaves must find those that are left."""
    near = LEFT + " AND b.t BETWEEN a.t AND a.t + INTERVAL 1 HOUR"
    was, now = plan(near).last.sides, plan(near, b=CHANGES).last.sides
    assert None not in (was[0].hold_us, was[1].hold_us, now[1].hold_us)
    assert now[0].hold_us == was[0].hold_us
    assert now[1].hold_us == was[0].hold_us + was[1].hold_us  # type: ignore[operator]


def test_an_upsert_is_a_stage_in_front() -> None:
    """It reads the key and what the joins need, and other stages keep their order."""
    found = plan(INNER + " JOIN c ON b.j = c.j", a=UPSERT, c=UPSERT)
    assert [s.root.kind if not isinstance(s.root, Leaf) else "leaf" for s in found.stages] == [
        "upsert",
        "upsert",
        "inner",
        "inner",
    ]
    assert [p.source for p in found.inputs] == ["a", "c", "b"]
    assert found.inputs[0].read == ("id", "k") and found.inputs[0].keys == ("a.id",)
    assert [[p.upstream for p in s.inputs] for s in found.stages] == [[None], [None], [0, None], [2, 1]]
    for form in ("text", "json", "mermaid"):
        assert render(found, form)


def test_one_unit_sees_all_changes_of_the_key() -> None:
    """A stage is added where the units of the join are not chosen by the result's key."""
    assert len(plan(INNER, "upsert", ("k", "id"), a=CHANGES).stages) == 1
    added = plan(INNER, "upsert", ("id", "other"), a=CHANGES)
    assert len(added.stages) == 2 and added.last.inputs[0].keys == ("id", "other")
    assert isinstance(added.last.tree, Leaf) and added.schema == plan(INNER).schema
    assert "by the result's key" in explain(added)
    assert len(plan(INNER.replace("JOIN", "FULL JOIN"), "upsert", ("k",)).stages) == 2, "a.k may be NULL"


@pytest.mark.parametrize(
    ("call", "key", "stages"),
    [
        ("row_number() OVER (PARTITION BY k ORDER BY id)", ("k",), 1),
        ("row_number() OVER (PARTITION BY k, j ORDER BY id)", ("j", "id", "k"), 1),
        ("row_number() OVER (PARTITION BY k, j ORDER BY id)", ("k", "id"), 2),
        ("row_number() OVER (PARTITION BY abs_k ORDER BY id)", ("k",), 2),
        ("row_number() OVER (ORDER BY id)", ("id",), 1),  # all of them are in one unit
    ],
)
def test_rows_of_window_functions_are_routed_once_if_the_key_has_their_partition(
    call: str, key: tuple[str, ...], stages: int
) -> None:
    """Rows of one key are then of one partition, and their changes come out of its unit."""
    sql = f"SELECT id, k, j FROM (SELECT *, abs(k) AS abs_k FROM a) QUALIFY {call} = 1"
    for mode in ("upsert", "changelog"):
        found = plan(sql, mode, key)
        assert len(found.stages) == stages, key
        renamed = plan(sql.replace("id, k, j", "id, j AS k, k AS j"), mode, key)
        assert (len(renamed.stages) == 1) == (set(key) >= {"k", "j"} or key == ("id",)), (
            "by columns, not names"
        )


def test_rows_of_a_key_meet_in_one_unit_where_part_of_it_is_null() -> None:
    """The old row and the new one, whatever else is in them."""
    added = plan(LEFT.replace("b.id AS other", "b.j AS other"), "upsert", ("id", "k"), a=CHANGES).last
    assert isinstance(added.tree, Leaf), "NULL keys of an outer join are spread"
    rows = pa.record_batch(
        [pa.array([1, 1, 1]), pa.array([None, None, 5]), pa.array(["x", "y", "x"]), pa.array([-1, 1, 1])],
        ["id", "k", "other", WEIGHT],
    )
    hashes = prepare(added.inputs[0], rows, 0).column(0).to_pylist()
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_changelog_with_a_key_is_routed_by_it() -> None:
    """Else an update would leave as a deletion here and an insertion there."""
    assert len(plan(INNER, "changelog", ("id", "other"), a=CHANGES).stages) == 2
    assert len(plan(INNER, "changelog", ("id", "other")).stages) == 1, "nothing of a key is taken back"


def test_a_table_is_looked_up_before_the_result_is_routed() -> None:
    """By its key."""
    sql = INNER.replace("b.id", "p.id") + " JOIN p ON p.id = a.id"
    found = plan(sql, "upsert", ("id",), a=CHANGES, p=replace(TABLE, caching=Caching("auto")))
    assert [len(s.lookups) for s in found.stages] == [1, 0]
    assert found.lookups[0][1].caching.mode == "full", "a deletion must find the row that its insertion found"


@pytest.mark.parametrize(
    ("sql", "inputs", "mode", "message"),
    [
        (
            INNER,
            {"a": CHANGES},
            "append",
            r"rows of a may be deleted \(inputs.a.changes\).*output.mode: changelog",
        ),
        (INNER, {"b": UPSERT}, "append", r"rows of b may be deleted \(inputs.b.upsert\)"),
        (
            INNER.replace("b.id", "p.id") + " JOIN p ON p.id = a.id",
            {"a": CHANGES, "p": replace(TABLE, caching=Caching("full", refresh_us=1))},
            "changelog",
            "the table p must stay as it is",
        ),
        (
            LEFT.replace("b.id", "p.id") + " JOIN p ON p.id = a.id",
            {"p": replace(TABLE, caching=Caching("full", refresh_us=1))},
            "changelog",
            "rows of an outer join are taken back, so the table p must stay",
        ),
        (
            "SELECT a.k, count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k, a.j",
            {"a": CHANGES},
            "upsert",
            "a.j",
        ),
    ],
)
def test_what_is_refused(sql: str, inputs: dict[str, SourceInput], mode: Mode, message: str) -> None:
    """With the clause that makes it so, and what to write."""
    with pytest.raises(SpecError, match=message):
        plan(sql, mode, ("k",) if mode == "upsert" else (), **inputs)


def test_unknown_deletions_are_left_out_only_where_units_know_them() -> None:
    """A unit that only probes does not."""
    skips = replace(CHANGES, skip_unknown=True)
    assert plan(INNER, a=skips)
    with pytest.raises(SpecError, match="onUnknownDelete: skip"):
        plan("SELECT a.id, b.id AS other FROM a JOIN b ON a.t < b.t", a=skips)


def test_a_deletion_without_its_row_is_told_by_all_columns() -> None:
    """By those that the join needs alone, it would take another row (found by a law: six rows came, five strangers went)."""
    skipping = replace(CHANGES, skip_unknown=True)
    (own,) = (p for p in plan(INNER, "changelog", a=skipping).inputs if p.alias == "a")
    assert {c.name for c in own.columns} >= {f"a.{n}" for n in CHANGES.schema.names}
