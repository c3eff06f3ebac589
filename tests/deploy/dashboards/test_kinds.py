"""What is made for the Prometheus operator is as its own definitions want it, here without a cluster that has them."""

import copy
import json
import subprocess
from pathlib import Path

import pytest
from joinop.build.monitor import pod_monitor
from joinop.names import Object

from tests.deploy.chart.conftest import Render
from tests.deploy.dashboards import drawing
from tests.deploy.operator.objects import job

KINDS = Path(__file__).parent / "kinds"
PER_JOB = {"apiVersion": "monitoring.coreos.com/v1", **pod_monitor(job())}


def wrong(*things: Object) -> list[list[str]]:
    """Of each: values that do not fit, else fields that are not known."""
    folder = drawing.packages("kinds", KINDS)
    (folder / "check.js").write_bytes((KINDS / "check.js").read_bytes())
    command = [drawing.needed("node", "nodejs"), folder / "check.js"]
    done = subprocess.run(command, input=json.dumps(things), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[list[str]] = json.loads(done.stdout)
    return found


@pytest.fixture
def made(render: Render) -> list[Object]:
    """Of the chart, and of the operator for a job."""
    found = render(podMonitor={"enabled": True}, prometheusRule={"enabled": True})
    kinds = {"PodMonitor", "PrometheusRule"}
    return [*(thing for thing in found if thing["kind"] in kinds), PER_JOB]


@pytest.mark.slow
def test_they_are_accepted(made: list[Object]) -> None:
    """A monitor of the operator, one of each job, the alerts."""
    assert sorted(thing["kind"] for thing in made) == ["PodMonitor", "PodMonitor", "PrometheusRule"]
    assert wrong(*made) == [[], [], []]


def test_mistakes_are_found() -> None:
    """A field that is not known, a value of the wrong type, a duration without a unit, one that is missing."""
    things = []
    for place, value in (("intervall", "15s"), ("port", 3), ("interval", "15sec")):
        thing = copy.deepcopy(PER_JOB)
        thing["spec"]["podMetricsEndpoints"][0][place] = value
        things.append(thing)
    things.append({**PER_JOB, "spec": {"podMetricsEndpoints": []}})
    found = wrong(*things)
    assert found[0] == ["/spec/podMetricsEndpoints/0/intervall is not known"]
    assert all("must" in errors[0] for errors in found[1:])
