"""Several operators, of which one acts: who takes over, when, and what a leader does that was away for too
long.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from joinop.api import Api
from joinop.driver_client import DriverClient
from joinop.leader import Leader
from joinop.resources import STREAMJOIN

from joinlib.lease import LATE_S, Contender
from joinlib.scale import ExecutorRequest
from tests.deploy.operator.apiserver import ApiServer
from tests.deploy.operator.conftest import ROOT
from tests.deploy.operator.objects import driver_pod, stream_join
from tests.patience import HUNG_S, until
from tests.unit.jobs.test_lease import Api as Leases
from tests.unit.jobs.test_lease import Clock

LEASE = "system/streamjoin-operator"


class Ended(Exception):
    """The process would be gone."""


def end(why: str) -> None:
    raise Ended(why)


@contextmanager
def operator(server: ApiServer, folder: Path, who: str) -> Iterator[subprocess.Popen[bytes]]:
    """An operator of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}",
        "KUBECONFIG": str(server.config(folder / f"{who}.yaml", who)),
        "JOINOP_LEASE": LEASE,
        "JOINOP_POD": who,
        "JOINOP_PORT": "0",
    }
    with (folder / f"{who}.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "joinop"], env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def holder(server: ApiServer) -> str:
    return server.get("leases", "system", "streamjoin-operator").get("spec", {}).get("holderIdentity", "")


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_frozen_leader_is_followed_and_does_nothing_when_it_wakes(tmp_path: Path) -> None:
    """The second one takes over when the Lease has lapsed, the third one at once when it is given back."""
    with ApiServer().running() as server, operator(server, tmp_path, "first") as first:
        server.add(stream_join("a", checkpoint__path="/data/a"))
        until(lambda: server.get("streamjoins", "shop", "a").get("status"), "the first one acts")
        with operator(server, tmp_path, "second") as second, operator(server, tmp_path, "third"):
            log = tmp_path / "second.log"
            until(lambda: "waiting to lead" in log.read_text(), "the second one waits")
            first.send_signal(signal.SIGSTOP)
            frozen = time.monotonic()
            server.add(stream_join("b", checkpoint__path="/data/b"))
            until(lambda: holder(server) in ("second", "third"), "another leads")
            assert time.monotonic() - frozen > LATE_S
            until(lambda: server.get("streamjoins", "shop", "b").get("status"), "it acts")

            server.add(
                stream_join("c", checkpoint__path="/data/c")
            )  # the first one has a watch that tells it
            woken = time.monotonic()
            first.send_signal(signal.SIGCONT)
            assert first.wait(HUNG_S) == 1
            assert server.changes("first", woken) == []
            assert "no longer leads" in (tmp_path / "first.log").read_text()

            leading = holder(server)
            assert server.changes({"second": "third", "third": "second"}[leading]) == [], (
                "who waits does nothing"
            )
            if leading == "second":
                second.send_signal(signal.SIGTERM)
                assert second.wait(HUNG_S) == 0
                until(lambda: holder(server) == "third", "the third one leads")


def test_nothing_is_sent_with_an_old_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes something asks first whether it may: requests to the API server, and what a driver is
    told. Reading goes on.
    """
    clock = Clock()
    contender = Contender(Leases(clock), "me", clock)
    assert contender.take()
    leader = Leader(contender, end)

    async def run(server: ApiServer) -> None:
        api, drivers = await Api.connected(leader.check), DriverClient(server.port, leader.check)
        try:
            await api.apply_status("shop", "late", {"phase": "Running"})
            clock.now += LATE_S + 0.1
            assert len((await api.list(STREAMJOIN, None)).items) == 1
            with pytest.raises(Ended):
                await api.apply_status("shop", "late", {"phase": "Failed"})
            with pytest.raises(Ended):
                await drivers.request_executors(
                    driver_pod(podIP="127.0.0.1"), ExecutorRequest(3, "rows wait"), "secret"
                )
        finally:
            await api.close()
            await drivers.close()

    with ApiServer().running() as server:
        monkeypatch.setenv("KUBECONFIG", str(server.config(tmp_path / "config", "me")))
        server.add(stream_join())
        asyncio.run(run(server))
        assert server.get("streamjoins", "shop", "late")["status"] == {"phase": "Running"}
        assert [a.method for a in server.asked] == ["PATCH", "GET"]


def test_election(tmp_path: Path) -> None:
    """Who leads renews in a thread of its own; who is refused a renewal ends; who resigns gives the Lease
    back.
    """
    clock = Clock()
    leases = Leases(clock)
    ended: list[str] = []
    leader = Leader(Contender(leases, "me", clock), ended.append)

    async def run() -> None:
        await leader.elected()
        assert leases.record is not None and leases.record.holder == "me"
        await leader.resign()
        assert leases.record.holder == ""

    asyncio.run(run())
    assert ended == []
