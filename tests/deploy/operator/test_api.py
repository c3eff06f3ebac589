"""How the API server is asked: pages of a listing, an answer that says when to come again, what a watch
owes; and many jobs.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from joinop import names
from joinop.admission import judged
from joinop.api import Api, ApiError
from joinop.cache import ObjectCache
from joinop.config import Config
from joinop.controller import Controller
from joinop.driver_client import DriverClient
from joinop.liveness import LATE_S, Liveness
from joinop.metrics import OperatorMetrics
from joinop.names import JobKey, Object
from joinop.reconcile import Reconciler
from joinop.resources import CLAIM, STREAMJOIN, WATCHED

from tests.deploy.operator.apiserver import ApiServer
from tests.deploy.operator.objects import stream_join

SERVICE = next(kind for kind in WATCHED if kind.kind == "Service")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    with ApiServer().running() as found:
        monkeypatch.setenv("KUBECONFIG", str(found.config(tmp_path / "config", "operator")))
        yield found


def asking(what: Callable[[Api], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        api = await Api.connected()
        try:
            return await what(api)
        finally:
            await api.close()

    return asyncio.run(run())


def small(number: int) -> Object:
    return {"metadata": {"name": f"claim-{number}", "namespace": "shop"}}


def test_pages(server: ApiServer) -> None:
    """A listing comes whole, 500 objects at a time; what is in memory is asked for by the first page alone."""
    server.add(*map(small, range(1203)), kind=CLAIM)
    found = asking(lambda api: api.list(CLAIM, None, cached=True))

    assert sorted(each["metadata"]["name"] for each in found.items) == sorted(
        f"claim-{n}" for n in range(1203)
    )
    assert {each["kind"] for each in found.items} == {"PersistentVolumeClaim"}
    assert found.version == 1203
    assert [
        (a.query.get("limit"), a.query.get("continue"), a.query.get("resourceVersion")) for a in server.asked
    ] == [
        ("500", None, "0"),
        ("500", "500", None),
        ("500", "1000", None),
    ]


def test_a_page_that_expired(server: ApiServer) -> None:
    """The listing begins again, in one piece."""
    server.add(*map(small, range(3)), kind=CLAIM)
    server.refusals.append((410, {}))

    assert len(asking(lambda api: api.list(CLAIM, None)).items) == 3
    assert [a.query.get("limit") for a in server.asked] == ["500", None]


def test_a_busy_server_says_when(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry-After is waited for, within bounds; without it the pauses are short, and end."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("joinop.api.asyncio.sleep", sleep)
    server.refusals += [(429, {"Retry-After": "7"}), (429, {"Retry-After": "86400"})]
    asking(lambda api: api.list(CLAIM, None))
    assert slept == [7.0, 30.0]

    slept.clear()
    server.refusals += [(429, {}), (503, {"Retry-After": "Fri, 07 Nov 2036 23:59:59 GMT"}), (429, {})]
    with pytest.raises(ApiError, match="429"):
        asking(lambda api: api.list(CLAIM, None))
    assert slept == [0.5, 2.0]


def test_each_attempt_is_checked(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator that is replaced while it waits for a busy server does not repeat what it was to write."""

    async def sleep(_: float) -> None:
        pass

    allowed = iter([True])

    def check() -> None:
        if not next(allowed, False):
            raise RuntimeError("replaced")

    async def write() -> None:
        api = await Api.connected(check)
        try:
            await api.apply({"apiVersion": "v1", "kind": "Service", **small(1)})
        finally:
            await api.close()

    monkeypatch.setattr("joinop.api.asyncio.sleep", sleep)
    server.busy.append(503)
    with pytest.raises(RuntimeError, match="replaced"):
        asyncio.run(write())
    assert len(server.asked) == 1


def child(version: int, uid: str = "u") -> Object:
    metadata = {"name": "late-driver", "namespace": "shop", "uid": uid, "resourceVersion": str(version)}
    return {"kind": "Service", "metadata": {**metadata, "labels": names.labels("late", "driver")}, "spec": {}}


def test_an_old_listing() -> None:
    """An old list deletes nothing that is newer, and brings back nothing that was deleted since."""
    cache, late = ObjectCache(), JobKey("shop", "late")
    cache.put(SERVICE, child(7))
    assert cache.replace(SERVICE, None, [], 6) == []
    assert cache.children(late)

    cache.drop(SERVICE, child(9))
    assert cache.replace(SERVICE, None, [child(7)], 8) == []
    assert cache.put(SERVICE, child(8)) == late
    assert not cache.children(late)

    cache.put(SERVICE, child(10))  # it had lost its label, and has it again
    assert cache.children(late)
    assert len(cache.replace(SERVICE, None, [], 11)) == 1
    cache.replace(SERVICE, None, [], 12)
    assert cache == ObjectCache(_listed={"Service": 12}), "deletions are not remembered forever"


def test_a_write_that_no_watch_tells(server: ApiServer) -> None:
    """What the operator wrote must come back by the watch, or it is dead: nothing has to be listed to find
    out.
    """
    server.add(stream_join())
    liveness, cache, late = Liveness(), ObjectCache(), JobKey("shop", "late")
    liveness.begin(0.0)

    async def look(api: Api) -> None:
        reconciler = Reconciler(
            Config(), cache, api, DriverClient(), OperatorMetrics(), liveness, clock=lambda: 0.0
        )
        cache.put(STREAMJOIN, server.get("streamjoins", "shop", "late"))
        assert await reconciler.reconcile(late)
        await reconciler.drivers.close()

    asking(look)
    assert "streamjoins" in (liveness.failure(LATE_S + 1) or "")
    liveness.event_seen(STREAMJOIN, server.get("streamjoins", "shop", "late"), 1.0)
    assert liveness.failure(LATE_S + 1) is None


class Silent:
    """An API server that takes whatever is written."""

    def __init__(self) -> None:
        self.version = 1000

    async def apply_status(self, namespace: str, name: str, status: Object) -> Object:
        self.version += 1
        given = refused(int(name.removeprefix("job-")))
        return {
            **given,
            "metadata": given["metadata"] | {"resourceVersion": str(self.version)},
            "status": status,
        }

    async def create(self, event: Object) -> bool:
        return True


def refused(number: int) -> Object:
    return stream_join(f"job-{number}", sql="SELECT", checkpoint__path=f"/data/{number}")


def test_no_document_is_judged_where_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may take seconds. That of a job is another one when its status tells of its checkpoint, with the same spec."""
    where: list[threading.Thread] = []
    monkeypatch.setattr(
        "joinop.admission._confined", lambda text: where.append(threading.current_thread()) or judged(text)
    )
    cache = ObjectCache()
    reconciler = Reconciler(
        Config(), cache, cast(Api, Silent()), cast(DriverClient, None), OperatorMetrics(), Liveness()
    )
    job = refused(1001)
    for version, status in enumerate(({}, {"checkpoint": {"folder": "/data/1001", "fingerprint": "{}"}})):
        metadata = {**job["metadata"], "resourceVersion": str(1 + 5000 * version)}
        cache.put(STREAMJOIN, {**job, "metadata": metadata, "status": status})
        assert asyncio.run(reconciler.reconcile(JobKey("shop", "job-1001")))
    assert len(where) == 2
    assert threading.main_thread() not in where


@pytest.mark.slow
def test_a_thousand_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is judged once, though every look must know all rivals; a second round judges and writes
    nothing.
    """
    validated: list[str] = []
    monkeypatch.setattr("joinop.admission._confined", lambda text: validated.append(text) or judged(text))
    api, cache, liveness = Silent(), ObjectCache(), Liveness()
    reconciler = Reconciler(
        Config(), cache, cast(Api, api), cast(DriverClient, None), OperatorMetrics(), liveness
    )
    operator = Controller(reconciler, liveness)
    for number in range(1000):
        cache.put(STREAMJOIN, refused(number))
    operator.synced.set()

    async def round_() -> None:
        await operator.round()
        while len(operator.queue):
            each = await operator.queue.get()
            assert await reconciler.reconcile(each)
            operator.queue.done(each, failed=False)

    asyncio.run(round_())
    assert (len(validated), api.version) == (1000, 2000)
    asyncio.run(round_())
    assert (len(validated), api.version) == (1000, 2000)
