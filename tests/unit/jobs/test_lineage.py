"""Lineage as OpenLineage has it: names and events are those of its own classes, and nobody waits for its server."""

import json
import logging
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from openlineage.client import event_v2, facet_v2
from openlineage.client.naming import dataset as naming
from openlineage.client.serde import Serde
from typer.testing import CliRunner

from jobs.cli.commands import app
from jobs.lineage.datasets import DatasetName, of_input, of_output
from jobs.lineage.event import PRODUCER, Json, job_event, run_event, subject
from jobs.lineage.send import EventSender, endpoint, event_sender
from jobs.lineage.told import ToldRun, namespace, told_run
from joinlib.checkpoint.planned import plan_of
from joinlib.errors import InputError, SpecError, StreamJoinError
from joinlib.spec import StreamJoin, parse
from tests.patience import HUNG_S
from tests.ports import free_port

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "k3y-of-lineage"
SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: paid, namespace: shop}
spec:
  sql: |
    SELECT o.cust, sum(p.v) AS s, max(t.name) AS name
    FROM orders o JOIN payments p ON o.id = p.ord LEFT JOIN people t ON t.id = o.cust
    WHERE o.note <> ${note} GROUP BY o.cust
  parameters: {note: PARAMETER}
  inputs:
    orders:
      schema: id BIGINT, cust BIGINT, note STRING, parts ARRAY<STRUCT<a INT>>
      files: {path: data/orders, format: csv}
    payments:
      schema: ord BIGINT, v BIGINT
      kafka: {bootstrapServers: "k1:9092, k2:9092", topics: [a, b]}
    people:
      schema: id BIGINT, name STRING
      postgres: {uriEnv: SHOP_URI, table: crm.people}
  output:
    mode: changelog
    key: [cust]
    files: {path: out, format: csv}
  checkpoint: {path: checkpoint}
"""
ENVIRONMENT = {"SHOP_URI": "postgresql://me:hunter2@db/shop?sslmode=require"}


@pytest.fixture
def document(tmp_path: Path) -> StreamJoin:
    return parse(SPEC, "paid.yaml", tmp_path)


# --- names --------------------------------------------------------------------------------------------


def test_names_are_those_of_openlineage(document: StreamJoin, tmp_path: Path) -> None:
    """A folder, topics at the first broker, and a table of a connection string, whose login is left out."""
    inputs = document.spec.inputs
    found = {name: of_input(given, ENVIRONMENT) for name, given in inputs.items()}
    assert found == {
        "orders": (_official(naming.LocalFileSystem(str(tmp_path / "data/orders"))),),
        "payments": (
            _official(naming.Kafka("k1", "9092", "a")),
            _official(naming.Kafka("k1", "9092", "b")),
        ),
        "people": (_official(naming.Postgres("db", "5432", "shop", "crm", "people")),),
    }
    assert of_output(document.spec.output, {}) == DatasetName("file", str(tmp_path / "out"))
    assert of_input(inputs["people"], {}) == ()  # nobody knows which database
    assert of_input(inputs["people"], {"SHOP_URI": "postgresql://db:x/shop"}) == ()


def _official(name: naming.DatasetNaming) -> DatasetName:
    return DatasetName(name.get_namespace(), name.get_name())


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("table: orders", ["shop.public.orders"]),
        ("table: crm.orders", ["shop.crm.orders"]),
        (
            "query: 'WITH w AS (SELECT 1 FROM a.x) SELECT * FROM w JOIN y ON true'",
            ["shop.a.x", "shop.public.y"],
        ),
        ("query: 'SELECT FROM WHERE ('", []),
    ],
)
def test_tables_of_a_database(given: str, names: list[str]) -> None:
    """By name, in the schema that servers look at first; a query is all tables that it reads."""
    people = "postgres: {uriEnv: SHOP_URI, table: crm.people}"
    own = f"postgres: {{host: db, port: 5433, database: shop, user: me, {given}}}"
    table = parse(SPEC.replace(people, own), "paid.yaml", Path()).spec.inputs["people"]
    assert [one.name for one in of_input(table, {})] == names
    assert {one.namespace for one in of_input(table, {})} <= {"postgres://db:5433"}


# --- events -------------------------------------------------------------------------------------------


def test_an_event_is_one_of_openlineage(document: StreamJoin) -> None:
    """Made of its own classes, the same JSON comes out, with the addresses of the schemas that they have."""
    about = subject(document, plan_of(document), "shop", ENVIRONMENT)
    run = "01890a5d-ac96-774b-bcce-b302099a8057"
    for event in (
        job_event(about, NOW),
        run_event(about, run, "START", NOW),
        run_event(about, run, "FAIL", NOW, InputError("orders: is gone")),
    ):
        assert _pruned(json.loads(json.dumps(event))) == _pruned(Serde.to_dict(as_official(event)))


def as_official(event: Json) -> Any:
    """The event, made with OpenLineage's classes, which refuse what they do not know."""
    job = event_v2.Job(event["job"]["namespace"], event["job"]["name"], _facets(event["job"]["facets"]))
    inputs = [
        event_v2.InputDataset(d["namespace"], d["name"], facets=_facets(d["facets"])) for d in event["inputs"]
    ]
    outputs = [
        event_v2.OutputDataset(d["namespace"], d["name"], facets=_facets(d["facets"]))
        for d in event["outputs"]
    ]
    shared = {
        "eventTime": event["eventTime"],
        "producer": PRODUCER,
        "inputs": inputs,
        "outputs": outputs,
        "job": job,
    }
    if "run" not in event:
        return event_v2.JobEvent(**shared)
    run = event_v2.Run(event["run"]["runId"], _facets(event["run"]["facets"]))
    return event_v2.RunEvent(eventType=event_v2.RunState[event["eventType"]], run=run, **shared)


def _facets(given: Json) -> Json:
    return {name: _facet(name, {k: v for k, v in one.items() if k[0] != "_"}) for name, one in given.items()}


def _facet(name: str, content: Json) -> Any:
    lineage = facet_v2.column_lineage_dataset

    def columns(given: list[Json]) -> list[Any]:
        return [
            lineage.InputField(
                **{**one, "transformations": [lineage.Transformation(**t) for t in one["transformations"]]}
            )
            for one in given
        ]

    if name == "columnLineage":
        fields = {k: lineage.Fields(columns(v["inputFields"])) for k, v in content["fields"].items()}
        return lineage.ColumnLineageDatasetFacet(fields, columns(content["dataset"]), producer=PRODUCER)
    if name == "schema":
        kinds = [facet_v2.schema_dataset.SchemaDatasetFacetFields(**field) for field in content["fields"]]
        return facet_v2.schema_dataset.SchemaDatasetFacet(kinds, producer=PRODUCER)
    known = {
        "sql": facet_v2.sql_job.SQLJobFacet,
        "jobType": facet_v2.job_type_job.JobTypeJobFacet,
        "processing_engine": facet_v2.processing_engine_run.ProcessingEngineRunFacet,
        "errorMessage": facet_v2.error_message_run.ErrorMessageRunFacet,
    }
    return known[name](**content, producer=PRODUCER)


def _pruned(value: Any) -> Any:
    """Without what is empty."""
    if isinstance(value, dict):
        found = {k: _pruned(v) for k, v in value.items()}
        return {k: v for k, v in found.items() if v not in (None, {}, [])}
    return [_pruned(one) for one in value] if isinstance(value, list) else value


def test_what_an_event_says(document: StreamJoin, tmp_path: Path) -> None:
    """Columns with their types, also those that a changelog adds; a topic of two has what both have."""
    event = job_event(subject(document, plan_of(document), "shop", ENVIRONMENT), NOW)
    orders, first, second, people = event["inputs"]
    (output,) = event["outputs"]
    assert _columns(orders) == ["id bigint", "cust bigint", "note string", "parts array<struct<a:int>>"]
    assert (_columns(first), _columns(second)) == (["ord bigint", "v bigint"],) * 2
    assert people["name"] == "shop.crm.people"
    written = ["cust bigint", "s bigint", "name string", "_change_type string", "_batch bigint"]
    assert _columns(output) == written
    traced = output["facets"]["columnLineage"]
    assert {column: _told(found["inputFields"]) for column, found in traced["fields"].items()} == {
        "cust": [f"{tmp_path}/data/orders cust DIRECT/IDENTITY"],
        "s": ["a v DIRECT/AGGREGATION", "b v DIRECT/AGGREGATION"],
        "name": ["shop.crm.people name DIRECT/AGGREGATION"],
    }
    assert _told(traced["dataset"]) == [
        f"{tmp_path}/data/orders cust INDIRECT/GROUP_BY INDIRECT/JOIN",
        f"{tmp_path}/data/orders id INDIRECT/JOIN",
        f"{tmp_path}/data/orders note INDIRECT/FILTER",
        "a ord INDIRECT/JOIN",
        "b ord INDIRECT/JOIN",
        "shop.crm.people id INDIRECT/JOIN",
    ]
    assert event["job"]["facets"]["jobType"]["integration"] == "STREAMJOIN"


def _columns(dataset: Json) -> list[str]:
    return [f"{field['name']} {field['type']}" for field in dataset["facets"]["schema"]["fields"]]


def _told(found: list[Json]) -> list[str]:
    return [
        " ".join(
            [one["name"], one["field"], *(f"{t['type']}/{t['subtype']}" for t in one["transformations"])]
        )
        for one in found
    ]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InputError("orders: /data/a.csv is cut off; repair it"), "orders: /data/a.csv is cut off; repair it"),
        (SpecError("output: password=hunter2 at PARAMETER"), "output: password=«left out» at «left out»"),
        (ValueError("no such street as Bergstrasse"), "ValueError: its message, which may quote rows, is in the job's log"),
        (StreamJoinError("Bergstrasse"), "StreamJoinError: its message, which may quote rows, is in the job's log"),
    ],
)  # fmt: skip
def test_no_secret_and_no_row_is_told(error: Exception, said: str) -> None:
    """Errors that are meant for people keep their words, those of programs their class only; nor does the SQL tell one."""
    document = parse(SPEC.replace("${note}", f"${{note}} AND o.note <> '{KEY}'"), "paid.yaml", Path())
    about = subject(document, plan_of(document), "shop", ENVIRONMENT | {"OPENLINEAGE_API_KEY": KEY})
    event = run_event(about, "r", "FAIL", NOW, error)
    assert event["run"]["facets"]["errorMessage"]["message"] == said
    text = json.dumps(event)
    assert not any(word in text for word in ("hunter2", "PARAMETER", "Bergstrasse", KEY, "me:"))
    assert "${note}" in text


def test_what_lies_nowhere_is_no_dataset() -> None:
    """Generated rows, and results for the terminal; columns of a query's own are not those of its tables."""
    spec = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: two}
spec:
  views: {big: SELECT id FROM o WHERE id > 9}
  outputs:
    rows: {sql: SELECT big.id AS i FROM big JOIN t ON big.id = t.id, kafka: {bootstrapServers: "k:1", topic: x}}
    shown: {sql: SELECT id FROM big, console: {}}
  inputs:
    o: {schema: id BIGINT, generator: {}}
    t: {schema: id BIGINT, postgres: {host: db, database: d, user: u, query: SELECT n AS id FROM y}}
  checkpoint: {path: checkpoint}
"""
    document = parse(spec, "two.yaml", Path())
    event = job_event(subject(document, plan_of(document), "default", {}), NOW)
    assert [(one["name"], one["facets"]) for one in event["inputs"]] == [("d.public.y", {})]
    (output,) = event["outputs"]
    assert (output["namespace"], output["name"]) == ("kafka://k:1", "x")
    assert output["facets"]["columnLineage"]["fields"] == {}
    assert event["job"]["facets"]["sql"]["query"].startswith("-- view big\nSELECT id FROM o")


def test_the_command(document: StreamJoin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prints the same event, for the namespace of the environment or of the spec."""
    monkeypatch.setenv("SHOP_URI", ENVIRONMENT["SHOP_URI"])
    (tmp_path / "paid.yaml").write_text(SPEC)
    done = CliRunner().invoke(app, ["lineage", str(tmp_path / "paid.yaml")])
    event = json.loads(done.output)
    expected = job_event(subject(document, plan_of(document), "shop", ENVIRONMENT), NOW)
    assert event | {"eventTime": expected["eventTime"]} == expected
    assert namespace(document, {"POD_NAMESPACE": "jobs"}) == "jobs"
    assert namespace(document, {"POD_NAMESPACE": "jobs", "OPENLINEAGE_NAMESPACE": "prod"}) == "prod"


# --- sending ------------------------------------------------------------------------------------------


class Catalogue:
    """A server that takes events: `taken` has path, key and event. `demanded`: headers without which it lets nobody in."""

    kind, heard = "application/json", staticmethod(json.loads)

    def __init__(self) -> None:
        self.taken: queue.Queue[tuple[str, str | None, Json]] = queue.Queue()
        self.status, self.headers, self.answer = 201, dict[str, str](), b""
        self.demanded = dict[str, str]()


@contextmanager
def serving(catalogue: Catalogue, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve it at the address that is given out, with TLS for localhost."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Type"] == catalogue.kind
            if any(self.headers[name] != value for name, value in catalogue.demanded.items()):
                self.send_response(401, f"not by {self.headers['Authorization']}")
                self.end_headers()
                return
            catalogue.taken.put((self.path, self.headers["Authorization"], catalogue.heard(body)))
            self.send_response(catalogue.status)
            for name, value in {"Content-Length": str(len(catalogue.answer)), **catalogue.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(catalogue.answer)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http{'s://localhost' if tls else '://127.0.0.1'}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sender(url: str, **more: str) -> EventSender:
    to = endpoint({"OPENLINEAGE_URL": url, **more})
    assert to is not None
    return event_sender(to)


def test_a_run_is_told(document: StreamJoin) -> None:
    """START, RUNNING no more than once a minute, and how it ended; with the key, at the usual path."""
    seconds, about = [0.0], subject(document, plan_of(document), "shop", ENVIRONMENT)
    with serving(catalogue := Catalogue()) as url:
        run = ToldRun(about, sender(url, OPENLINEAGE_API_KEY=KEY), clock=lambda: seconds[0])
        run.begun()
        for now in (1.0, 2.0, 60.9, 61.0, 61.1):
            seconds[0] = now
            run.running()
        run.ended(None, asked=True)
    told = [catalogue.taken.get_nowait() for _ in range(catalogue.taken.qsize())]
    assert [event["eventType"] for _, _, event in told] == ["START", "RUNNING", "RUNNING", "ABORT"]
    assert {(path, key) for path, key, _ in told} == {("/api/v1/lineage", f"Bearer {KEY}")}
    assert len({event["run"]["runId"] for _, _, event in told}) == 1


@pytest.mark.parametrize(("error", "state"), [(None, "COMPLETE"), (InputError("is gone"), "FAIL")])
def test_how_a_run_ends(document: StreamJoin, error: Exception | None, state: str) -> None:
    """By itself, or by an error."""
    with serving(catalogue := Catalogue()) as url:
        run = ToldRun(subject(document, plan_of(document), "shop", ENVIRONMENT), sender(url))
        run.begun()
        run.ended(error, asked=False)
    assert [catalogue.taken.get_nowait()[2]["eventType"] for _ in range(2)] == ["START", state]


def test_an_endpoint_that_is_dead_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """No name, no key, no traceback; a second outage is told again."""
    url = f"http://127.0.0.1:{free_port()}"
    dead = sender(url, OPENLINEAGE_API_KEY=KEY)
    dead.start()
    for _ in range(3):
        dead.offer({"eventType": "RUNNING"})
    dead.close(HUNG_S)
    assert not dead.is_alive()
    (said,) = caplog.messages
    assert said.startswith(
        f"lineage: {url}/api/v1/lineage Connection refused; events are lost until it takes them"
    )
    assert said == dead.outage
    assert KEY not in caplog.text


@pytest.mark.parametrize("key", [f"{KEY}\nX-More: 1", f"{KEY}ü→"])
def test_a_key_that_no_header_can_have_is_not_quoted(
    key: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither in the log nor in a traceback of the thread."""
    with serving(catalogue := Catalogue()) as url:
        one = sender(url, OPENLINEAGE_API_KEY=key)
        one.start()
        one.offer({})
        one.close(HUNG_S)
    assert catalogue.taken.empty()
    assert "cannot be asked" in caplog.text
    assert KEY not in caplog.text + "".join(capfd.readouterr())


def test_an_endpoint_without_tls_is_not_asked_in_clear(caplog: pytest.LogCaptureFixture) -> None:
    """Where the address says https."""
    with serving(catalogue := Catalogue()) as url:
        one = sender(url.replace("http:", "https:"), OPENLINEAGE_API_KEY=KEY)
        one.start()
        one.offer({})
        one.close(HUNG_S)
    assert catalogue.taken.empty()
    assert "does not speak TLS; write its port for TLS in OPENLINEAGE_URL" in caplog.text
    assert KEY not in caplog.text


def test_an_endpoint_that_refuses_and_takes_again(caplog: pytest.LogCaptureFixture) -> None:
    """And one that sends elsewhere: the key goes nowhere else."""
    with serving(catalogue := Catalogue()) as url, serving(other := Catalogue()) as elsewhere:
        one = sender(url, OPENLINEAGE_API_KEY=KEY, OPENLINEAGE_ENDPOINT="/v2/events")
        one.start()
        catalogue.status, catalogue.headers = 307, {"Location": f"{elsewhere}/"}
        one.offer({})
        assert catalogue.taken.get(timeout=HUNG_S)[0] == "/v2/events"
        while not caplog.messages:  # the status is the answer to the event before
            time.sleep(0.01)
        catalogue.status, catalogue.headers = 200, {}
        one.offer({})
        one.close(HUNG_S)
    assert other.taken.empty()
    assert ["answered 307" in caplog.messages[0], "takes events again" in caplog.messages[1]] == [True, True]
    assert caplog.records[0].levelno == logging.WARNING
    assert not one.outage


@pytest.mark.parametrize("events", [1, 300])
def test_nobody_waits_for_an_endpoint_that_hangs(events: int, caplog: pytest.LogCaptureFixture) -> None:
    """It takes the connection and never answers: offers return, more than fit are lost, the end is in time.

    With one event it is only the end that is lost: a catalogue shows the run as running for ever, so the log says it.
    """
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        hung = sender(f"http://127.0.0.1:{deaf.getsockname()[1]}")
        hung.start()
        for _ in range(events):
            hung.offer({})
        hung.close(0.01)
        assert hung.is_alive()
        assert hung.daemon
    (said,) = caplog.messages
    assert "is too slow; events are lost" in said


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "catalogue:5000", "http://", "http://me:hunter2@c", "http://c:x"]
)
def test_what_is_no_address(url: str) -> None:
    """It is the user's mistake, which is told without what stands there."""
    with pytest.raises(SpecError, match="OPENLINEAGE_URL is not the address of a server") as caught:
        endpoint({"OPENLINEAGE_URL": url})
    assert "hunter2" not in str(caught.value)


def test_without_an_endpoint_nothing_is_told(document: StreamJoin) -> None:
    """None is named, or lineage is switched off."""
    pipeline = plan_of(document)
    assert told_run(document, pipeline, {}) is None
    assert told_run(document, pipeline, {"OPENLINEAGE_URL": " "}) is None
    off = {"OPENLINEAGE_URL": "http://catalogue:5000", "OPENLINEAGE_DISABLED": "True"}
    assert told_run(document, pipeline, off) is None
    https = endpoint({"OPENLINEAGE_URL": "https://catalogue/base/", "OPENLINEAGE_API_KEY": KEY})
    assert https is not None
    assert https.place == "https://catalogue/base/api/v1/lineage"
    assert KEY not in repr(https)
