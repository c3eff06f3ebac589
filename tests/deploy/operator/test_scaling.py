"""Scaling as the operator does it: figures from a Prometheus with every fault, a memory in the status, an operator that is killed.

Prometheus and driver are real HTTP servers on ports of their own; time is given.
"""

import asyncio
import dataclasses
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from joinop import measure, remember
from joinop.config import Config
from joinop.decide import Decision, Seen, decide, view_of
from joinop.driver import Drivers
from joinop.names import Key, Object
from joinop.prometheus import Prometheus
from joinop.reading import Reading
from joinop.scalings import Scalings
from joinop.status import is_due, observed
from prometheus_client import CollectorRegistry, generate_latest

from joinlib.metric.table import BY_NAME, METRICS
from joinlib.scale import Load, Observed, Policy, State, step
from joinlib.spec.status import Status
from tests.deploy.operator.things import driver_pod, executor_pod, running, settle, thing

JOB = Key("shop", "late")
NOW = 1_760_000_000.0
TARGET = {"instance": "10.0.0.1:7070", "pod": "late-driver-0", "namespace": "shop", "streamjoin": "late"}


def series(name: str, value: str, at: float, **labels: str) -> Object:
    return {"metric": {"__name__": name, **TARGET, **labels}, "values": [[at - 2, "1"], [at, value]]}


def scrape(at: float, executors: int = 2, held: str = "900", lag: str = "0", **target: str) -> list[Object]:
    """What a Prometheus has of one driver."""
    each = [str(e + 1) for e in range(executors)]
    return [
        series("streamjoin_executors", str(executors), at, state="ready", **target),
        series("streamjoin_executors", str(executors), at, state="wanted", **target),
        *(series("streamjoin_executor_state_bytes", held, at, executor=e, **target) for e in each),
        *(series("streamjoin_executor_capacity_bytes", "1000", at, executor=e, **target) for e in each),
        series("streamjoin_lag_rows", lag, at, input="orders", **target),
        series("streamjoin_input_rate", "10", at, input="orders", **target),
        series("streamjoin_partitions", "4", at, **target),
    ]


def answer(*found: Object) -> Object:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(found)}}


def of(*found: Object) -> Load | str:
    return measure.load(measure.of_prometheus(answer(*found)))


# --- figures -------------------------------------------------------------------------------------------------------------


def test_complete_figures() -> None:
    """Two executors, each with load and capacity, and what the gates need."""
    assert of(*scrape(NOW)) == Load((900, 900), (1000, 1000), lag=0, rate=10, partitions=4)


def without(name: str, **labels: str) -> list[Object]:
    return [
        s
        for s in scrape(NOW)
        if not (s["metric"]["__name__"] == name and labels.items() <= s["metric"].items())
    ]


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "not there"),
        (without("streamjoin_executors"), "not there"),
        (without("streamjoin_executor_state_bytes", executor="2"), "1 of 2"),
        (without("streamjoin_executor_capacity_bytes", executor="2"), "1 of 2"),
        (without("streamjoin_executor_state_bytes"), "0 of 2"),
        (scrape(NOW, held="NaN"), "0 of 2"),
        (scrape(NOW, held="+Inf"), "0 of 2"),
        (scrape(NOW, executors=0), "no executor"),
        (
            [*without("streamjoin_executors"), series("streamjoin_executors", "3", NOW, state="ready")],
            "2 of 3",
        ),
        (
            [*without("streamjoin_executors"), series("streamjoin_executors", "1", NOW, state="ready")],
            "2 of 1",
        ),
    ],
)
def test_figures_that_are_not_complete(found: list[Object], why: str) -> None:
    """Missing, not a number, too few, too many: no load is made of them, and the reason is said."""
    load = of(*found)
    assert isinstance(load, str)
    assert why in load


def test_only_the_newest_scrape_counts() -> None:
    """Executor 3 is gone; another driver had its own figures before: neither is added to what is there now."""
    gone = series("streamjoin_executor_state_bytes", "5000", NOW - 5, executor="3")
    before = scrape(NOW - 5, executors=4, held="7", instance="10.0.0.9:7070")
    assert of(*scrape(NOW), gone, *before) == of(*scrape(NOW))


def test_a_lag_that_is_not_known_is_not_zero() -> None:
    """Of one input of two."""
    more = series("streamjoin_input_rate", "10", NOW, input="shipments")
    load = of(*scrape(NOW), more)
    assert isinstance(load, Load)
    assert (load.lag, load.rate) == (None, 20)


def test_the_driver_says_the_same() -> None:
    """Without a Prometheus the same figures are read from /metrics."""
    lines = []
    for found in scrape(NOW):
        labels = {k: v for k, v in found["metric"].items() if k not in {*TARGET, "__name__"}}
        inner = ",".join(f'{k}="{v}"' for k, v in labels.items())
        lines.append(f"{found['metric']['__name__']}{{{inner}}} {found['values'][-1][1]}")
    assert measure.load(measure.of_text("\n".join(lines) + "\n")) == of(*scrape(NOW))


def test_every_figure_that_is_asked_for_is_in_the_table() -> None:
    """And has at most one label of its own."""
    assert all(len(BY_NAME[name].labels) <= 1 for name in measure.NEEDED)
    assert measure.query(JOB, 10) == (
        '{__name__=~"' + "|".join(measure.NEEDED) + '",namespace="shop",streamjoin="late"}[10000ms]'
    )


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"status": "error", "error": "out of order"},
        {"status": "success"},
        {"status": "success", "data": {"resultType": "vector", "result": []}},
        answer({"metric": {}, "values": []}),
        answer({"metric": {"__name__": "streamjoin_partitions"}, "values": [1]}),
        answer({"metric": {"__name__": "streamjoin_partitions"}, "values": [[1, "x"]]}),
        {"status": "success", "data": {"resultType": "matrix", "result": None}},
    ],
)
def test_answers_that_are_none(said: Object) -> None:
    """A word, never a crash."""
    with pytest.raises(ValueError, match=r"."):
        measure.of_prometheus(said)


# --- a Prometheus with every fault ---------------------------------------------------------------------------------------

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, path: str = "/api/v1/query") -> Any:
    app = web.Application()
    app.router.add_route("*", path, handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def ask(handler: Handler, fresh_s: float = 10, token: Path | None = None) -> Load | str:
    """What the operator makes of a server."""

    async def run() -> Load | str:
        async with serving(handler) as port:
            prometheus = Prometheus(f"http://127.0.0.1:{port}/", token)
            try:
                return await prometheus.load(JOB, fresh_s)
            finally:
                await prometheus.close()

    return asyncio.run(run())


def says(body: Any, status: int = 200) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        said = body() if callable(body) else body
        text = said if isinstance(said, str) else json.dumps(said)
        return web.Response(text=text, status=status, content_type="application/json")

    return handler


def test_a_prometheus_that_works(tmp_path: Path) -> None:
    """It gets the query and the token; the token is read anew each time and stands in no answer."""
    got: dict[str, str] = {}

    async def handler(request: web.Request) -> web.Response:
        got["query"] = str((await request.post())["query"])
        got["authorization"] = request.headers.get("Authorization", "")
        return web.json_response(answer(*scrape(time.time())))

    (tmp_path / "token").write_text("secret\n")
    assert isinstance(ask(handler, token=tmp_path / "token"), Load)
    assert got == {"query": measure.query(JOB, 20), "authorization": "Bearer secret"}


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (says(answer()), "no figures of this job"),
        (says("<html>", 502), "502"),
        (says("<html>"), "no answer"),
        (says([1]), "no answer"),
        (says({"status": "error", "error": "query timed out"}, 422), "query timed out"),
        (says("{}", 401), "401"),
        (says(lambda: answer(*scrape(time.time() - 60))), "old"),
        (says(lambda: answer(*scrape(time.time(), held="NaN"))), "0 of 2"),
    ],
    ids=["empty", "gateway", "html", "list", "refused", "token", "stale", "nan"],
)
def test_a_prometheus_that_fails(handler: Handler, why: str) -> None:
    """Empty, broken, refusing, stale: no load, and the reason."""
    found = ask(handler)
    assert isinstance(found, str)
    assert why in found


def test_a_prometheus_that_is_down() -> None:
    """Nobody listens."""

    async def run() -> Load | str:
        prometheus = Prometheus("http://127.0.0.1:9")
        try:
            return await prometheus.load(JOB, 10)
        finally:
            await prometheus.close()

    found = asyncio.run(run())
    assert isinstance(found, str)
    assert found.startswith("Prometheus cannot be asked")


def test_a_driver_with_large_figures() -> None:
    """All of it is read, however many parts it comes in."""
    text = "".join(f'x{{i="{i}"}} 1\n' for i in range(20_000)) + "\n".join(
        ['streamjoin_executors{state="ready"} 1']
        + [f'streamjoin_executor_{n}_bytes{{executor="1"}} 5' for n in ("state", "capacity")]
    )

    async def run() -> Load | str:
        async with serving(says(text + "\n"), "/metrics") as port:
            drivers = Drivers(port)
            try:
                pod = {"status": {"podIP": "127.0.0.1"}}
                return await drivers.load(pod)
            finally:
                await drivers.close()

    assert asyncio.run(run()) == Load((5,), (5,))


# --- the memory in the status --------------------------------------------------------------------------------------------

POLICY = Policy(min=1, max=16, votes=2, period_s=5, cool_s=5, patience_s=20)


@given(
    st.lists(
        st.one_of(
            st.builds(
                lambda k, held: Observed(k, 0, Load((held / k,) * k, (1000.0,) * k, 0, 1, 16)),
                st.integers(1, 8),
                st.integers(0, 9000),
            ),
            st.builds(lambda r: Observed(r, 1, None, "down"), st.none() | st.integers(0, 8)),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_what_is_written_is_read_as_it_was(seen: list[Observed]) -> None:
    """So an operator that is killed after any period goes on as if it had not been; and the kind allows what is written."""
    state = State(wanted=2)
    for number, moment in enumerate(seen):
        state = step(state, POLICY, moment, NOW + 5 * number)
        text = json.loads(json.dumps(remember.written(state)))
        Status.model_validate({"scaling": text})
        again = remember.read({"scaling": text})
        assert remember.written(again) == text
        one, two = (step(s, POLICY, moment, NOW + 5 * number + 5) for s in (state, again))
        assert (one.wanted, one.phase, one.votes) == (two.wanted, two.phase, two.votes)


@pytest.mark.parametrize(
    "scaling",
    [
        None,
        {},
        {"wanted": 0},
        {"wanted": 3, "phase": "Jumping"},
        {"wanted": 3, "at": "yesterday"},
        {"wanted": 3, "decisions": [{"verdict": "Perhaps"}]},
        {"wanted": 3, "decisions": [{}]},
    ],
)
def test_a_memory_that_cannot_be_read_is_forgotten(scaling: Any) -> None:
    """Scaling begins anew, from as many executors as are wanted."""
    assert remember.read({"executors": {"wanted": 3}, "scaling": scaling}) == State(wanted=3)


# --- the operator --------------------------------------------------------------------------------------------------------


class Life:
    """A job whose driver does what it is told, looked at by operators that may be killed between any two writes."""

    def __init__(self, held: float, **spec: Any) -> None:
        places = {"scaling__period": "5s", "scaling__votes": 2, "scaling__patience": "20s", **spec}
        self.held, self.now = held, NOW
        self.driver: int | None = 2  # executors that the driver wants; None: there is none
        self.there = 2
        self.room = 16
        given = thing(executors__max=8, **places)
        self.seen = Seen(
            given,
            {("ConfigMap", "late-spec"): {}},
            (driver_pod(given), executor_pod(1), executor_pod(2)),
            {"shared": True},
        )
        self.seen, _ = settle(dataclasses.replace(self.seen, children={}))
        self.asked: list[int] = []
        self.load: Load | str | None = None  # instead of what is held

    def look(self, *, written: bool = True, asked: bool = True) -> Decision:
        """One look. `written`, `asked`: the operator lives on until after that."""
        reading = (
            Reading(0.0, error="down")
            if self.driver is None
            else running(executors={"ready": self.there, "wanted": self.driver, "leaving": 0})
        )
        seen = dataclasses.replace(self.seen, reading=reading, now=self.now, observed=None)
        view = view_of(seen)
        if is_due(view):
            k = max(self.there, 1)
            load = self.load or Load((self.held / k,) * k, (1000.0,) * k, 0, 1, 16)
            seen = dataclasses.replace(seen, observed=observed(view, load))
        decision = decide(seen, Config())
        if decision.executors is not None and asked and self.driver is not None:
            self.asked.append(decision.executors)
            self.driver = decision.executors
        if written:
            self.seen = dataclasses.replace(self.seen, thing={**seen.thing, "status": decision.status})
        return decision

    def period(self, **lives: bool) -> str:
        """Looks, lets pods come and go, looks again five seconds later; the phase then."""
        self.look(**lives)
        self.look(**lives)
        if self.driver is not None:
            self.there = min(self.driver, self.room)
        self.now += 5
        return str(self.scaling.get("phase"))

    @property
    def scaling(self) -> Object:
        return self.seen.thing["status"].get("scaling", {})

    def verdicts(self) -> list[str]:
        return [d["verdict"] for d in self.scaling["decisions"]]


def test_scales_out_and_in() -> None:
    """Votes, a change that is written down before it is asked for, rest; and back when the load has gone."""
    life = Life(held=1900)
    life.look()
    decision = life.look()
    assert (decision.executors, decision.status["scaling"]["votes"]) == (None, 1)
    life.now += 5
    decision = life.look()
    assert decision.status["scaling"]["phase"] == "Growing"
    assert decision.status["executors"]["wanted"] == 4
    assert decision.executors is None, "it is not yet written down"
    assert [e.reason for e in decision.events if e.reason == "ScaleOut"]
    assert life.look().executors == 4
    for _ in range(12):
        life.period()
    assert (life.there, life.scaling["phase"]) == (4, "Idle")
    life.held = 100
    for _ in range(20):
        life.period()
    assert (life.there, life.asked) == (2, [4, 2]), "min is 2"
    assert life.verdicts()[-1] == "AtLimit"


@pytest.mark.parametrize("lives", [{"written": False}, {"asked": False}, {"written": False, "asked": False}])
@pytest.mark.parametrize("when", range(8))
def test_an_operator_killed_at_any_moment(when: int, lives: dict[str, bool]) -> None:
    """Before it wrote, or after it wrote and before it asked, in each phase: the next one goes on, nothing is done twice."""
    life = Life(held=1900)
    for number in range(14):
        life.period(**(lives if number == when else {}))
    assert (life.there, life.driver, life.scaling["phase"]) == (4, 4, "Idle")
    assert set(life.asked) == {4}


def test_a_driver_that_restarts_amid_a_change() -> None:
    """It comes back with the minimum, is told again, and the change ends as it should."""
    life = Life(held=1900)
    life.room = 2
    for _ in range(3):
        life.period()
    assert life.scaling["phase"] == "Growing"
    life.driver = None
    for _ in range(10):
        assert life.period() == "Growing", "time stands still"
    life.driver, life.there, life.room = 2, 0, 16
    for _ in range(6):
        life.period()
    assert (life.there, life.scaling["phase"]) == (4, "Idle")


def test_pods_that_stay_pending() -> None:
    """Given up after the patience, said with a warning, tried again later."""
    life = Life(held=2900)
    life.room = 3
    warned = []
    for _ in range(9):
        warned += [e for e in life.look().events if e.type == "Warning"]
        life.period()
    assert [e.reason for e in warned] == ["RolledBack"]
    assert (life.driver, life.there) == (3, 3)
    life.room = 16
    for _ in range(14):
        life.period()
    assert (life.there, life.scaling["phase"]) == (5, "Idle")


def test_blind() -> None:
    """Nothing is done for as long as it lasts; the condition says why; a job that is blind from the beginning starts as usual."""
    life = Life(held=1900)
    life.load = "Prometheus cannot be asked: no route"
    for _ in range(10):
        life.period()
    assert (life.asked, life.there) == ([], 2)
    conditions = {c["type"]: c for c in life.seen.thing["status"]["conditions"]}
    assert conditions["MetricsAvailable"]["status"] == "False"
    assert conditions["MetricsAvailable"]["message"] == "Prometheus cannot be asked: no route"
    assert life.verdicts() == ["Blind"]
    life.load = None
    for _ in range(8):
        life.period()
    assert life.there == 4


def test_a_number_in_the_spec_wins() -> None:
    """kubectl scale; when it is taken out again, scaling goes on from there."""
    life = Life(held=1900, executors__instances=3)
    for _ in range(6):
        life.period()
    assert (life.there, life.verdicts()) == (3, ["Pinned"])
    spec = {**life.seen.thing["spec"], "executors": {**life.seen.thing["spec"]["executors"]}}
    del spec["executors"]["instances"]
    life.seen = dataclasses.replace(life.seen, thing={**life.seen.thing, "spec": spec})
    life.period()
    assert life.there == 3
    for _ in range(8):
        life.period()
    assert (life.there, life.verdicts()[-1]) == (3, "Steady")


def test_a_job_that_is_suspended_is_not_scaled() -> None:
    """What is remembered stays."""
    life = Life(held=1900)
    life.period()
    before = life.scaling
    spec = {**life.seen.thing["spec"], "suspend": True}
    life.seen = dataclasses.replace(life.seen, thing={**life.seen.thing, "spec": spec})
    life.now += 100
    life.period()
    assert life.scaling == before


def test_figures_of_scaling() -> None:
    """Every figure that the table promises of the operator, by namespace and name; none of a job that is gone."""
    life, scalings = Life(held=1900), Scalings()
    registry = CollectorRegistry()
    registry.register(scalings)
    for _ in range(3):
        before = life.seen.thing["status"]
        life.look()
        scalings.told(JOB, life.seen.thing, before, life.seen.thing["status"])
        life.now += 5
    text = generate_latest(registry).decode()
    for metric in METRICS:
        assert (f"{metric.name}{{" in text) == (metric.source == "operator"), metric.name
    job = {"namespace": "shop", "streamjoin": "late"}
    for name, labels, value in (
        ("executors", {}, 4),
        ("phase", {"phase": "Growing"}, 1),
        ("verdicts_total", {"verdict": "ScaleOut"}, 1),
        ("threshold", {"threshold": "high"}, 0.8),
    ):
        assert registry.get_sample_value(f"streamjoin_scaling_{name}", job | labels) == value
    scalings.forget(JOB)
    assert "late" not in generate_latest(registry).decode()
