"""A real run, watched by a real Prometheus: a driver on this machine, and a stand-in for executors and the operator."""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from joinop.names import Key

from joinlib.scale.policy import Policy
from tests import prometheus
from tests.deploy.chart.conftest import helm, render  # noqa: F401 - fixtures
from tests.deploy.dashboards import drawing, standin
from tests.deploy.dashboards.boards import ALERTS, ROOT
from tests.spark.test_driver import Driver, Drivers

EXAMPLE = ROOT / "manifests" / "examples" / "06-hot-keys.yaml"
KEY = Key("default", "hot-keys")
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


def applied() -> dict[str, Any]:
    """The example, as the cluster has it."""
    thing = yaml.safe_load(EXAMPLE.read_text())
    thing["metadata"] |= {"namespace": KEY.namespace}
    return thing


def local() -> str:
    """The example, for this machine."""
    thing = yaml.safe_load(EXAMPLE.read_text())
    thing["spec"] |= {"checkpoint": {"path": "checkpoint"}}
    del thing["spec"]["volumes"]
    return yaml.safe_dump(thing)


@pytest.fixture(scope="session")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Long enough that every figure has moved."""
    folder = tmp_path_factory.mktemp("watched")
    drivers = Drivers(folder)
    policy = Policy(min=2, max=8, votes=3, period_s=1.0, cool_s=3.0, patience_s=20.0)
    try:
        with standin.serving(standin.Cluster(KEY, policy, applied())) as ports:
            driver = drivers.start(local())
            (folder / "prometheus").mkdir()
            config = _config(driver, *ports)
            with prometheus.running(folder / "prometheus", config) as found:
                driver.until("readiness", lambda: driver.get("/readyz")[0] == 200)
                driver.until("batches", lambda: _batches(driver) > 2)
                begin = time.time()
                with suppress(pytest.skip.Exception):  # says so again to whoever wants to draw
                    drawing.prepare()
                time.sleep(max(0.0, begin + LASTS_S - time.time()))
                driver.until("more batches", lambda: _batches(driver) > 9)
                yield Watched(found, begin, time.time())
    finally:
        drivers.end()


def _batches(driver: Driver) -> float:
    return driver.metric("streamjoin_batches_total").get((), 0)


def _config(driver: Driver, executors: int, operator: int) -> dict[str, Any]:
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
            scrape("executors", executors, job),
            scrape("operator", operator, {}),
        ],
    }
