"""Since when is something true? To say the same again changes nothing."""

from hypothesis import given
from hypothesis import strategies as st
from joinop.classify import Change, Cost
from joinop.conditions import Condition, merged
from joinop.events import QUIET_S, Event, Recorder, between, body
from joinop.names import Object

from tests.deploy.operator.things import AT, LATER, thing

CONDITIONS = st.lists(
    st.builds(
        Condition,
        st.sampled_from(["Ready", "Degraded"]),
        st.sampled_from(["True", "False"]),
        st.sampled_from(["A", "B"]),
    ),
    unique_by=lambda condition: condition.type,
    max_size=2,
)


@given(CONDITIONS, CONDITIONS)
def test_idempotent(one: list[Condition], two: list[Condition]) -> None:
    """Times change with the status only; the same again is the same."""
    before = merged([], one, 1, AT)
    after = merged(before, two, 2, LATER)
    again = merged(after, two, 2, "2027-01-01T00:00:00Z")

    known = {condition.type: condition.status for condition in one}
    assert again == after
    for condition in after:
        kept = known.get(condition["type"]) == condition["status"]
        assert condition["lastTransitionTime"] == (AT if kept else LATER)
        assert condition["observedGeneration"] == 2


def status(phase: str = "Running", **truths: str) -> Object:
    found = {"Ready": "False", "Degraded": "False", "Scaling": "False"} | truths
    return {
        "phase": phase,
        "message": "m",
        "conditions": [
            {"type": name, "status": value, "reason": "R", "message": "m"} for name, value in found.items()
        ],
    }


NONE = Change(Cost.NOTHING)


def test_events_tell_changes() -> None:
    """What begins or ends is told, what lasts is not."""
    fine, bad = status(Ready="True"), status("Degraded", Degraded="True")

    assert [event.reason for event in between({}, fine, NONE)] == ["Running"]
    assert list(between(fine, fine, NONE)) == list(between(bad, bad, NONE)) == []
    assert [(event.type, event.reason) for event in between(fine, bad, NONE)] == [("Warning", "R")]
    assert [event.reason for event in between(bad, fine, NONE)] == ["Recovered", "Running"]
    assert [event.reason for event in between(fine, status("Suspended"), NONE)] == ["Suspended"]
    assert list(between(fine, fine, Change(Cost.LIVE, ("spec.suspend: a -> b",)))) == []


def test_recorder() -> None:
    """The same event is told once in half an hour, and forgotten afterwards."""
    recorder, event = Recorder(), Event("Warning", "R", "m")

    assert recorder.fresh("u", event, 0.0)
    assert not recorder.fresh("u", event, QUIET_S - 1)
    assert recorder.fresh("other", event, 1.0)
    assert recorder.fresh("u", event, QUIET_S + 1)
    assert len(recorder.told) <= 2


def test_event_names() -> None:
    """One text is one object; it fits the API."""
    long = Event("Warning", "R", "m" * 5_000)

    assert body(thing(), long, AT)["metadata"]["name"] == body(thing(), long, LATER)["metadata"]["name"]
    assert len(body(thing(), long, AT)["message"]) <= 1024
