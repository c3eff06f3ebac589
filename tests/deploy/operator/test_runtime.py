"""Work queue, cache and liveness: many triggers make one reconciliation, old versions never replace new ones, and
a dead watch is noticed.
"""

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
from joinop.cache import ObjectCache
from joinop.config import Config
from joinop.driver_client import DriverClient
from joinop.liveness import LATE_S, SILENT_S, Liveness
from joinop.names import JobKey
from joinop.resources import STREAMJOIN, WATCHED
from joinop.workqueue import WorkQueue, pause_s

from joinlib.deploy import POD
from joinlib.scale import ExecutorRequest
from tests.deploy.operator.objects import driver_pod, stream_join

KEY = JobKey("shop", "late")
SERVICE = next(kind for kind in WATCHED if kind.kind == "Service")
ROOT = Path(__file__).parents[3]


def child(version: int, uid: str = "u") -> dict[str, Any]:
    metadata = {"name": "late-driver", "namespace": "shop", "uid": uid, "resourceVersion": str(version)}
    return {
        "metadata": {**metadata, "labels": names.labels("late", "driver"), "managedFields": [1]},
        "spec": {"v": version},
    }


def test_coalescing() -> None:
    """Triggers while a job is queued make one reconciliation; those while it is processed make one more."""

    async def run() -> list[int]:
        queue = WorkQueue()
        for _ in range(5):
            queue.add(KEY)
        sizes = [len(queue)]
        assert await queue.get() == KEY
        for _ in range(5):
            queue.add(KEY)
        sizes.append(len(queue))
        queue.done(KEY, failed=False)
        assert await queue.get() == KEY
        queue.done(KEY, failed=False)
        return [*sizes, len(queue)]

    assert asyncio.run(run()) == [1, 1, 0]


def test_failures_wait() -> None:
    """After a failure triggers wait for its time; a changed spec does not."""

    async def run() -> None:
        queue = WorkQueue()
        queue.add(KEY)
        await queue.get()
        queue.done(KEY, failed=True)
        queue.add(KEY)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 0.05)
        queue.add_now(KEY)
        assert await asyncio.wait_for(queue.get(), 1) == KEY
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
    """The cached version is never older than any delivered one, and a list is always right."""
    cache, dropped = ObjectCache(), dict[str, int]()
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
    """Jobs, their children and their pods are distinguished; objects of nobody are not cached."""
    cache = ObjectCache()
    stranger = {"metadata": {"name": "x", "namespace": "shop", "uid": "s"}}

    assert [
        cache.put(STREAMJOIN, stream_join()),
        cache.put(SERVICE, child(1)),
        cache.put(POD, driver_pod()),
    ] == [KEY] * 3
    assert cache.put(SERVICE, stranger) is None
    assert [len(cache.jobs()), len(cache.children(KEY)), len(cache.pods(KEY))] == [1, 1, 1]


def test_liveness() -> None:
    """A watch that has not delivered for a minute is dead, and so is an operator that lists nothing."""
    liveness = Liveness(0.0)
    liveness.expect(SERVICE, child(5), 0.0)
    assert liveness.failure(LATE_S) is None
    assert "services" in (liveness.failure(LATE_S + 1) or "")

    liveness.event_seen(SERVICE, child(4), 1.0)
    assert liveness.failure(LATE_S + 1) is not None
    liveness.event_seen(SERVICE, child(5), 1.0)
    assert liveness.failure(LATE_S + 1) is None
    assert liveness.failure(SILENT_S + 1) is not None


def talk(answer: web.Response) -> tuple[Any, Any]:
    """What the operator makes of a driver's answer."""

    async def run() -> tuple[Any, Any]:
        async def handler(request: web.Request) -> web.Response:
            if request.method == "POST":
                assert (await request.json(), request.headers["Authorization"]) == (
                    {"total": 3, "reason": "rows wait"},
                    "Bearer secret",
                )
            return web.Response(text=answer.text, status=answer.status)

        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        drivers = DriverClient(runner.addresses[0][1])
        try:
            pod = driver_pod(podIP="127.0.0.1")
            asked = ExecutorRequest(3, "rows wait")
            return await drivers.status(pod), await drivers.request_executors(pod, asked, "secret")
        finally:
            await drivers.close()
            await runner.cleanup()

    return asyncio.run(run())


def test_driver_answers() -> None:
    """A good answer is read, and a number of executors is heard."""
    scrape, problem = talk(web.Response(text='{"phase": "Running", "batch": 3}'))

    assert (scrape.phase, scrape.count("batch"), scrape.error, problem) == ("Running", 3, "", "")


@pytest.mark.parametrize("answer", ["", "[]", "{", "<html>"])
def test_driver_talks_nonsense(answer: str) -> None:
    """Nonsense is no reading, and no crash."""
    scrape, _ = talk(web.Response(text=answer))

    assert scrape.error
    assert scrape.body == {}


def test_driver_refuses() -> None:
    """A refusal is explained, without the token."""
    scrape, problem = talk(web.Response(status=400, text="3 is more than max"))

    assert scrape.error
    assert "3 is more than max" in problem
    assert "secret" not in problem + scrape.error


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


@pytest.mark.slow
@pytest.mark.parametrize("sign", ["=", "<"])
def test_lean(sign: str) -> None:
    """The operator plans any join without Spark, and without what only those need who touch rows."""
    code = """
import sys
from joinlib.lean import lean
lean()
from joinop import handlers
from joinop.admission import validate
verdict = validate({"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "x", "namespace": "y"},
  "spec": {"sql": "SELECT a.k FROM a JOIN b ON a.k SIGN b.k", "inputs": {n: {"schema": "k BIGINT", "generator": {}} for n in "ab"},
  "output": {"noop": {}}, "checkpoint": {"path": "/data/c"}, "volumes": [{"mountPath": "/data", "claim": "c"}]}})
print(verdict.plan.split()[0], sorted({"pyspark", "pandas", "numba", "llvmlite"} & set(sys.modules)))
"""
    assert python(code.replace("SIGN", sign)) == "result: []\n"


def test_no_module_of_the_operator_loads_numba() -> None:
    """It plans, and compiles no kernels: no compiler is loaded."""
    code = """
import pkgutil, sys
import joinop
for module in pkgutil.walk_packages(joinop.__path__, "joinop."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
print(sorted({"pyspark", "numba", "llvmlite"} & set(sys.modules)))
"""
    assert python(code) == "[]\n"


def test_standard_library_is_not_hidden() -> None:
    """The folder `operator` is no package: the standard library's module of that name is still found."""
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert python("import operator, joinop; print(operator.eq(1, 1))") == "True\n"
