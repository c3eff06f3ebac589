"""The driver as the process that a pod runs, without a cluster: on this machine, with real signals and real HTTP."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.patience import HUNG_S
from tests.ports import free_port
from tests.unit.jobs.test_lineage import Catalogue, serving
from tests.unit.jobs.test_traces import HEADERS, SECRET, URL, Collector, attributes, requests, spans_of

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: driven}
spec:
  sql: SELECT a.k, a.v AS a, b.v AS b FROM a JOIN b ON a.k = b.k
  inputs:
    a: {schema: "k BIGINT, v STRING", generator: {rowsPerSecond: 500, keys: 100000}}
    b: {schema: "k BIGINT, v STRING", generator: {rowsPerSecond: 500, keys: 100000}}
  output: {files: {path: out, format: parquet}}
  page: {rows: 2}
  join: {units: 4}
  checkpoint: {path: checkpoint}
  executors: {min: 1, max: 3}
"""


@dataclass
class Driver:
    """A driver that runs in `folder`, in a process group of its own."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    def get(self, path: str) -> tuple[int, str]:
        """Status and text; 0: nobody listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=HUNG_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def post(self, total: int, token: str) -> int:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/executors",
            data=json.dumps({"total": total, "reason": "rows wait"}).encode(),
            headers={"Authorization": f"Bearer {token}"},
        )
        try:
            return urllib.request.urlopen(request, timeout=HUNG_S).status
        except urllib.error.HTTPError as error:
            return error.code

    def status(self) -> dict[str, Any]:
        return json.loads(self.get("/v1/status")[1])

    def metric(self, name: str) -> dict[tuple[str, ...], float]:
        families = text_string_to_metric_families(self.get("/metrics")[1])
        return {tuple(s.labels.values()): s.value for f in families for s in f.samples if s.name == name}

    def until(self, what: str, true: Any) -> None:
        end = time.monotonic() + HUNG_S
        while not true():
            assert self.process.poll() is None, f"ended before {what}:\n{self.log()[-3000:]}"
            assert time.monotonic() < end, f"no {what} in {HUNG_S} s:\n{self.log()[-3000:]}"
            time.sleep(0.3)

    def programs(self) -> str:
        """What runs in the driver's session."""
        listed = subprocess.run(
            ["ps", "-ww", "-o", "args=", "-s", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=True,
        )
        return listed.stdout

    def term(self) -> int:
        """To all of the group, as the container's first process does; the exit code."""
        os.killpg(self.process.pid, signal.SIGTERM)
        return self.process.wait(HUNG_S)

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def message(self) -> str:
        return (self.folder / "termination").read_text()


class Drivers:
    """Starts drivers in one folder, and ends what is left of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[Driver] = []

    def start(self, spec: str = SPEC, **more: str) -> Driver:
        (self.folder / "spec.yaml").write_text(spec)
        (self.folder / "token").write_text("secret\n")
        port = free_port()
        env = {
            **{k: v for k, v in os.environ.items() if k != "POD_NAME"},
            "PYTHONPATH": str(ROOT),
            "STREAMJOIN_PORT": str(port),
            "STREAMJOIN_TERMINATION_LOG": str(self.folder / "termination"),
            "STREAMJOIN_TOKEN_FILE": str(self.folder / "token"),
            "STREAMJOIN_LOCAL_DIR": str(self.folder),
            **more,
        }
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "jobs.driver", "spec.yaml"],
                cwd=self.folder,
                env=env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(Driver(self.folder, port, process))
        return self.started[-1]

    def end(self) -> None:
        for driver in self.started:
            if driver.process.poll() is None:
                os.killpg(driver.process.pid, signal.SIGKILL)
                driver.process.wait()


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[Drivers]:
    made = Drivers(tmp_path)
    yield made
    made.end()


def test_runs_says_so_stops_and_goes_on(drivers: Drivers) -> None:
    """Rows show in status and metrics; SIGTERM ends it between batches; the next run goes on after the last batch.

    A catalogue is told of it, and a collector of each batch; those that are away hold nothing up.
    """
    with serving(catalogue := Catalogue()) as url, serving(collector := Collector()) as traces:
        last = _runs_stops_and_goes_on(drivers, url, traces)
    spans = [span for _, _, request in requests(collector) for span in spans_of(request)]
    batches = [attributes(span)["streamjoin.batch"] for span in spans if not span.parent_span_id]
    assert sorted(batches) == [*range(len(batches))]
    assert last in batches
    told = [catalogue.taken.get_nowait()[2] for _ in range(catalogue.taken.qsize())]
    states = [event["eventType"] for event in told]
    assert (states[:2], states[-1], {*states}) == (
        ["START", "RUNNING"],
        "ABORT",
        {"START", "RUNNING", "ABORT"},
    )
    assert told[0]["outputs"][0]["name"] == str(drivers.folder / "out")


def _runs_stops_and_goes_on(drivers: Drivers, url: str, traces: str) -> int:
    """Return the last batch that the status of the first driver had."""
    login = {HEADERS: f"Authorization={SECRET}"}
    one = drivers.start(OPENLINEAGE_URL=url, **login, **{URL: traces})
    one.until("HTTP", lambda: one.get("/healthz")[0] == 200)
    one.until("readiness", lambda: one.get("/readyz")[0] == 200)
    one.until("rows", lambda: one.metric("streamjoin_rows_in_total").get(("a",), 0) > 0)
    one.until("a committed batch", lambda: one.status()["batch"] is not None and one.status()["lag"])
    assert "java" not in one.programs(), "on one machine batches do without Spark"
    said = one.status()
    assert (said["phase"], said["memoryLoad"]) == ("Running", None)
    assert said["rowsIn"] > 0
    assert said["stateRows"] > 0
    assert set(said["lag"]) == {"a", "b"}
    assert not one.metric("streamjoin_driver_heap_bytes")
    assert one.post(2, "wrong") == 401
    assert one.post(4, "secret") == 400
    assert one.post(2, "secret") == 200
    assert one.status()["executors"]["wanted"] == 2

    one.until("rows on the page", lambda: json.loads(one.get("/v1/page")[1])["last"])
    (shown,) = json.loads(one.get("/v1/page")[1])["last"]
    assert (shown["columns"], len(shown["rows"]) in (1, 2)) == (["k", "a", "b"], True)

    away = "http://127.0.0.1:9"  # nobody listens there
    two = drivers.start(OPENLINEAGE_URL=away, **login, **{URL: away})  # on the same checkpoint
    two.until("waiting", lambda: two.get("/healthz")[0] == 200 and "in use" in two.status()["message"])
    assert (two.status()["phase"], two.get("/readyz")[0]) == ("Waiting", 503)
    last = one.status()["batch"]
    assert one.term() == 0
    assert not (one.folder / "termination").exists()
    two.until("more batches", lambda: (two.status()["batch"] or 0) > last)
    assert two.metric("streamjoin_batch_seconds_count")[()] > 0
    two.until("rates", lambda: two.metric("streamjoin_true_rate") and two.metric("streamjoin_arrival_rate"))
    assert two.metric("streamjoin_true_rate")[()] > 0
    assert set(two.metric("streamjoin_arrival_rate")) == {("a",), ("b",)}
    assert two.term() == 0
    for things in ("events", "traces"):
        assert two.log().count(f"{things} are lost until it takes them") == 1
    assert SECRET not in two.log()
    batches = {int(f.name.partition("=")[2]) for f in (drivers.folder / "out").glob("batch=*")}
    assert max(batches) > last
    return int(last)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (SPEC.replace("b.v AS b", "b.w AS b"), "b has no column w"),
        (SPEC.replace("output:", "outptu:"), "unknown field"),
        (SPEC.replace("{path: checkpoint}", "{path: /proc/checkpoint}"), "must be writable"),
    ],
)
def test_a_mistake_of_the_user_is_one_line(drivers: Drivers, spec: str, says: str) -> None:
    """Exit code 2, before Spark starts; the line is where Kubernetes shows it."""
    driver = drivers.start(spec)
    assert driver.process.wait(HUNG_S) == 2
    assert says in driver.message()
    assert driver.message().count("\n") == 1
    assert "Traceback" not in driver.message()


def test_asked_to_stop_while_it_waits(drivers: Drivers) -> None:
    """Nothing has begun that must be brought to an end."""
    from joinlib.checkpoint.lock import Lock

    lock = Lock(drivers.folder / "checkpoint")
    driver = drivers.start()
    driver.until("waiting", lambda: driver.get("/healthz")[0] == 200)
    assert driver.term() == 0
    lock.release()
