"""The Lease between drivers that freeze, lose answers and cannot reach the API server."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.lease import LATE_S, PATIENCE_S, Conflict, Contender, Lost, Record, Unreachable


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Api:
    """The API server's side: one record, compare-and-swap; `answers` and `hears` as the test wishes."""

    clock: Clock
    record: Record | None = None
    writes: int = 0
    hears: bool = True
    answers: bool = True
    delay: float = 0.0  # before the answer comes
    log: list[str] = field(default_factory=list)

    def read(self) -> Record | None:
        self._reach()
        return self.record

    def write(self, holder: str, transitions: int, version: str | None) -> Record:
        self._reach()
        if version != (self.record.version if self.record else None):
            raise Conflict
        self.writes += 1
        self.record = Record(holder, f"{self.clock.now}", transitions, str(self.writes))
        self.clock.now += self.delay
        if not self.answers:
            raise Unreachable
        return self.record

    def _reach(self) -> None:
        if not self.hears:
            raise Unreachable


@pytest.fixture
def api() -> Api:
    return Api(Clock())


def test_taken_renewed_released(api: Api) -> None:
    """The first has it, the second waits, and has it as soon as it is released."""
    one, two = (Contender(api, name, api.clock) for name in ("one", "two"))
    assert one.take()
    assert not two.take()
    assert "pod holds the lease: one" in two.hindered
    for _ in range(10):
        api.clock.now += 3
        one.renew()
        assert not two.take()
    one.release()
    assert two.take()
    assert api.record is not None
    assert (api.record.holder, api.record.transitions) == ("two", 1)


def test_a_silent_holder_loses_it(api: Api) -> None:
    """After 15 s by the other's clock; the old holder hears of it at its next renewal, and was too old long before."""
    one, two = (Contender(api, name, api.clock) for name in ("one", "two"))
    assert one.take()
    assert not two.take()
    api.clock.now += PATIENCE_S
    assert not two.take()
    api.clock.now += 0.1
    assert two.take()
    assert one.age > LATE_S
    with pytest.raises(Lost, match="two"):
        one.renew()


def test_the_same_pod_takes_it_again_at_once(api: Api) -> None:
    """A container that was restarted: its predecessor is certainly gone."""
    assert Contender(api, "one", api.clock).take()
    assert Contender(api, "one", api.clock).take()


def test_a_lost_answer_is_read_back(api: Api) -> None:
    """Of a renewal, and of the first write."""
    one = Contender(api, "one", api.clock)
    api.answers = False
    assert not one.take()
    api.answers = True
    assert one.take()
    api.clock.now += 3
    api.answers = False
    one.renew()
    assert one.age == 3
    api.answers = True
    one.renew()
    assert one.age == 0


def test_an_api_server_that_is_gone(api: Api) -> None:
    """Age tells; nothing is raised, and it is taken up again when the server is back."""
    one = Contender(api, "one", api.clock)
    assert one.take()
    api.hears = False
    api.clock.now += 6
    one.renew()
    assert one.age == 6
    api.hears = True
    one.renew()
    assert one.age == 0


def test_a_lease_that_was_deleted_is_lost(api: Api) -> None:
    """Somebody else may make a new one."""
    one = Contender(api, "one", api.clock)
    assert one.take()
    api.record = None
    with pytest.raises(Lost):
        one.renew()


def test_age_counts_from_when_a_renewal_was_sent(api: Api) -> None:
    """The server may have noted it at once, and the answer taken its time."""
    one = Contender(api, "one", api.clock)
    api.delay = 4.0
    assert one.take()
    assert one.age == 4.0


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 3.0, 9.5, 16.0]),  # seconds pass
        st.sampled_from([(), (0,), (1,), (0, 1), (1, 0)]),  # then these act, who are not frozen
        st.sampled_from(["whole", "whole", "whole", "deaf", "mute", "release"]),
    ),
    max_size=20,
)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_never_two_at_once(steps: list[tuple[float, tuple[int, ...], str]]) -> None:
    """Whatever freezes, however answers are lost: at most one holds the Lease and may commit, at every moment."""
    api = Api(Clock())
    contenders = [Contender(api, name, api.clock) for name in "ab"]
    dead: set[Contender] = set()
    for seconds, acting, how in steps:
        api.clock.now += seconds
        api.hears, api.answers = how != "deaf", how != "mute"
        for contender in (contenders[who] for who in acting):
            if contender not in dead:
                _act(contender, dead, release=how == "release")
            assert sum(c not in dead and c.record is not None and c.age <= LATE_S for c in contenders) <= 1


def _act(contender: Contender, dead: set[Contender], *, release: bool) -> None:
    """As the guard does: who is too old is killed before it does anything."""
    if contender.record is None:
        contender.take()
    elif contender.age > LATE_S:
        dead.add(contender)
    else:
        try:
            contender.release() if release else contender.renew()
        except (Lost, Conflict, Unreachable):
            dead.add(contender)
