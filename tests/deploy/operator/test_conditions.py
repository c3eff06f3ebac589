"""Conditions and events. Stating the same condition again changes nothing."""

from hypothesis import given
from hypothesis import strategies as st
from joinop.classify import Change, Cost
from joinop.conditions import StatusCondition, merged
from joinop.events import QUIET_S, Event, Recorder, between, body
from joinop.names import Object

from tests.deploy.operator.objects import AT, LATER, stream_join

CONDITIONS = st.lists(
    st.builds(
        StatusCondition,
        st.sampled_from(["Ready", "Degraded"]),
        st.sampled_from(["True", "False"]),
        st.sampled_from(["A", "B"]),
    ),
    unique_by=lambda condition: condition.type,
    max_size=2,
)


@given(CONDITIONS, CONDITIONS)
def test_idempotent(one: list[StatusCondition], two: list[StatusCondition]) -> None:
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
    """What begins or ends is an event; what lasts is not."""
    fine, bad = status(Ready="True"), status("Degraded", Degraded="True")

    assert [event.reason for event in between({}, fine, NONE)] == ["Running"]
    assert list(between(fine, fine, NONE)) == list(between(bad, bad, NONE)) == []
    assert [(event.type, event.reason) for event in between(fine, bad, NONE)] == [("Warning", "R")]
    assert [event.reason for event in between(bad, fine, NONE)] == ["Recovered", "Running"]
    assert [event.reason for event in between(fine, status("Suspended"), NONE)] == ["Suspended"]
    assert list(between(fine, fine, Change(Cost.LIVE, ("spec.suspend: a -> b",)))) == []


def test_recorder() -> None:
    """The same event is recorded once in half an hour, and forgotten afterwards."""
    recorder, event = Recorder(), Event("Warning", "R", "m")

    assert recorder.is_new("u", event, 0.0)
    assert not recorder.is_new("u", event, QUIET_S - 1)
    assert recorder.is_new("other", event, 1.0)
    assert recorder.is_new("u", event, QUIET_S + 1)
    assert len(recorder.recorded) <= 2


def test_event_names() -> None:
    """One text is one object; it fits the API."""
    long = Event("Warning", "R", "m" * 5_000)

    assert (
        body(stream_join(), long, AT)["metadata"]["name"]
        == body(stream_join(), long, LATER)["metadata"]["name"]
    )
    assert len(body(stream_join(), long, AT)["message"]) <= 1024
