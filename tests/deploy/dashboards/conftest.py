"""A real run, watched by a real Prometheus: a driver on this machine, and a stand-in for executors and the operator."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml
from joinop.names import JobKey

from tests import configs, prometheus
from tests.deploy.chart.conftest import helm, render  # noqa: F401 - fixtures
from tests.deploy.dashboards import drawing, standin
from tests.deploy.dashboards.boards import ALERTS, ROOT
from tests.postgres.database import PASSWORD, Database
from tests.spark.faults import processes
from tests.spark.test_driver import Driver, Drivers

EXAMPLE = ROOT / "manifests" / "examples" / "06-hot-keys.yaml"
KEY = JobKey("default", "hot-keys")
POLICY = configs.policy(min=2, max=8, votes=3, period_s=1.0, cool_s=3.0, patience_s=20.0)
_ONLY_TABLES = {  # the rest is the other driver's
    "source_labels": ["__name__"],
    "regex": "streamjoin_(table_.*|route_skew)",
    "action": "keep",
}
_THIRD = """JOIN orders o ON v.customer_id = o.customer_id
 AND o.ordered_at BETWEEN v.viewed_at - INTERVAL 20 SECONDS AND v.viewed_at + INTERVAL 20 SECONDS"""
LASTS_S = 36  # of the run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They share one run."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("dashboards"))


@dataclass(frozen=True)
class Watched:
    """A run of some time, and where its figures are."""

    prometheus: prometheus.Prometheus
    begin: float
    end: float


def example() -> dict[str, Any]:
    """Its StreamJoin; the claim before it is for a cluster."""
    (thing,) = (d for d in yaml.safe_load_all(EXAMPLE.read_text()) if d["kind"] == "StreamJoin")
    return dict(thing)


def applied() -> dict[str, Any]:
    """The example, as the cluster has it."""
    thing = example()
    thing["metadata"] |= {"namespace": KEY.namespace}
    return thing


def local() -> str:
    """The example, for this machine, with an input more: joins of three have probe orders."""
    thing = example()
    spec = thing["spec"]
    spec |= {"checkpoint": {"path": "checkpoint"}, "sql": f"{spec['sql']} {_THIRD}"}
    spec["inputs"]["orders"] = {
        "schema": "customer_id BIGINT, ordered_at TIMESTAMP",
        "eventTime": {"column": "ordered_at", "delay": "2s"},
        "generator": {"rowsPerSecond": 300, "keys": 20000, "seed": 3},
    }
    del spec["volumes"]
    return yaml.safe_dump(thing)


@pytest.fixture(scope="module")  # no longer: two drivers that run take a core
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Long enough that every figure has moved."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "tables").mkdir()
    drivers, others = Drivers(folder), Drivers(folder / "tables")
    try:
        with standin.serving(standin.Cluster(KEY, POLICY, applied())) as ports, _database() as database:
            driver, tabled = drivers.start(local()), others.start(yaml.safe_dump(_tabled(database)))
            (folder / "prometheus").mkdir()
            config = _config(driver, tabled, *ports)
            with prometheus.running(folder / "prometheus", config) as found:
                driver.until("readiness", lambda: driver.get("/readyz")[0] == 200)
                driver.until("batches", lambda: _batches(driver) > 2)
                _need_spark(driver)
                tabled.until("queries", lambda: tabled.metric("streamjoin_table_queries_total"))
                driver.until("probe orders", lambda: driver.metric("streamjoin_probe_measured_seconds"))
                begin = time.time()
                with suppress(pytest.skip.Exception):  # says so again to whoever wants to draw
                    drawing.prepare()
                time.sleep(max(0.0, begin + LASTS_S - time.time()))
                driver.until("more batches", lambda: _batches(driver) > 9)
                yield Watched(found, begin, time.time())
    finally:
        drivers.end()
        others.end()


def _need_spark(driver: Driver) -> None:
    """What runs batches without Spark dies: in a cluster there is a JVM, whose heap is shown."""
    for process in processes.of_kind(driver.process.pid, "server"):
        processes.kill(process)
    driver.until("a JVM", lambda: driver.metric("streamjoin_driver_heap_bytes"))


@contextmanager
def _database() -> Iterator[Database]:
    with Database() as database, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)
        keys = pa.array(range(5000))
        database.fill("customers", pa.table({"id": keys, "name": pc.cast(keys, pa.string())}))
        yield database


def _tabled(database: Database) -> dict[str, Any]:
    """A job of the same name that meets tables, which the example does not."""
    table = {"schema": "id BIGINT, name STRING"}
    asked = {**database.fields, "table": "customers"}
    return {
        **applied(),
        "spec": {
            "sql": (
                "SELECT v.id AS id, c.name AS name, w.name AS whole FROM views v"
                " LEFT JOIN customers c ON v.id = c.id LEFT JOIN whole w ON v.id = w.id"
            ),
            "inputs": {
                "views": {
                    "schema": "id BIGINT",
                    "generator": {"rowsPerSecond": 500, "keys": 20000, "skew": 1.2},
                },
                "customers": {**table, "postgres": {**asked, "cache": "incremental", "refresh": "3s"}},
                "whole": {**table, "postgres": {**asked, "cache": "full", "refresh": "5s"}},
            },
            "output": {"noop": {}},
            "join": {"units": 4},
            "batch": {"interval": "1s"},
            "checkpoint": {"path": "checkpoint"},
        },
    }


def _batches(driver: Driver) -> float:
    return driver.metric("streamjoin_batches_total").get((), 0)


def _config(driver: Driver, tabled: Driver, executors: int, operator: int, kubelet: int) -> dict[str, Any]:
    """As the PodMonitors make it: who a driver works for is told by the scrape, of the operator's figures by themselves."""
    job = {"namespace": KEY.namespace, "streamjoin": KEY.name}

    def scrape(name: str, port: int, labels: dict[str, str]) -> dict[str, Any]:
        static = {"targets": [f"127.0.0.1:{port}"], "labels": labels}
        return {"job_name": name, "honor_labels": True, "static_configs": [static]}

    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [
            scrape("driver", driver.port, job),
            {**scrape("tables", tabled.port, job), "metric_relabel_configs": [_ONLY_TABLES]},
            scrape("executors", executors, job),
            scrape("operator", operator, {}),
            scrape("kubelet", kubelet, {}),
        ],
    }
