"""Scaling as the operator does it: figures from a Prometheus with every fault, a memory in the status, an
operator that is killed.

Prometheus and driver are real HTTP servers on ports of their own; time is given.
"""

import asyncio
import dataclasses
import json
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from joinop import load_metrics, persist
from joinop.config import Config
from joinop.decide import DesiredState, ObservedState, decide, view_of
from joinop.driver_client import DriverClient
from joinop.names import JobKey, Object
from joinop.prometheus import Prometheus
from joinop.scaling_metrics import ScalingMetrics
from joinop.scrape import Scrape
from joinop.status import is_due, scaling_input
from prometheus_client import CollectorRegistry, generate_latest

from joinlib.metric.table import BY_NAME, METRICS
from joinlib.scale import Load, Observed, State, step
from joinlib.spec.status import Status
from tests import configs, prometheus
from tests.deploy.operator.objects import driver_pod, executor_pod, running, settle, stream_join

JOB = JobKey("shop", "late")
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
        series("streamjoin_arrival_rate", "12", at, input="orders", **target),
        series("streamjoin_true_rate", "40", at, **target),
    ]


def without(name: str, **labels: str) -> list[Object]:
    return [
        s
        for s in scrape(NOW)
        if not (s["metric"]["__name__"] == name and labels.items() <= s["metric"].items())
    ]


def counted(number: str) -> list[Object]:
    return [*without("streamjoin_executors"), series("streamjoin_executors", number, NOW, state="ready")]


# --- figures, as a real Prometheus adds them up --------------------------------------------------------------------------

COMPLETE = Load(2, 1800, 2000, lag=0, rate=10, arrival=12, true_rate=40)
BEFORE = scrape(NOW - 5, executors=4, held="7", instance="10.0.0.9:7070")
GONE = series("streamjoin_executor_state_bytes", "5000", NOW - 5, executor="3")
CASES: dict[str, tuple[list[Object], Load | str]] = {
    "complete": (scrape(NOW), COMPLETE),
    "empty": ([], "no figures of this job"),
    "not-counted": (without("streamjoin_executors"), "no figures of this job"),
    "one-silent": (without("streamjoin_executor_state_bytes", executor="2"), "1 of 2"),
    "one-without-capacity": (without("streamjoin_executor_capacity_bytes", executor="2"), "1 of 2"),
    "all-silent": (without("streamjoin_executor_state_bytes"), "0 of 2"),
    "nan": (scrape(NOW, held="NaN"), "0 of 2"),
    "infinite": (scrape(NOW, held="+Inf"), "0 of 2"),
    "negative": (scrape(NOW, held="-1"), "0 of 2"),
    "no-executor": (scrape(NOW, executors=0), "no executor"),
    "too-few": (counted("3"), "2 of 3"),
    "too-many": (counted("1"), "2 of 1"),
    "stale": (scrape(NOW - 150), "old"),
    "executor-gone": ([*scrape(NOW), GONE], COMPLETE),
    "driver-replaced": ([*scrape(NOW), *BEFORE], COMPLETE),
    "lag-of-one-input": (
        [*scrape(NOW), series("streamjoin_input_rate", "10", NOW, input="shipments")],
        replace(COMPLETE, lag=None, rate=20),
    ),
    "silent-input": (
        [*scrape(NOW), series("streamjoin_input_rate", "0", NOW, input="shipments")],
        COMPLETE,
    ),
    "all-inputs-silent": (
        [
            *(
                s
                for s in without("streamjoin_lag_rows")
                if s["metric"]["__name__"] != "streamjoin_input_rate"
            ),
            series("streamjoin_input_rate", "0", NOW, input="orders"),
        ],
        replace(COMPLETE, rate=0),
    ),
    "arrivals-of-two": (
        [*scrape(NOW), series("streamjoin_arrival_rate", "5", NOW, input="shipments")],
        replace(COMPLETE, arrival=17),
    ),
    "older-driver": (
        [s for s in without("streamjoin_true_rate") if s["metric"]["__name__"] != "streamjoin_arrival_rate"],
        replace(COMPLETE, arrival=None, true_rate=None),
    ),
    "lag-is-nan": (scrape(NOW, lag="NaN"), replace(COMPLETE, lag=None)),
    "no-lag": (without("streamjoin_lag_rows"), replace(COMPLETE, lag=None)),
}


def exposed(found: list[Object], later: float, **labels: str) -> list[str]:
    """Lines of OpenMetrics, with their times."""
    lines = []
    for each in found:
        metric = {**each["metric"], **labels}
        name = metric.pop("__name__")
        inner = ",".join(f'{k}="{v}"' for k, v in sorted(metric.items()))
        lines += [f"{name}{{{inner}}} {value} {at + later:.3f}" for at, value in each["values"]]
    return sorted(lines)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[prometheus.Prometheus]:
    """A Prometheus that has all cases, each as a job."""
    folder = tmp_path_factory.mktemp("kept")
    later = time.time() - NOW
    each = (exposed(found, later, streamjoin=name) for name, (found, _) in CASES.items())
    lines = sorted(line for lines in each for line in lines)
    (folder / "figures").write_text("\n".join([*lines, "# EOF", ""]))
    made = [prometheus.program("promtool"), "tsdb", "create-blocks-from", "openmetrics", "figures", "data"]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    with prometheus.running(folder, {"scrape_configs": []}) as running:
        yield running


@pytest.mark.parametrize("name", CASES)
def test_what_prometheus_adds_up(name: str, kept: prometheus.Prometheus) -> None:
    """Missing, not a number, too few, too many, old, of another driver: no load is made of it, and the
    reason is said.
    """

    async def run() -> Load | str:
        one = Prometheus(kept.url)
        try:
            return await one.load(JobKey("shop", name), fresh_s=120)
        finally:
            await one.close()

    found, wanted = asyncio.run(run()), CASES[name][1]
    assert (wanted in str(found)) if isinstance(wanted, str) else found == wanted


@pytest.mark.parametrize(
    "name", [n for n, (_, said) in CASES.items() if said != "old" and n != "driver-replaced"]
)
def test_the_driver_says_the_same(name: str) -> None:
    """Without a Prometheus the same figures are read from /metrics, with the same result."""
    newest = [each for each in CASES[name][0] if each["values"][-1][0] == NOW]
    lines = []
    for each in newest:
        labels = {k: v for k, v in each["metric"].items() if k not in {*TARGET, "__name__"}}
        inner = "".join(f'{{{k}="{v}"}}' for k, v in labels.items())  # one at most
        lines.append(f"{each['metric']['__name__']}{inner} {each['values'][-1][1]}")
    found, wanted = load_metrics.load(load_metrics.from_text("\n".join(lines) + "\n")), CASES[name][1]
    if isinstance(wanted, str):
        assert isinstance(found, str)
        assert wanted in found or "missing" in found
    else:
        assert found == wanted


def test_every_figure_that_is_asked_for_is_in_the_table() -> None:
    """And has at most one label of its own; names of jobs cannot leave their quotes."""
    assert all(len(BY_NAME[name].labels) <= 1 for name in load_metrics.NEEDED)
    assert all(name in load_metrics.query(JOB) for name in load_metrics.NEEDED)
    assert r'streamjoin="a\"b"' in load_metrics.query(JobKey("shop", 'a"b'))


def answer(*found: Object) -> Object:
    return {"status": "success", "data": {"resultType": "vector", "result": list(found)}}


def added_up(at: float, **figures: float | str) -> Object:
    """Prometheus' answer to the query."""
    known = {
        "at": at,
        "ready": 2,
        "reported": 2,
        "known": 2,
        "held": 1800,
        "capacity": 2000,
        "lag": 0,
        "rate": 10,
    }
    found = {**known, **figures}
    return answer(*({"metric": {"figure": k, **TARGET}, "value": [at, str(v)]} for k, v in found.items()))


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"status": "error", "error": "out of order"},
        {"status": "success"},
        {"status": "success", "data": {"resultType": "matrix", "result": []}},
        answer({"metric": {}, "value": []}),
        answer({"metric": {"figure": "held"}, "value": [1]}),
        answer({"metric": {"figure": "held"}, "value": [1, "x"]}),
        {"status": "success", "data": {"resultType": "vector", "result": None}},
    ],
)
def test_answers_that_are_none(said: Object) -> None:
    """A word, never a crash."""
    with pytest.raises(ValueError, match=r"."):
        load_metrics.from_prometheus(said)


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
            one = Prometheus(f"http://127.0.0.1:{port}/", token)
            try:
                return await one.load(JOB, fresh_s)
            finally:
                await one.close()

    return asyncio.run(run())


def says(body: Any, status: int = 200) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        said = body() if callable(body) else body
        text = said if isinstance(said, str) else json.dumps(said)
        return web.Response(text=text, status=status, content_type="application/json")

    return handler


def test_a_prometheus_that_works(tmp_path: Path) -> None:
    """It gets the query and the token; the token is read again each time and is in no answer."""
    got: dict[str, str] = {}

    async def handler(request: web.Request) -> web.Response:
        got["query"] = str((await request.post())["query"])
        got["authorization"] = request.headers.get("Authorization", "")
        return web.json_response(added_up(time.time()))

    (tmp_path / "token").write_text("secret\n")
    assert isinstance(ask(handler, token=tmp_path / "token"), Load)
    assert got == {"query": load_metrics.query(JOB), "authorization": "Bearer secret"}


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (says(answer()), "no figures of this job"),
        (says("<html>", 502), "502"),
        (says("<html>"), "not an answer"),
        (says([1]), "not an answer"),
        (says({"status": "error", "error": "query timed out"}, 422), "query timed out"),
        (says("{}", 401), "401"),
        (says(lambda: added_up(time.time() - 60)), "old"),
        (says(lambda: added_up(time.time(), known=0)), "0 of 2"),
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
        one = Prometheus("http://127.0.0.1:9")
        try:
            return await one.load(JOB, 10)
        finally:
            await one.close()

    found = asyncio.run(run())
    assert isinstance(found, str)
    assert found.startswith("Prometheus cannot be queried")


def test_a_driver_with_large_figures() -> None:
    """All of it is read, however many parts it comes in."""
    text = "".join(f'x{{i="{i}"}} 1\n' for i in range(20_000)) + "\n".join(
        ['streamjoin_executors{state="ready"} 1']
        + [f'streamjoin_executor_{n}_bytes{{executor="1"}} 5' for n in ("state", "capacity")]
    )

    async def run() -> Load | str:
        async with serving(says(text + "\n"), "/metrics") as port:
            drivers = DriverClient(port)
            try:
                pod = {"status": {"podIP": "127.0.0.1"}}
                return await drivers.load(pod)
            finally:
                await drivers.close()

    assert asyncio.run(run()) == Load(1, 5, 5)


# --- the memory in the status --------------------------------------------------------------------------------------------

POLICY = configs.policy(min=1, max=16, votes=2, period_s=5, cool_s=5, patience_s=20)


@given(
    st.lists(
        st.one_of(
            st.builds(
                lambda k, held: Observed(k, 0, Load(k, held, k * 1000.0, 0, 1)),
                st.integers(1, 8),
                st.integers(0, 9000),
            ),
            st.builds(
                lambda k, lag, arrival, rate: Observed(
                    k, 0, Load(k, 1.0, k * 1000.0, lag, rate, arrival, rate)
                ),
                st.integers(1, 8),
                st.integers(0, 10**7),
                st.floats(0, 1e5),
                st.floats(0, 1e5),
            ),
            st.builds(lambda r: Observed(r, 1, None, "down"), st.none() | st.integers(0, 8)),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_what_is_written_is_read_as_it_was(observed: list[Observed]) -> None:
    """So an operator that is killed after any period goes on as if it had not been; and the kind allows
    what is written.
    """
    state = State(wanted=2)
    for number, moment in enumerate(observed):
        state = step(state, POLICY, moment, NOW + 5 * number)
        text = json.loads(json.dumps(persist.to_status(state)))
        Status.model_validate({"scaling": text})
        again = persist.from_status({"scaling": text})
        assert persist.to_status(again) == text
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
        {"wanted": 3, "learnt": {"able": "fast"}},
        {"wanted": 3, "wants": {"by": "moon", "state": 1, "why": ""}},
    ],
)
def test_a_memory_that_cannot_be_read_is_forgotten(scaling: Any) -> None:
    """Scaling starts over, from the desired number of executors."""
    assert persist.from_status({"executors": {"wanted": 3}, "scaling": scaling}) == State(wanted=3)


def test_a_memory_of_an_older_operator_goes_on() -> None:
    """It has no figures of the lag."""
    text = {
        "wanted": 3,
        "phase": "Growing",
        "before": 2,
        "votes": 0,
        "most": 0,
        "blind": False,
        "decisions": [],
    }
    assert persist.from_status({"scaling": text}) == State(wanted=3, phase="Growing", before=2)


# --- the operator --------------------------------------------------------------------------------------------------------


def moment(seconds: float) -> str:
    """As the API server writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


class Life:
    """A job whose driver does what it is told, looked at by operators that may be killed between any two
    writes.
    """

    def __init__(self, held: float, **spec: Any) -> None:
        places = {"scaling__period": "5s", "scaling__votes": 2, "scaling__patience": "20s", **spec}
        self.held, self.now = held, NOW
        self.driver: int | None = 2  # executors that the driver wants; None: there is none
        self.there = 2
        self.room = 16
        given = stream_join(executors__max=8, **places)
        self.observed = ObservedState(
            given,
            {("ConfigMap", "late-spec"): {}},
            (driver_pod(given), executor_pod(1), executor_pod(2)),
            {"shared": True},
            at=moment(NOW),
        )
        self.observed, _ = settle(dataclasses.replace(self.observed, children={}))
        self.asked: list[int] = []
        self.load: Load | str | None = None  # instead of what is held

    def look(self, *, written: bool = True, asked: bool = True) -> DesiredState:
        """One reconciliation. `written`, `asked`: whether the operator lives until after that."""
        scrape = (
            Scrape(0.0, error="down")
            if self.driver is None
            else running(executors={"ready": self.there, "wanted": self.driver, "leaving": 0, "spare": 0})
        )
        observed = dataclasses.replace(
            self.observed, scrape=scrape, now=self.now, at=moment(self.now), scaling_input=None
        )
        view = view_of(observed, Config())
        if is_due(view):
            k = max(self.there, 1)
            load = self.load or Load(k, self.held, k * 1000.0, 0, 1)
            observed = dataclasses.replace(observed, scaling_input=scaling_input(view, load))
        decision = decide(observed, Config())
        if decision.executors is not None and asked and self.driver is not None:
            self.asked.append(decision.executors.total)
            self.driver = decision.executors.total
        if written:
            self.observed = dataclasses.replace(
                self.observed, stream_join={**observed.stream_join, "status": decision.status}
            )
        return decision

    def period(self, **lives: bool) -> str:
        """Reconcile, let pods come and go, reconcile five seconds later; return the phase then."""
        self.look(**lives)
        self.look(**lives)
        if self.driver is not None:
            self.there = min(self.driver, self.room)
        self.now += 5
        return str(self.scaling.get("phase"))

    @property
    def scaling(self) -> Object:
        return self.observed.stream_join["status"].get("scaling", {})

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
    asked = life.look().executors
    assert asked is not None
    assert (asked.total, asked.reason) == (4, "τ 0.95 is over 0.8 (ScaleOut at 2025-10-09T08:53:25Z)")
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
    """Before it wrote, or after it wrote and before it asked, in each phase: the next one goes on, nothing
    is done twice.
    """
    life = Life(held=1900)
    for number in range(14):
        life.period(**(lives if number == when else {}))
    assert (life.there, life.driver, life.scaling["phase"]) == (4, 4, "Idle")
    assert set(life.asked) == {4}


def test_a_driver_that_restarts_amid_a_change() -> None:
    """It comes back with the minimum, gets the request again, and the change ends as it should."""
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


def test_a_backlog() -> None:
    """With little state: executors come for the rows that wait, the status says which want it was and why; they go when the
    rows have gone.
    """
    life = Life(held=10)
    life.load = Load(2, 10, 2000, lag=90_000, rate=50, arrival=200, true_rate=100)
    for _ in range(2):
        life.look()
        life.look()
        life.now += 5
    wants = life.scaling["wants"]
    assert (wants["by"], wants["state"], wants["lag"], life.scaling["wanted"]) == ("lag", 1, 13, 8)
    assert wants["why"].startswith("90000 rows wait and 200/s come, 2 executors read 100/s and will never")
    assert life.scaling["backlog"] == {"rows": 90_000, "arrival": "200.000", "rate": "100.000"}
    life.load = Load(8, 10, 8000, lag=0, rate=50, arrival=50, true_rate=50)
    for _ in range(20):
        life.period()
        life.load = replace(life.load, executors=max(life.there, 1))
    assert (life.there, life.asked) == (2, [8, 4, 2])


def test_advice() -> None:
    """Nothing is asked of the driver; status, condition and one event say what it would be."""
    life = Life(held=1900, scaling__mode="advise")
    told = []
    for _ in range(5):
        told += [e for e in life.look().events if e.reason == "Advised"]
        life.period()
    assert (life.asked, life.there, life.scaling["wanted"], life.scaling["advised"]) == ([], 2, 2, 4)
    assert [e.message for e in told] == ["τ 0.95 is over 0.8; 4 executors instead of 2 are advised"]
    conditions = {c["type"]: c for c in life.observed.stream_join["status"]["conditions"]}
    assert (conditions["Scaling"]["status"], conditions["Scaling"]["reason"]) == ("False", "Advised")
    assert conditions["Scaling"]["message"].startswith("4 executors are advised (spec.scaling.mode): τ 0.95")


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
    """Nothing is done for as long as it lasts; the condition says why; a job that is blind from the
    beginning starts as usual.
    """
    life = Life(held=1900)
    life.load = "Prometheus cannot be queried: no route"
    for _ in range(10):
        life.period()
    assert (life.asked, life.there) == ([], 2)
    conditions = {c["type"]: c for c in life.observed.stream_join["status"]["conditions"]}
    assert conditions["MetricsAvailable"]["status"] == "False"
    assert conditions["MetricsAvailable"]["message"] == "Prometheus cannot be queried: no route"
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
    spec = {
        **life.observed.stream_join["spec"],
        "executors": {**life.observed.stream_join["spec"]["executors"]},
    }
    del spec["executors"]["instances"]
    life.observed = dataclasses.replace(
        life.observed, stream_join={**life.observed.stream_join, "spec": spec}
    )
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
    spec = {**life.observed.stream_join["spec"], "suspend": True}
    life.observed = dataclasses.replace(
        life.observed, stream_join={**life.observed.stream_join, "spec": spec}
    )
    life.now += 100
    life.period()
    assert life.scaling == before


def test_figures_of_scaling() -> None:
    """Every figure that the table promises of the operator, by namespace and name; none of a job that is
    gone.
    """
    life, scalings = Life(held=1900), ScalingMetrics()
    registry = CollectorRegistry()
    registry.register(scalings)
    for _ in range(3):
        before = life.observed.stream_join["status"]
        life.look()
        scalings.status_written(JOB, life.observed.stream_join, before, life.observed.stream_join["status"])
        life.now += 5
    advised, other = Life(held=10, scaling__mode="advise"), JobKey("shop", "other")
    advised.load = Load(2, 10, 2000, lag=90_000, rate=50, arrival=50, true_rate=100)
    for _ in range(4):
        advised.period()
    now = advised.observed.stream_join
    scalings.status_written(other, now, {}, now["status"])
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
    job = {"namespace": "shop", "streamjoin": "other"}
    for name, labels, value in (
        ("wants", {"by": "lag"}, 9),
        ("wants", {"by": "state"}, 1),
        ("catch_up_seconds", {}, 1800),
        ("executor_rate", {}, 50),
        ("advised_executors", {}, 8),
    ):
        assert registry.get_sample_value(f"streamjoin_scaling_{name}", job | labels) == value
    scalings.forget(JOB)
    assert "late" not in generate_latest(registry).decode()


def test_another_number_of_partitions_is_an_event() -> None:
    """In the status, and once as an event."""
    given = stream_join()
    observed, _ = settle(ObservedState(given, {}, (driver_pod(given),), at="2026-01-01T00:00:00Z"))

    def looked(observed: ObservedState, **said: Any) -> tuple[ObservedState, DesiredState]:
        return settle(dataclasses.replace(observed, scrape=running(**said)))

    observed, first = looked(observed, partitions=2)
    assert first.status["executors"]["partitions"] == 2
    observed, after = looked(observed, partitions=4)
    assert (after.status["executors"]["partitions"], after.status["message"]) == (4, "the driver runs")
    told = [(e.reason, e.message) for each in (first, after) for e in each.events]
    assert told.count(("Repartitioned", "2 -> 4 partitions, tasks that join at once")) == 1
    _, restarted = settle(dataclasses.replace(observed, scrape=None))
    assert "partitions" not in restarted.status["executors"]
