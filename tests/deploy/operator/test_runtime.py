"""Queue, cache and pulse: many triggers are one look, old news never replace new, a dead watch is noticed."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from joinop import names
from joinop.cache import Cache
from joinop.config import Config
from joinop.driver import Drivers
from joinop.kinds import POD, STREAMJOIN, WATCHED
from joinop.names import Key
from joinop.pulse import LATE_S, SILENT_S, Pulse
from joinop.workqueue import WorkQueue, pause_s

from tests.deploy.operator.things import driver_pod, thing

KEY = Key("shop", "late")
SERVICE = next(kind for kind in WATCHED if kind.kind == "Service")
ROOT = Path(__file__).parents[3]


def child(version: int, uid: str = "u") -> dict[str, Any]:
    metadata = {"name": "late-driver", "namespace": "shop", "uid": uid, "resourceVersion": str(version)}
    return {
        "metadata": {**metadata, "labels": names.labels("late", "driver"), "managedFields": [1]},
        "spec": {"v": version},
    }


def test_coalescing() -> None:
    """Triggers while a job waits are one look, those while it is looked at are one more."""

    async def run() -> list[int]:
        queue = WorkQueue()
        for _ in range(5):
            queue.add(KEY)
        sizes = [len(queue)]
        assert await queue.take() == KEY
        for _ in range(5):
            queue.add(KEY)
        sizes.append(len(queue))
        queue.done(KEY, failed=False)
        assert await queue.take() == KEY
        queue.done(KEY, failed=False)
        return [*sizes, len(queue)]

    assert asyncio.run(run()) == [1, 1, 0]


def test_failures_wait() -> None:
    """After a failure triggers wait for its time; a changed spec does not."""

    async def run() -> None:
        queue = WorkQueue()
        queue.add(KEY)
        await queue.take()
        queue.done(KEY, failed=True)
        queue.add(KEY)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.take(), 0.05)
        queue.hurry(KEY)
        assert await asyncio.wait_for(queue.take(), 1) == KEY
        queue.done(KEY, failed=False)
        assert (len(queue), queue.failures) == (0, {})

    asyncio.run(run())
    assert [pause_s(failures) for failures in (1, 2, 3, 7, 1000)] == [1, 2, 4, 60, 60]


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "drop"]), st.integers(1, 4), st.sampled_from("uv")), max_size=8
    )
)
def test_cache_keeps_the_newest(steps: list[tuple[str, int, str]]) -> None:
    """What is kept is never older than what was heard of the same object, and a listing is always right."""
    cache, dropped = Cache(), dict[str, int]()
    for verb, version, uid in steps:
        before = cache.children(KEY).get(("Service", "late-driver"))
        getattr(cache, verb)(SERVICE, child(version, uid))
        after = cache.children(KEY).get(("Service", "late-driver"))
        dropped[uid] = max(dropped.get(uid, 0), version) if verb == "drop" else dropped.get(uid, 0)
        if verb == "put" and version > dropped[uid]:
            assert after is not None
            assert before is None or int(after["metadata"]["resourceVersion"]) >= int(
                before["metadata"]["resourceVersion"]
            )
            assert "managedFields" not in after["metadata"]

    cache.replace(SERVICE, None, [child(9, "w")], 9)
    assert cache.children(KEY)["Service", "late-driver"]["spec"] == {"v": 9}
    assert len(cache.replace(SERVICE, "shop", [], 10)) == 1
    assert cache.parts == {}


def test_cache_knows_whose() -> None:
    """Jobs, their children and their pods are told apart; what belongs to nobody is not kept."""
    cache = Cache()
    stranger = {"metadata": {"name": "x", "namespace": "shop", "uid": "s"}}

    assert [cache.put(STREAMJOIN, thing()), cache.put(SERVICE, child(1)), cache.put(POD, driver_pod())] == [
        KEY
    ] * 3
    assert cache.put(SERVICE, stranger) is None
    assert [len(cache.jobs()), len(cache.children(KEY)), len(cache.pods(KEY))] == [1, 1, 1]


def test_pulse() -> None:
    """A watch that owes something for a minute is dead, as is an operator that lists nothing."""
    pulse = Pulse(0.0)
    pulse.missed(SERVICE, child(5), 0.0)
    assert pulse.illness(LATE_S) is None
    assert "services" in (pulse.illness(LATE_S + 1) or "")

    pulse.told(SERVICE, child(4), 1.0)
    assert pulse.illness(LATE_S + 1) is not None
    pulse.told(SERVICE, child(5), 1.0)
    assert pulse.illness(LATE_S + 1) is None
    assert pulse.illness(SILENT_S + 1) is not None


def talk(answer: web.Response) -> tuple[Any, Any]:
    """What the operator makes of a driver's answer."""

    async def run() -> tuple[Any, Any]:
        async def handler(request: web.Request) -> web.Response:
            if request.method == "POST":
                assert (await request.json(), request.headers["Authorization"]) == (
                    {"total": 3},
                    "Bearer secret",
                )
            return web.Response(text=answer.text, status=answer.status)

        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        drivers = Drivers(runner.addresses[0][1])
        try:
            pod = driver_pod(podIP="127.0.0.1")
            return await drivers.read(pod), await drivers.ask(pod, 3, "secret")
        finally:
            await drivers.close()
            await runner.cleanup()

    return asyncio.run(run())


def test_driver_answers() -> None:
    """A good answer is read, and a number of executors is heard."""
    reading, problem = talk(web.Response(text='{"phase": "Running", "batch": 3}'))

    assert (reading.phase, reading.count("batch"), reading.error, problem) == ("Running", 3, "", "")


@pytest.mark.parametrize("answer", ["", "[]", "{", "<html>"])
def test_driver_talks_nonsense(answer: str) -> None:
    """Nonsense is no reading, and no crash."""
    reading, _ = talk(web.Response(text=answer))

    assert reading.error
    assert reading.body == {}


def test_driver_refuses() -> None:
    """A refusal is told, without the token."""
    reading, problem = talk(web.Response(status=400, text="3 is more than max"))

    assert reading.error
    assert "3 is more than max" in problem
    assert "secret" not in problem + reading.error


def test_config() -> None:
    """The environment is read, and blanks are as good as nothing."""
    found = Config.of(
        {"JOINOP_NAMESPACES": "a, b,", "JOINOP_IMAGE": "i:1", "JOINOP_CPU_REQUEST": " ", "PATH": "x"}
    )

    assert (found.namespaces, found.image, found.cpu_request, found.port) == (("a", "b"), "i:1", None, 8080)
    assert Config.of({"JOINOP_NAMESPACES": ""}).namespaces == ()


def python(code: str) -> str:
    command = [sys.executable, "-c", code]
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}"}
    return subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("sign", ["=", "<"])
def test_lean(sign: str) -> None:
    """The operator plans any join without Spark, and without what only those need who touch rows."""
    code = """
import sys
from joinop.lean import lean
lean()
from joinop import handlers
from joinop.judge import judge
verdict = judge({"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "x", "namespace": "y"},
  "spec": {"sql": "SELECT a.k FROM a JOIN b ON a.k SIGN b.k", "inputs": {n: {"schema": "k BIGINT", "generator": {}} for n in "ab"},
  "output": {"noop": {}}, "checkpoint": {"path": "/data/c"}, "volumes": [{"mountPath": "/data", "claim": "c"}]}})
print(verdict.plan.split()[0], sorted({"pyspark", "pandas", "llvmlite", "kubernetes"} & set(sys.modules)))
"""
    assert python(code.replace("SIGN", sign)) == "Inputs []\n"


def test_standard_library_is_not_hidden() -> None:
    """The folder `operator` is no package: the standard library's module of that name is still found."""
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert python("import operator, joinop; print(operator.eq(1, 1))") == "True\n"
