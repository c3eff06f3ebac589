"""What does a change cost? Equal specs nothing; every field has exactly one class."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joinop.admission import Admitted
from joinop.classify import Change, Cost, Pinned, classify, cost

from joinlib.model.fingerprint import as_json
from joinlib.plan import pipeline_of
from joinlib.spec.schema import fields
from tests.deploy.operator.objects import accepted, stream_join

FIELDS: dict[str, list[Any]] = {
    "executors__max": [4, 6],
    "executors__min": [1, 2],
    "executors__instances": [None, 3],
    "executors__memory": ["2Gi", "4Gi"],
    "scaling": [None, {"votes": 5}],
    "suspend": [None, True],
    "image": [None, "other:2"],
    "batch": [None, {"maxRows": 5}],
    "output__files__format": [None, "csv"],
    "driver": [None, {"memory": "4Gi"}],
}
LIVE = {"executors__max", "executors__min", "executors__instances", "scaling", "suspend"}
SPECS = st.fixed_dictionaries({place: st.sampled_from(values) for place, values in FIELDS.items()})


def pinned(verdict: Admitted) -> Pinned:
    return Pinned(verdict.folder, verdict.fingerprint)


@given(SPECS)
def test_equal_specs_cost_nothing(places: dict[str, Any]) -> None:
    """The same spec is no change, whatever is in it."""
    one, two = accepted(stream_join(**places)), accepted(stream_join(**places))

    assert classify(one, two, pinned(one)) == Change(Cost.NOTHING)
    assert one.config_hash == two.config_hash


@given(SPECS, SPECS)
def test_the_dearest_field_decides(before: dict[str, Any], after: dict[str, Any]) -> None:
    """A change costs what its dearest field costs, and a restart is what changes the hash."""
    old, new = accepted(stream_join(**before)), accepted(stream_join(**after))
    changed = {place for place in FIELDS if before[place] != after[place]}
    expected = Cost.NOTHING if not changed else Cost.LIVE if changed <= LIVE else Cost.RESTART

    assert classify(old, new, pinned(old)).cost == expected
    assert (old.config_hash != new.config_hash) == (expected == Cost.RESTART)


def test_every_field_has_one_class() -> None:
    """Of all fields of a spec, these are taken over by a running driver; all others need another one."""
    below = {f"{name}.{inner}" for name in fields(("spec",)) for inner in fields(("spec", name))} | set(
        fields(("spec",))
    )

    live = {place for place in below if cost(place) is Cost.LIVE}
    operators = {"driver.restarts", "driver.startWithin", "suspend"}
    assert live == operators | {"executors.min", "executors.max", "executors.instances"} | {
        f"scaling.{name}" for name in fields(("spec", "scaling"))
    }


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("sql", "SELECT o.id, s.carrier FROM orders o LEFT JOIN shipments s ON o.id = s.id"),
        ("sql", "SELECT o.id, o.note, s.carrier FROM orders o JOIN shipments s ON o.id = s.id"),
    ],
)
def test_state_that_would_not_fit(place: str, value: Any) -> None:
    """A change that stored state cannot follow is refused, unless it begins a new checkpoint."""
    old, new = accepted(stream_join()), accepted(stream_join(**{place: value}))
    afresh = accepted(stream_join(**{place: value, "checkpoint__reset": "2"}))

    assert classify(old, new, pinned(old)).refused
    assert classify(old, new, pinned(old)).reasons
    assert not classify(old, new, None).refused  # no driver has ever started
    change = classify(old, afresh, pinned(old))
    assert (change.cost, change.refused) == (Cost.CHECKPOINT, False)
    assert change.reasons[0] == "a new checkpoint begins in /data/checkpoint@2"


def test_a_column_that_is_read_no_more_is_kept() -> None:
    """The state goes on with it, as the plan in the status says."""
    old = accepted(stream_join())
    less = stream_join(sql="SELECT o.id FROM orders o JOIN shipments s ON o.id = s.id")
    new = accepted(less, pinned(old))

    assert new.fingerprint == old.fingerprint != accepted(less).fingerprint
    assert "s.carrier, STRING: kept, as the checkpoint has it" in new.plan
    assert classify(old, new, pinned(old)).cost is Cost.RESTART
    afresh = stream_join(sql=less["spec"]["sql"], checkpoint__reset="2")
    assert "kept, as" not in accepted(afresh, pinned(old)).plan, (
        "another checkpoint begins with what it needs"
    )


def test_an_aggregate_that_is_read_no_more_is_kept() -> None:
    """As a column is."""
    text = "SELECT o.id, {} FROM orders o JOIN shipments s ON o.id = s.id GROUP BY o.id"
    old = accepted(stream_join(sql=text.format("max(s.carrier) AS last, count(*) AS n")))
    new = accepted(stream_join(sql=text.format("count(*) AS n")), pinned(old))

    assert new.fingerprint == old.fingerprint
    assert "max(s.carrier) STRING: kept, as the checkpoint has it" in new.plan
    assert classify(old, new, pinned(old)).cost is Cost.RESTART


def test_the_plan_of_a_band_says_where_its_rows_lie() -> None:
    """At random, if a checkpoint of an earlier version has them so: the driver goes on as that one was begun."""
    band = stream_join(sql="SELECT o.id FROM orders o JOIN shipments s ON ABS(o.id - s.id) <= 1")
    new = accepted(band)
    earlier = as_json(pipeline_of(new.model, cells=False))
    on = accepted(band, Pinned(new.folder, earlier))

    assert "by its cell of o.id" in new.plan
    assert "at random" in on.plan and "cell" not in on.plan
    assert on.fingerprint == earlier != new.fingerprint


def test_reasons() -> None:
    """Changes are listed field by field."""
    change = classify(accepted(stream_join()), accepted(stream_join(executors__max=6, image="i:2")), None)

    assert change.reasons == ("spec.executors.max: 4 -> 6", "spec.image: the default -> i:2")


@pytest.mark.parametrize("known", [{}, {"version": 0}])
def test_a_fingerprint_of_another_planner(known: dict[str, Any]) -> None:
    """It may lack any field: the change is refused with the reason, not tried again and again."""
    old = accepted(stream_join())

    change = classify(old, old, Pinned(old.folder, known))
    assert change.refused
    assert "plan version" in change.reasons[0]
