"""scrape.yaml, in a real Prometheus: which pods it takes, and how it labels them."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from joinlib import deploy
from tests import prometheus
from tests.deploy.chart.conftest import Render, of_kind
from tests.deploy.dashboards.boards import CHART

SCRAPE = yaml.safe_load((CHART / "scrape.yaml").read_text())["scrape_configs"]


def discovered(number: int, namespace: str, labels: dict[str, str], port: str) -> dict[str, Any]:
    """A port of a pod, as Kubernetes' discovery tells of it."""
    meta = {f"pod_label_{''.join(c if c.isalnum() else '_' for c in name)}": v for name, v in labels.items()}
    meta |= {"namespace": namespace, "pod_container_port_name": port}
    told = {f"__meta_kubernetes_{name}": value for name, value in meta.items()}
    return {"targets": [f"127.0.0.1:{number}"], "labels": told}


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_drivers_and_the_operator_are_taken_and_nothing_else(render: Render, tmp_path: Path) -> None:
    """With the labels of the pods that the operator and the chart make."""
    (operator,) = of_kind(render(), "Deployment")
    pods = [
        discovered(1, "shop", deploy.match("late", deploy.DRIVER), "http"),
        discovered(2, "shop", deploy.match("late", deploy.DRIVER), "blocks"),
        discovered(3, "shop", deploy.match("late", deploy.EXECUTOR), "http"),
        discovered(4, "system", operator["spec"]["template"]["metadata"]["labels"], "http"),
        discovered(5, "shop", {"app.kubernetes.io/name": "other"}, "http"),
    ]
    configs = [{k: v for k, v in one.items() if k != "kubernetes_sd_configs"} for one in SCRAPE]
    given = {"scrape_configs": [one | {"static_configs": pods} for one in configs]}
    with prometheus.running(tmp_path, given) as found:
        while len(active := found.ask("targets")["activeTargets"]) < 2:  # discovery takes some seconds
            time.sleep(0.2)
    assert {one["labels"]["instance"]: one["labels"] for one in active} == {
        "127.0.0.1:1": {
            "instance": "127.0.0.1:1",
            "job": "streamjoin-drivers",
            "namespace": "shop",
            "streamjoin": "late",
        },
        "127.0.0.1:4": {"instance": "127.0.0.1:4", "job": "streamjoin-operator"},
    }
    assert all(one["kubernetes_sd_configs"] == [{"role": "pod"}] for one in SCRAPE)
