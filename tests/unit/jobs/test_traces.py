"""Traces as OpenTelemetry has them: requests are its own messages, and nobody waits for its collector."""

import logging
import os
import queue
import random
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from jobs.report import redact
from jobs.traces.encode import encode
from jobs.traces.settings import VERSION, settings
from jobs.traces.span import BatchTrace, Span, TraceSubject, committed, failed
from jobs.traces.told import TracedRun, trace_sender, traced_run
from joinlib.direct.report import BatchPhase
from joinlib.direct.report import Report as Done
from joinlib.errors import InputError, SpecError
from joinlib.model.letters import DeadRows
from joinlib.spec import StreamJoin, parse
from tests.patience import HUNG_S
from tests.ports import free_port
from tests.unit.jobs.test_figures import RECEIPT
from tests.unit.jobs.test_lineage import Catalogue, serving

SECRET = "Bearer h34der-of-traces"
URL, HEADERS = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"
ABOUT = TraceSubject("paid", ("orders", "payments", "orders"), {"rows": 1, "sums": 2}, 4)
NOW = 1_767_225_610.0  # 2026-01-01T00:00:10Z
ONE = replace(RECEIPT, rows_in=(10, 20, 1), late=(1, 0, 2), bad=(3, 0, 0), deleted=(0, 1, 0), rows_out=0)
RECEIPTS = (
    replace(ONE, unit=1, seconds=0.5, commit_seconds=0.25),
    replace(ONE, unit=6, rows_in=(0, 0, 0), late=(0, 0, 0), rows_out=5, seconds=0.125, executor="2"),
    replace(ONE, unit=0, seconds=1.0, dead=(DeadRows("orders", "late", 2),)),
    replace(ONE, unit=9, rows_in=(0, 0, 0), late=(0, 0, 0), rows_out=7, seconds=0.0),
)
SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: paid}
spec:
  sql: SELECT o.id FROM orders o JOIN payments p ON o.id = p.id
  inputs:
    orders: {schema: id BIGINT, files: {path: orders}}
    payments: {schema: id BIGINT, postgres: {host: db, user: me, passwordEnv: SHOP, database: d, table: t}}
  output: {console: {}}
  checkpoint: {path: checkpoint}
"""


@pytest.fixture
def document(tmp_path: Path) -> StreamJoin:
    return parse(SPEC, "paid.yaml", tmp_path)


def done(batch: int = 4, began: float = NOW + 0.5, tasks: float = 1.0, publish: float = 0.25) -> Done:
    phases = (
        BatchPhase("tasks", began, began + tasks),
        BatchPhase("publish", began + tasks, began + tasks + publish),
    )
    return Done(batch, RECEIPTS, phases=phases)


def progress(batch: int = 4, **ms: int) -> dict[str, Any]:
    """What Spark says of a batch: by default one of two seconds."""
    took = {
        "triggerExecution": 2000,
        "latestOffset": 100,
        "walCommit": 50,
        "addBatch": 1500,
        "commitOffsets": 40,
    }
    return {"batchId": batch, "timestamp": "2026-01-01T00:00:10.000Z", "durationMs": {**took, **ms}}


# --- spans --------------------------------------------------------------------------------------------


def test_a_batch_is_a_tree() -> None:
    """Steps before the join from its begin, the join and the commit from its end; what this process measured within."""
    root = committed(ABOUT, done(), progress())
    assert (root.name, root.began, root.ended, root.error) == ("batch", NOW, NOW + 2, None)
    found = [(s.name, round(s.began - NOW, 6), round(s.ended - NOW, 6)) for s in root.children]
    assert found == [
        ("latestOffset", 0.0, 0.1),
        ("walCommit", 0.1, 0.15),
        ("addBatch", 0.46, 1.96),
        ("commitOffsets", 1.96, 2.0),
    ]
    join = root.children[2]
    inner = [(s.name, s.began - NOW, s.ended - NOW) for s in join.children]
    assert inner == [("tasks", 0.5, 1.5), ("publish", 1.5, 1.75)]


def test_the_figures_of_a_batch() -> None:
    """Sums, those of inputs that several aliases read, of outputs, and of the units of each stage."""
    root = committed(ABOUT, done(), progress())
    assert root.attributes == {
        "streamjoin.job": "paid",
        "streamjoin.batch": 4,
        "streamjoin.rows_in": 62,
        "streamjoin.rows_out": 12,
        "streamjoin.late_rows": 6,
        "streamjoin.deleted_rows": 4,
        "streamjoin.bad_messages": 3,
        "streamjoin.dead_letters": 2,
        "streamjoin.executors": 2,
        "streamjoin.input.orders.rows_in": 22,
        "streamjoin.input.orders.late_rows": 6,
        "streamjoin.input.payments.rows_in": 40,
        "streamjoin.input.payments.late_rows": 0,
        "streamjoin.output.rows.rows_out": 5,
        "streamjoin.output.sums.rows_out": 7,
    }
    tasks, publish = root.children[2].children
    assert tasks.attributes == {
        "streamjoin.stage.units": [2, 1, 1],
        "streamjoin.stage.seconds": [1.5, 0.125, 0.0],
        "streamjoin.stage.longest_seconds": [1.0, 0.125, 0.0],
        "streamjoin.stage.commit_seconds": [0.25, 0.0, 0.0],
    }
    assert publish.attributes == {}


def test_a_batch_of_no_unit() -> None:
    """It has read nothing."""
    root = committed(ABOUT, Done(4, (), phases=done().phases), progress())
    assert root.attributes["streamjoin.input.orders.rows_in"] == 0
    assert root.children[2].children[0].attributes["streamjoin.stage.units"] == []


def test_without_sparks_word_only_what_was_measured_here() -> None:
    """The last batch before a stop: no steps are made up."""
    root = committed(ABOUT, done(), None)
    assert (root.began, root.ended) == (NOW + 0.5, NOW + 1.75)
    assert [s.name for s in root.children] == ["tasks", "publish"]


milliseconds = st.integers(0, 3000)


@given(
    took=st.fixed_dictionaries(
        {"triggerExecution": milliseconds},
        optional=dict.fromkeys(
            ("latestOffset", "walCommit", "queryPlanning", "addBatch", "commitOffsets"), milliseconds
        ),
    ),
    began=st.floats(-3, 3),
    tasks=st.floats(0, 3),
)
def test_spans_lie_within_the_span_above(took: dict[str, int], began: float, tasks: float) -> None:
    """In order, whatever the clocks say."""
    told = progress() | {"durationMs": took}

    def check(span: Span) -> None:
        at = span.began
        for child in span.children:
            assert at <= child.began <= child.ended <= span.ended
            at = child.ended
            check(child)

    check(committed(ABOUT, done(began=NOW + began, tasks=tasks), told))


def test_a_failed_batch() -> None:
    """With the words for its error; what is known of it as far as it came."""
    error = InputError("orders: gone")
    root = failed(ABOUT, 5, NOW, NOW + 1, error, "orders: gone", None)
    assert (root.began, root.ended, root.error, root.children) == (NOW, NOW + 1, "orders: gone", ())
    assert root.attributes == {"streamjoin.job": "paid", "streamjoin.batch": 5, "error.type": "InputError"}
    known = failed(ABOUT, 4, NOW, NOW + 1, error, "orders: gone", done())
    assert known.attributes["streamjoin.rows_in"] == 62
    assert [(s.name, s.ended - NOW) for s in known.children] == [("tasks", 1.0), ("publish", 1.0)]


# --- requests -----------------------------------------------------------------------------------------


def plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    return (
        [plain(one) for one in value.array_value.values]
        if kind == "array_value"
        else getattr(value, str(kind))
    )


def attributes(of: Any) -> dict[str, Any]:
    return {one.key: plain(one.value) for one in of.attributes}


def spans_of(request: ExportTraceServiceRequest) -> list[Any]:
    (told,) = request.resource_spans
    (scoped,) = told.scope_spans
    assert (scoped.scope.name, scoped.scope.version) == ("streamjoin", VERSION)
    return list(scoped.spans)


def test_a_request_is_opentelemetrys() -> None:
    """Its own messages read it: parents, times, values with their types, and the error."""
    root = Span(
        "batch", NOW, NOW + 1.5, {"a": "b", "n": 1, "x": 0.5, "of": [1, 2]}, (Span("tasks", NOW, NOW + 1),)
    )
    broken = Span("batch", NOW, NOW, {}, (), "orders: gone")
    body = encode(
        {"service.name": "paid"},
        [BatchTrace(7, root), BatchTrace(1 << 127, broken)],
        random.Random(0).getrandbits,
    )
    request = ExportTraceServiceRequest.FromString(body)
    one, two, three = spans_of(request)
    assert attributes(request.resource_spans[0].resource) == {"service.name": "paid"}
    assert [s.trace_id.hex() for s in (one, two, three)] == ["0" * 31 + "7"] * 2 + ["8" + "0" * 31]
    assert (one.parent_span_id, two.parent_span_id, three.parent_span_id) == (b"", one.span_id, b"")
    assert len({one.span_id, two.span_id, three.span_id}) == 3
    assert all(len(s.span_id) == 8 for s in (one, two, three))
    assert (one.start_time_unix_nano, one.end_time_unix_nano) == (
        1_767_225_610_000_000_000,
        1_767_225_611_500_000_000,
    )
    assert attributes(one) == {"a": "b", "n": 1, "x": 0.5, "of": [1, 2]}
    assert (one.status.code, three.status.code) == (Status.STATUS_CODE_UNSET, Status.STATUS_CODE_ERROR)
    assert three.status.message == "orders: gone"


def test_a_number_is_never_zero() -> None:
    """Which would be none."""
    (span,) = spans_of(
        ExportTraceServiceRequest.FromString(encode({}, [BatchTrace(1, Span("b", 0, 0))], lambda bits: 0))
    )
    assert int.from_bytes(span.span_id) == 1


# --- settings -----------------------------------------------------------------------------------------


def test_where_traces_go_and_whose_they_are() -> None:
    """As the variables of OpenTelemetry's own programs say."""
    environment = {
        URL: "https://tempo/otlp/",
        HEADERS: f"Authorization={SECRET.replace(' ', '%20')}, X-Scope-OrgID = shop==",
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0.25",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test%2C2,k8s.pod.name=mine",
        "POD_NAME": "paid-driver-0",
        "POD_NAMESPACE": "jobs",
    }
    found = settings("paid", environment)
    assert found is not None
    assert (found.to.place, found.ratio) == ("https://tempo/otlp/v1/traces", 0.25)
    assert {**found.to.headers} == {
        "Authorization": SECRET,
        "X-Scope-OrgID": "shop==",
        "Content-Type": "application/x-protobuf",
    }
    assert found.resource == {
        "service.name": "paid",
        "service.version": VERSION,
        "k8s.namespace.name": "jobs",
        "k8s.pod.name": "mine",
        "deployment.environment.name": "test,2",
    }
    assert "h34der" not in repr(found)
    named = settings("paid", {URL: "http://c:4318", "OTEL_SERVICE_NAME": "shop"})
    assert named is not None
    assert (named.ratio, named.resource) == (1.0, {"service.name": "shop", "service.version": VERSION})


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {URL: " "},
        {URL: "http://c:4318", "OTEL_SDK_DISABLED": "True"},
        {URL: "http://c:4318", "OTEL_TRACES_SAMPLER": "parentbased_always_off"},
        {URL: "http://c:4318", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"},
        {"OTEL_TRACES_SAMPLER": "often", HEADERS: "x"},
    ],
)
def test_none_are_wanted(environment: dict[str, str], document: StreamJoin) -> None:
    """No endpoint is named, or all is switched off."""
    assert settings("paid", environment) is None
    assert traced_run(document, None, environment) is None  # type: ignore[arg-type]  # not even looked at


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({URL: "tempo:4318"}, f"{URL} is not the address of a server; write http://HOST:PORT"),
        ({URL: "http://me:h34der@c"}, f"without a login, which {HEADERS} can be"),
        ({HEADERS: "h34der"}, f"{HEADERS} is not a list of NAME=VALUE; write a comma between two of them, and %2C"),
        ({HEADERS: "=h34der"}, f"{HEADERS} is not a list of NAME=VALUE"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc', and traces are sent by http/protobuf alone"),
        ({"OTEL_TRACES_SAMPLER": "often"}, "OTEL_TRACES_SAMPLER is 'often'; write one of always_on, always_off, traceidratio"),
        *(
            ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": share}, f"OTEL_TRACES_SAMPLER_ARG is '{share}'; write a number from 0 to 1")
            for share in ("half", "2", "nan", "-1")
        ),
    ],
)  # fmt: skip
def test_mistakes_are_named(environment: dict[str, str], said: str) -> None:
    """By their variable, with what to write; what may be a secret is not quoted."""
    with pytest.raises(SpecError) as caught:
        settings("paid", {URL: "http://c:4318", **environment})
    assert said in str(caught.value)
    assert str(caught.value).startswith("environment: ")
    assert "h34der" not in str(caught.value)


def test_headers_are_in_no_report() -> None:
    """Neither as they are written nor as they are sent."""
    hidden = redact.of({}, {HEADERS: f"Authorization={SECRET.replace(' ', '%20')},x-key=k3y-of-mine"})
    text = hidden.text(
        f"it said {SECRET}, h34der-of-traces and {SECRET.replace(' ', '%20')} and k3y-of-mine; x-key"
    )
    assert not any(word in text for word in ("h34der", "k3y"))
    assert text.endswith("x-key")


# --- a run --------------------------------------------------------------------------------------------


@dataclass
class Kept:
    """Stands for the sender: `traces` are those that were offered."""

    traces: list[BatchTrace] = field(default_factory=list)
    open: bool = False

    def start(self) -> None:
        self.open = True

    def offer(self, trace: BatchTrace) -> None:
        self.traces.append(trace)

    def close(self) -> None:
        self.open = False

    def batches(self) -> list[Any]:
        return [trace.root.attributes["streamjoin.batch"] for trace in self.traces]


def run(logs: Path, ratio: float = 1.0, draw: Any = random.getrandbits) -> tuple[TracedRun, Kept]:
    kept = Kept()
    about = redact.of({}, {"A_PASSWORD": "hunter2"})
    return TracedRun(ABOUT, kept, ratio, about, logs, draw, lambda: NOW + 100), kept  # type: ignore[arg-type]


def logged(spark: Path, begun: int, committed: int) -> None:
    """Spark's logs of so many batches."""
    for log, count in (("offsets", begun), ("commits", committed)):
        (spark / log).mkdir()
        for batch in range(count):
            (spark / log / str(batch)).write_text("v1")


def test_a_trace_has_what_spark_says_of_its_batch(tmp_path: Path) -> None:
    """Once it says so; what it has forgotten has no steps. Nobody is asked while no batch waits."""
    one, kept = run(tmp_path)
    asked: list[int] = []

    def said(*batches: int) -> Any:
        return lambda after: asked.append(after) or [progress(b) for b in batches if b > after]

    one.begun()
    assert kept.open
    one.look(said(3))
    one.batch(done(4))
    one.look(said())
    assert (kept.traces, asked) == ([], [3])
    one.batch(done(5))
    one.batch(done(6))
    one.batch(done(7))
    one.look(said(4, 6))
    assert kept.batches() == [4, 5, 6]
    steps = [[s.name for s in trace.root.children] for trace in kept.traces]
    assert [len(names) for names in steps] == [4, 2, 4]
    assert len({trace.id for trace in kept.traces}) == 3
    one.look(said(7))
    one.look(said(7))
    assert (kept.batches(), asked) == ([4, 5, 6, 7], [3, 3, 6])
    one.ended(None)
    assert (kept.batches(), kept.open) == ([4, 5, 6, 7], False)


def test_what_waits_is_bounded(tmp_path: Path) -> None:
    """And rows to show are not kept."""
    one, kept = run(tmp_path)
    for batch in range(1000):
        one.batch(replace(done(batch), samples={"": object()}))  # type: ignore[dict-item]
    waiting: deque[Any] = one._waiting
    assert [w.report.batch for w in waiting] == [*range(980, 1000)]
    assert not any(w.report.samples for w in waiting)
    one.ended(None)
    assert kept.batches() == [*range(980, 1000)]


def test_a_share_of_the_batches_and_all_that_fail(tmp_path: Path) -> None:
    """By the low bits of a trace's number, as OpenTelemetry's own sampler."""
    half = 1 << 63
    numbers = iter([half - 1, half, (1 << 127) + half - 1, (1 << 127) + half, (1 << 64) - 1])
    one, kept = run(tmp_path, 0.5, lambda bits: next(numbers))
    for batch in range(4):
        one.batch(done(batch))
    logged(tmp_path, 5, 4)
    one.ended(InputError("gone"))
    assert kept.batches() == [0, 2, 4]
    assert [trace.root.error for trace in kept.traces] == [None, None, "gone"]


def test_the_batch_that_an_error_ends(tmp_path: Path) -> None:
    """Begins when its end was logged, but not before this run; it is told once, with its report if there is one."""
    logged(tmp_path, 6, 5)
    os.utime(tmp_path / "offsets" / "5", (1000, 1000))  # by an earlier run
    one, kept = run(tmp_path)
    one.begun()
    one.batch(done(4))
    one.batch(done(5))
    one.ended(InputError("orders: hunter2 is wrong"))
    assert kept.batches() == [4, 5]
    good, bad = (trace.root for trace in kept.traces)
    assert (good.error, bad.error) == (None, "orders: «left out» is wrong")
    assert (bad.ended, bad.attributes["streamjoin.rows_in"]) == (NOW + 100, 62)
    assert good.ended <= bad.began <= bad.ended


def test_an_error_between_two_batches(tmp_path: Path) -> None:
    """Is that of the batch that was to come, which took no time."""
    logged(tmp_path, 5, 5)
    one, kept = run(tmp_path)
    one.begun()
    one.ended(ValueError("Bergstrasse"))
    (trace,) = kept.traces
    assert (kept.batches(), trace.root.began, trace.root.ended) == ([5], NOW + 100, NOW + 100)
    assert trace.root.error == "ValueError: its message, which may quote rows, is in the job's log"


def test_an_error_before_any_batch(tmp_path: Path) -> None:
    """There is no log."""
    one, kept = run(tmp_path / "none")
    one.begun()
    one.ended(InputError("gone"))
    assert kept.batches() == [0]


def test_a_batch_that_a_stop_cuts_off_is_not_told(tmp_path: Path) -> None:
    """It runs again."""
    logged(tmp_path, 6, 5)
    one, kept = run(tmp_path)
    one.batch(done(4))
    one.batch(done(5))
    one.ended(None)
    assert kept.batches() == [4]


# --- sending ------------------------------------------------------------------------------------------


class Collector(Catalogue):
    """A server that takes requests of OTLP."""

    kind, heard = "application/x-protobuf", staticmethod(ExportTraceServiceRequest.FromString)


def _partly(refused: int, why: str) -> bytes:
    """An answer of OTLP."""
    said = ExportTracePartialSuccess(rejected_spans=refused, error_message=why)
    return ExportTraceServiceResponse(partial_success=said).SerializeToString()


def requests(collector: Collector) -> Iterator[tuple[str, str | None, Any]]:
    """What it took: path, login and request."""
    while True:
        try:
            yield collector.taken.get_nowait()
        except queue.Empty:
            return


def sending(url: str, gather_s: float = 0.0) -> Any:
    found = settings("paid", {URL: url, HEADERS: f"Authorization={SECRET}"})
    assert found is not None
    sender = trace_sender(found, gather_s)
    sender.start()
    return sender


def test_batches_share_requests() -> None:
    """Those of some seconds go together, with the login, to the usual path; the end does not wait for more."""
    with serving(collector := Collector()) as url:
        sender = sending(url, gather_s=1000)
        for number in range(1, 31):
            sender.offer(BatchTrace(number, Span("batch", NOW, NOW)))
        sender.close(HUNG_S)
        assert not sender.is_alive()
    ((path, login, request),) = requests(collector)
    assert (path, login) == ("/v1/traces", SECRET)
    assert [int.from_bytes(span.trace_id) for span in spans_of(request)] == [*range(1, 31)]


def test_an_end_without_a_batch_asks_nobody() -> None:
    """There is nothing to tell."""
    with serving(collector := Collector()) as url:
        sending(url).close(HUNG_S)
    assert collector.taken.empty()


def test_a_collector_that_is_away_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """With its address, and without the login."""
    url = f"http://127.0.0.1:{free_port()}"
    sender = sending(url)
    for number in range(1, 4):
        sender.offer(BatchTrace(number, Span("batch", NOW, NOW)))
    sender.close(HUNG_S)
    (said,) = caplog.messages
    assert (
        said
        == f"traces: {url}/v1/traces Connection refused; traces are lost until it takes them, rows are not"
    )
    assert "h34der" not in caplog.text
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize(
    ("status", "headers"),
    [(401, {}), (307, {"Location": "http://127.0.0.1:9/"}), (503, {"Retry-After": "600"})],
)
def test_a_collector_that_refuses(
    status: int, headers: dict[str, str], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Is told once; the login is neither in the log nor sent elsewhere."""
    with serving(collector := Collector()) as url:
        collector.status, collector.headers = status, headers
        sender = sending(url)
        for number in range(1, 4):
            sender.offer(BatchTrace(number, Span("batch", NOW, NOW)))
        sender.close(HUNG_S)
    (said,) = caplog.messages
    assert f"/v1/traces answered {status} " in said
    assert "h34der" not in caplog.text + "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (_partly(3, "too\n old"), ["refused 3 spans: too old; traces are lost"]),
        (_partly(1, "x" * 1000), [f"refused 1 spans: {'x' * 200}; traces are lost"]),
        (_partly(0, "the sender is old"), []),  # a hint: all were taken
        (b"<html>thanks</html>", []),
        (b"", []),
    ],
)
def test_a_collector_that_takes_a_part(
    answer: bytes, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Answers that all is well, and says within what it left out."""
    with serving(collector := Collector()) as url:
        collector.status, collector.answer = 200, answer
        sender = sending(url)
        sender.offer(BatchTrace(1, Span("batch", NOW, NOW)))
        sender.close(HUNG_S)
    assert [part in found for part, found in zip(said, caplog.messages, strict=True)] == [True] * len(said)


@pytest.mark.slow
@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9"])
def test_what_is_not_needed_is_not_loaded(url: str, tmp_path: Path) -> None:
    """OpenTelemetry is loaded by the first trace that is sent, and never without an endpoint."""
    (tmp_path / "paid.yaml").write_text(SPEC)
    program = """
import sys
import jobs.cli.run, jobs.driver.driver
from pathlib import Path
from joinlib.checkpoint.planned import plan_of
from joinlib.spec import parse
from jobs.traces.told import traced_run
document = parse(Path("paid.yaml").read_text(), "paid.yaml", Path())
print(traced_run(document, plan_of(document)) is not None)
print(*(name for name in sys.modules if name.startswith(("opentelemetry", "google.protobuf"))))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), URL: url}
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout.split("\n") == [str(bool(url)), "", ""]
