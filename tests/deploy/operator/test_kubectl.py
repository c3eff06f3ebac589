"""`kubectl streamjoin` against a real API server and an operator: what it says and changes, and what its report leaves out."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from jobs.kubectl.commands import app
from jobs.kubectl.words import lines
from joinlib.errors import SpecError
from tests.cluster.kube import Kube
from tests.deploy.operator.conftest import Outside
from tests.deploy.operator.objects import stream_join
from tests.deploy.operator.test_live import job, started

Plugin = Callable[..., Result]


def plugin(space: Kube) -> Plugin:
    return lambda *words: CliRunner().invoke(app, [*words, "-n", space.namespace])


def test_a_job_in_words() -> None:
    """What is wrong comes first, then conditions, figures, decisions and the last events."""
    told = {
        "phase": "Degraded",
        "message": "no node takes the driver's pod",
        "conditions": [
            {"type": "Degraded", "status": "True", "reason": "Unschedulable", "message": "no node"}
        ],
        "executors": {"ready": 1, "wanted": 2},
        "lag": 7,
        "scaling": {"decisions": [{"at": "T", "verdict": "ScaleOut", "reason": "tau 0.9 is over 0.8"}]},
    }
    events = [{"lastTimestamp": f"T{n}", "reason": "R", "message": f"event {n}"} for n in range(7)]
    said = "\n".join(lines(stream_join(status=told), events))
    assert said.splitlines()[:2] == ["shop/late: Degraded", "  no node takes the driver's pod"]
    for part in (
        "True   Unschedulable: no node",
        "executors 1 of 2, lag 7 rows",
        "ScaleOut: tau 0.9 is over 0.8",
        "event 6",
    ):
        assert part in said, part
    assert "event 1" not in said
    assert "does an operator run?" in next(lines(stream_join(), []))


def test_no_cluster_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do about it."""
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    found = CliRunner().invoke(app, ["status", "late"])
    assert isinstance(found.exception, SpecError)
    assert "set KUBECONFIG, or --context" in str(found.exception)


@pytest.mark.cluster
def test_what_people_do(space: Kube, operator: Outside) -> None:
    """Status, suspend, resume, scale and back; a name that is not there is named."""
    call = plugin(space)
    started(space, job(executors__max=4))
    assert f"{space.namespace}/late: " in call("status", "late").stdout

    assert call("suspend", "late").stdout == "late: suspended\n"
    space.until("it is suspended", lambda: "late: Suspended" in call("status", "late").stdout)
    assert call("resume", "late").stdout == "late: resumed\n"
    space.until("it goes on", lambda: "late: Suspended" not in call("status", "late").stdout)

    assert call("scale", "late", "3").stdout == "late: 3 executors\n"
    assert space.get("sj", "late")["spec"]["executors"]["instances"] == 3
    assert call("scale", "late").stdout == "late: as scaling decides\n"
    assert "instances" not in space.get("sj", "late")["spec"]["executors"]

    for words in (
        ("status", "nobody"),
        ("suspend", "nobody"),
        ("logs", "nobody"),
        ("why", "nobody", "id = 1"),
    ):
        error = call(*words).exception
        assert isinstance(error, SpecError)
        assert "not found; kubectl get sj,pods -A lists what there is" in str(error)


@pytest.mark.cluster
def test_a_report_has_no_secret(space: Kube, operator: Outside, tmp_path: Path) -> None:
    """Annotations, Secrets and parameters are left out; spec, status and events are in it."""
    thing = job(
        sql="SELECT o.id FROM orders o JOIN shipments s ON o.id = s.id AND o.note = ${word}",
        parameters={"word": "PLANTED-parameter"},
    )
    thing["metadata"]["annotations"] = {"note": "PLANTED-annotation"}
    started(space, thing)
    space.until("its Secret is there", lambda: space.get("secret", "late-token"))
    file = tmp_path / "late.zip"
    assert plugin(space)("report", "late", "--output", str(file)).exit_code == 0
    with zipfile.ZipFile(file) as archive:
        parts = {name.partition("/")[2]: archive.read(name).decode() for name in archive.namelist()}
    assert {"streamjoin.yaml", "pods.yaml", "events.txt", "versions.txt"} <= parts.keys()
    token = space.get("secret", "late-token")["data"]["token"]
    for planted in ("PLANTED", token):
        assert [name for name, text in parts.items() if planted in text] == []
    assert "SELECT o.id" in parts["streamjoin.yaml"]
    assert "conditions" in parts["streamjoin.yaml"]
    assert parts["versions.txt"].startswith("kubernetes v1.")
