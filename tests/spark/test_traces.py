"""Runs through Spark tell a collector of OpenTelemetry what their batches took."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from jobs.flow import Flow
from jobs.traces.told import traced_run
from joinlib.compiled import Compiled
from joinlib.metric.table import STEPS
from tests.spark.trial import Trial, sized
from tests.unit.jobs.test_lineage import serving
from tests.unit.jobs.test_traces import HEADERS, SECRET, URL, Collector, attributes, requests, spans_of

pytestmark = pytest.mark.spark

SQL = "SELECT o.x, count(*) AS n FROM o JOIN p ON o.id = p.ord GROUP BY o.x"
CHANGES = {"mode": "changelog", "files": {"path": "out", "format": "parquet"}}


def traces(trial: Trial, plan: Compiled) -> dict[int, list[Any]]:
    """What a collector gets of one run to the end: the spans of each batch, its root first."""
    began = time.time_ns()
    with serving(collector := Collector()) as url:
        environment = {URL: url, HEADERS: f"Authorization={SECRET}", "POD_NAMESPACE": "shop"}
        traced = traced_run(plan.document, plan.pipeline, environment)
        flow = Flow(sized(plan), until_done=True, conf={}, spark=trial.session, traced=traced)
        flow.start()
        flow.join(200)
        assert not flow.is_alive()
    found: dict[int, list[Any]] = {}
    for path, login, request in requests(collector):
        assert (path, login) == ("/v1/traces", SECRET)
        whose = attributes(request.resource_spans[0].resource)
        assert (whose["service.name"], whose["k8s.namespace.name"]) == ("trial", "shop")
        for root, spans in trees(spans_of(request)):
            assert began - 1_000_000 <= root.start_time_unix_nano <= root.end_time_unix_nano <= time.time_ns()
            found[attributes(root)["streamjoin.batch"]] = spans
    return found


def trees(spans: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Each root with its spans, which lie within those above them."""
    for root in (span for span in spans if not span.parent_span_id):
        own = [span for span in spans if span.trace_id == root.trace_id]
        by_number = {span.span_id: span for span in own}
        for span in own[1:]:
            above = by_number[span.parent_span_id]
            assert above.start_time_unix_nano <= span.start_time_unix_nano
            assert span.start_time_unix_nano <= span.end_time_unix_nano <= above.end_time_unix_nano
        yield root, own


def parents(spans: list[Any]) -> dict[str, str]:
    """The name of the span above each."""
    names = {span.span_id: span.name for span in spans}
    return {span.name: names.get(span.parent_span_id, "") for span in spans}


def test_every_batch_is_a_trace_and_one_fails(trial: Trial) -> None:
    """More batches than are looked at one by one; figures are those of the rows; an error tells no value of a row."""
    trial.input("o", "id BIGINT, x BIGINT", maxFilesPerBatch=1)
    trial.input("p", "ord BIGINT, v BIGINT", format="jsonl", maxFilesPerBatch=1)
    for at in range(4):
        trial.write("o", str(at), [(2 * at, 10), (2 * at + 1, 20)])
        trial.write("p", str(at), [(2 * at, 5), (2 * at, 1), (99, 0)])
    plan = trial.compiled(SQL, output=CHANGES)

    found = traces(trial, plan)
    assert [*found] == [0, 1, 2, 3]
    assert len({spans[0].trace_id for spans in found.values()}) == 4
    for batch, spans in found.items():
        above = parents(spans)
        assert {*above} == {"batch", "tasks", "publish", *STEPS}, batch
        assert (above["batch"], above["tasks"], above["publish"]) == ("", "addBatch", "addBatch")
        assert {above[step] for step in STEPS} == {"batch"}
        figures = attributes(spans[0])
        assert (figures["streamjoin.input.o.rows_in"], figures["streamjoin.input.p.rows_in"]) == (2, 3)
        assert (figures["streamjoin.job"], figures["streamjoin.late_rows"]) == ("trial", 0)
        assert spans[0].status.code == Status.STATUS_CODE_UNSET
        tasks = attributes(next(span for span in spans if span.name == "tasks"))
        assert len(tasks["streamjoin.stage.units"]) == len(tasks["streamjoin.stage.seconds"]) == 2
        assert all(0 < units <= 4 for units in tasks["streamjoin.stage.units"])
    made = sum(attributes(spans[0])["streamjoin.rows_out"] for spans in found.values())
    assert made == 1 + 2 * 3  # a row of its own, then -old and +new in each batch

    (trial.folder / "p" / "5.jsonl").write_text('{"ord": "Bergstrasse", "v": 4711}\n')
    ((batch, (failed,)),) = traces(trial, plan).items()
    assert (batch, failed.name, failed.status.code) == (4, "batch", Status.STATUS_CODE_ERROR)
    said = failed.status.message
    assert "5.jsonl" in said
    assert not any(value in said for value in ("Bergstrasse", "4711"))
    assert attributes(failed)["error.type"] == "InputError"


def test_a_run_goes_on_without_its_collector(trial: Trial, caplog: pytest.LogCaptureFixture) -> None:
    """Rows are those of a run that tells nobody, and the log says so once, without the login."""
    trial.input("o", "id BIGINT, x BIGINT")
    trial.input("p", "ord BIGINT, v BIGINT")
    trial.write("o", "1", [(1, 10)])
    trial.write("p", "1", [(1, 5)])
    sql = "SELECT o.x, p.v FROM o JOIN p ON o.id = p.ord"
    plan = trial.compiled(sql)
    environment = {URL: "http://127.0.0.1:9", HEADERS: f"Authorization={SECRET}"}
    traced = traced_run(plan.document, plan.pipeline, environment)
    flow = Flow(sized(plan), until_done=True, conf={}, spark=trial.session, traced=traced)
    flow.start()
    flow.join(200)
    assert (flow.is_alive(), flow.error) == (False, None)
    assert trial.output(sql) == trial.expected(sql)
    assert caplog.text.count("traces are lost until it takes them") == 1
    logs = [file.read_bytes() for file in Path(trial.folder).rglob("*") if file.is_file()]
    assert SECRET not in caplog.text
    assert not any(SECRET.encode() in log for log in logs)
