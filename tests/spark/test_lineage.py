"""Runs through Spark tell a server of OpenLineage what they read and write, and how they end."""

from pathlib import Path
from typing import Any

import pytest

from jobs.flow import Flow
from jobs.lineage.event import subject
from jobs.lineage.told import ToldRun
from joinlib.compiled import Compiled
from tests.deploy.operator.test_transport import certificates
from tests.spark.command import run
from tests.spark.trial import Trial, sized
from tests.unit.jobs.test_endpoint import server_of
from tests.unit.jobs.test_lineage import Catalogue, sender, serving
from tests.unit.jobs.test_traces import Collector

pytestmark = pytest.mark.spark

SQL = "SELECT o.id, o.x + p.v AS s FROM o JOIN p ON o.id = p.ord WHERE p.v > 1"


def events(trial: Trial, plan: Compiled) -> list[dict[str, Any]]:
    """What a server gets of one run to the end."""
    with serving(catalogue := Catalogue()) as url:
        about = subject(plan.document, plan.pipeline, "default", {})
        told = ToldRun(about, sender(url))
        flow = Flow(sized(plan), until_done=True, conf={}, spark=trial.session, told=told)
        flow.start()
        flow.join(200)
        assert not flow.is_alive()
    return [catalogue.taken.get_nowait()[2] for _ in range(catalogue.taken.qsize())]


def test_a_run_and_one_that_fails(trial: Trial) -> None:
    """The columns are those of the files that were read and written; an error tells no value of a row."""
    trial.input("o", "id BIGINT, x BIGINT")
    trial.input("p", "ord BIGINT, v BIGINT", format="jsonl")
    trial.write("o", "1", [(1, 10), (2, 20)])
    trial.write("p", "1", [(1, 5), (2, 1)])
    plan = trial.compiled(SQL)

    whole = events(trial, plan)
    assert [event["eventType"] for event in whole] == ["START", "RUNNING", "COMPLETE"]
    assert trial.output(SQL) == trial.expected(SQL)
    done = whole[-1]
    assert [one["name"] for one in done["inputs"]] == [str(trial.folder / name) for name in ("o", "p")]
    (output,) = done["outputs"]
    assert (output["namespace"], output["name"]) == ("file", str(trial.out))
    fields = output["facets"]["columnLineage"]["fields"]
    found = {
        column: [(_last(one), one["field"]) for one in of["inputFields"]] for column, of in fields.items()
    }
    assert found == {"id": [("o", "id")], "s": [("o", "x"), ("p", "v")]}
    rows = output["facets"]["columnLineage"]["dataset"]
    assert [(_last(one), one["field"]) for one in rows] == [("o", "id"), ("p", "ord"), ("p", "v")]

    (trial.folder / "p" / "2.jsonl").write_text('{"ord": "Bergstrasse", "v": 4711}\n')
    *_, failed = events(trial, plan)
    assert failed["eventType"] == "FAIL"
    said = failed["run"]["facets"]["errorMessage"]["message"]
    assert "2.jsonl" in said
    assert not any(value in said for value in ("Bergstrasse", "4711"))


def _last(field: dict[str, Any]) -> str:
    return Path(field["name"]).name


SPEC = """\
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: told}
spec:
  sql: SELECT id FROM o
  inputs: {o: {schema: id BIGINT, files: {path: o, format: csv}}}
  output: {noop: {}}
  checkpoint: {path: checkpoint, sync: false}
"""


def test_who_runs_it_learns_that_nobody_was_told(tmp_path: Path) -> None:
    """On the terminal, at the end; the run itself is whole."""
    (tmp_path / "told.yaml").write_text(SPEC)
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "1.csv").write_text("id\n1\n")
    away = "http://127.0.0.1:1"
    code, said = run(tmp_path, "run", "told.yaml", "--until-done", "--plain", OPENLINEAGE_URL=away)
    assert code == 0, said
    warning = f"warning: lineage: {away}/api/v1/lineage Connection refused; events are lost"
    assert warning in said


def test_a_run_goes_on_whomever_it_may_tell(tmp_path: Path) -> None:
    """Receivers over TLS that want a login: one is not trusted and the other refuses, which the terminal says; then both are told."""
    (tmp_path / "told.yaml").write_text(SPEC)
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "1.csv").write_text("id\n1\n")
    right = certificates(tmp_path / "right", "localhost")
    wrong = certificates(tmp_path / "wrong", "localhost")
    catalogue, collector = Catalogue(), Collector()
    for one in (catalogue, collector):
        one.demanded = {"Authorization": "Bearer s3cret-of-receivers"}
    with serving(catalogue, server_of(right)) as events, serving(collector, server_of(right)) as traces:
        given = {
            "OPENLINEAGE_URL": events,
            "OPENLINEAGE_API_KEY": "s3cret-of-receivers",
            "OPENLINEAGE_CERTIFICATE": str(wrong / "ca.crt"),
            "OTEL_EXPORTER_OTLP_ENDPOINT": traces,
            "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20s3cret-of-old",
            "OTEL_EXPORTER_OTLP_CERTIFICATE": str(right / "ca.crt"),
        }
        code, said = run(tmp_path, "run", "told.yaml", "--until-done", "--plain", **given)
        assert code == 0, said
        assert "name who signed it in OPENLINEAGE_CERTIFICATE; events are lost" in said
        assert "answered 401 Unauthorized; correct the login in OTEL_EXPORTER_OTLP_HEADERS" in said
        assert "s3cret" not in said + (tmp_path / "checkpoint" / "logs" / "spark.log").read_text()
        given |= {
            "OPENLINEAGE_CERTIFICATE": str(right / "ca.crt"),
            "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20s3cret-of-receivers",
        }
        (tmp_path / "o" / "2.csv").write_text("id\n2\n")
        code, said = run(tmp_path, "run", "told.yaml", "--until-done", "--plain", **given)
        assert code == 0, said
        assert "lost" not in said
    states = [catalogue.taken.get_nowait()[2]["eventType"] for _ in range(catalogue.taken.qsize())]
    assert (states[0], states[-1]) == ("START", "COMPLETE")
    assert collector.taken.qsize() > 0
