"""Columns that only a registry knows: the operator asks none, and learns them from the driver that has."""

import dataclasses
import json
import socket
from typing import Any

import pytest
from joinop.admission import Admitted, Rejected, pinned, verdict_of
from joinop.allow import Allow
from joinop.build.settings import executor
from joinop.build.workload import stateful_set
from joinop.config import Config
from joinop.decide import ObservedState, decide
from joinop.names import Object
from joinop.scrape import Scrape

from tests.deploy.operator.objects import (
    AT,
    accepted,
    driver_pod,
    executor_pod,
    job,
    running,
    settle,
    stream_join,
)
from tests.deploy.operator.test_webhook import said, warned

CONFIG = Config(image="streamjoin:1")
VALUES = "id BIGINT NOT NULL, note STRING, at TIMESTAMP"
COLUMNS = {"orders": {"values": VALUES}}
WRONG = "SELECT o.nope FROM orders o JOIN shipments s ON o.id = s.id"
LEFT = "SELECT o.id, s.carrier FROM orders o LEFT JOIN shipments s ON o.id = s.id"
UNKNOWN = "columns from a registry are not known yet: the driver asks for them, and refuses a query that does not fit"
LOGIN = {"usernameEnv": "REGISTRY_USER", "passwordEnv": "REGISTRY_PASSWORD", "caFile": "/secrets/ca.crt"}
SECRETS = {
    "env": {name: {"secret": "registry", "key": name} for name in ("REGISTRY_USER", "REGISTRY_PASSWORD")},
    "volumes": [{"mountPath": "/data", "claim": "shared"}, {"mountPath": "/secrets", "secret": "authority"}],
}


def topic(url: str = "https://registry:8081", columns: str = "fromRegistry", **fields: Any) -> Object:
    registry = {"url": url, **fields.pop("registry", {})}
    kafka = {
        "bootstrapServers": "kafka:9092",
        "topic": "orders",
        "format": "avro",
        "registry": registry,
        **fields,
    }
    return {"schema": columns, "kafka": kafka}


def registered(given: Object | None = None, status: Object | None = None, **places: Any) -> Object:
    return stream_join(status=status, inputs__orders=given or topic(), **places)


def begun(**columns: Object) -> Object:
    """The status of a job whose driver has told its columns, and not more."""
    return {"checkpoint": {"folder": "/data/checkpoint", "columns": columns or COLUMNS}}


def at_work(given: Object, columns: Any = COLUMNS) -> ObservedState:
    """A job whose driver has begun, as it is observed for the first time."""
    pods = (driver_pod(given), executor_pod(1), executor_pod(2))
    first, _ = settle(ObservedState(given, {}, claims={"shared": True}, at=AT), CONFIG)
    return dataclasses.replace(first, pods=pods, scrape=running(columns=columns))


def refused(given: Object) -> tuple[str, ...]:
    verdict = verdict_of(given)
    assert isinstance(verdict, Rejected)
    return verdict.problems


def test_nobody_is_asked() -> None:
    """Neither while columns are not known, nor later: no connection comes to the registry or the brokers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        given = topic(f"http://127.0.0.1:{port}", bootstrapServers=f"127.0.0.1:{port}")
        assert accepted(registered(given)).plan is None
        assert isinstance(verdict_of(registered(given, begun())), Admitted)
        assert warned(registered(given)) == [UNKNOWN]
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    ("given", "places", "why"),
    [
        (topic(), {"sql": "SELEC 1"}, "spec.sql: line 1"),
        (topic(), {"views": {"v": "SELECT FROM"}, "sql": "SELECT * FROM v"}, "spec.views.v: line 1"),
        (topic(), {"checkpoint__path": "/elsewhere"}, "spec.checkpoint.path: /elsewhere is under no volume"),
        (topic(registry=LOGIN), {}, "spec.inputs.orders.kafka.registry.caFile: the file is under no volume"),
        (topic(format="json"), {}, "spec.inputs.orders"),
        ({**topic(), "evenTime": {}}, {}, "spec.inputs.orders.evenTime: unknown field"),
    ],
)  # fmt: skip
def test_what_needs_no_columns_is_judged_at_once(given: Object, places: Any, why: str) -> None:
    """The rest of the document, and whether the query can be read."""
    assert refused(registered(given, **places))[0].startswith(why)


def test_hosts_are_those_of_the_allow_list() -> None:
    config = Config(allow=Allow(hosts=("kafka",)))
    assert said(registered(), None, config).startswith(
        "spec.inputs.orders.kafka.registry.url: host registry is not"
    )


def test_the_login_reaches_the_pods() -> None:
    """Driver and executors ask the registry: as a reference to Secrets, which the operator does not read."""
    blueprint = job(registered(topic(registry=LOGIN), **SECRETS))
    for pod in (stateful_set(blueprint)["spec"]["template"], executor(blueprint)):
        (container,) = pod["spec"]["containers"]
        known = {entry["name"]: entry["valueFrom"] for entry in container["env"] if "valueFrom" in entry}
        assert known["REGISTRY_PASSWORD"] == {
            "secretKeyRef": {"name": "registry", "key": "REGISTRY_PASSWORD"}
        }
        assert "/secrets" in [mount["mountPath"] for mount in container["volumeMounts"]]


def test_the_driver_tells_the_columns() -> None:
    """They are pinned with the checkpoint; then the document is planned, and nothing that runs is touched."""
    given = registered()
    after, first = settle(at_work(given), CONFIG)
    assert first.status["checkpoint"] == {"folder": "/data/checkpoint", "columns": COLUMNS}
    assert "plan" not in first.status
    assert first.status["phase"] == "Running"

    after, second = settle(after, CONFIG)
    declared = accepted(registered(topic(columns=VALUES)))
    assert json.loads(second.status["checkpoint"]["fingerprint"]) == declared.fingerprint
    assert second.status["plan"] == declared.plan
    assert second.apply == second.prune == ()
    assert decide(after, CONFIG).status == second.status

    silent = dataclasses.replace(after, scrape=None)
    assert decide(silent, CONFIG).status["checkpoint"] == second.status["checkpoint"]


def settled(**places: Any) -> ObservedState:
    """A job whose columns and plan are known, whose spec is changed then."""
    found = at_work(registered())
    for _ in range(2):
        found, _ = settle(found, CONFIG)
    changed = registered(places.pop("given", None), found.stream_join["status"], **places)
    return dataclasses.replace(found, stream_join=changed)


@pytest.mark.parametrize(
    ("places", "reason", "message"),
    [
        ({"sql": WRONG}, "SpecRefused", "spec.sql: line 1, column 8: o has no column nope"),
        ({"sql": LEFT}, "NewCheckpointNeeded", "the treatment of NULL keys of o was False and is True"),
        ({"given": {**topic(), "eventTime": {"column": "att"}}}, "SpecRefused", "spec.inputs.orders.eventTime.column: no column 'att' in the schema"),
        ({"given": topic(metadata={"offset": "note"})}, "Fine", ""),
        ({"given": topic(columns="id INT, note STRING")}, "NewCheckpointNeeded", ""),
        ({"given": topic(registry={"subject": "other"})}, "Fine", ""),  # the checkpoint keeps its schema
    ],
)  # fmt: skip
def test_later_changes_are_judged_with_the_columns(places: Any, reason: str, message: str) -> None:
    """As if they were declared: what cannot be followed changes nothing of what runs."""
    decision = decide(settled(**places), CONFIG)
    found = next(c for c in decision.status["conditions"] if c["type"] == "Degraded")
    assert (found["reason"], found["message"].startswith(message)) == (reason, True), found["message"]
    assert bool(decision.apply) == (reason == "Fine")


def test_another_checkpoint_begins_with_other_columns() -> None:
    """What was pinned says nothing of it: the driver asks again."""
    before = settled(checkpoint__path="/data/other", sql=WRONG)
    found = verdict_of(before.stream_join)
    assert isinstance(found, Admitted)
    assert (found.plan, found.fingerprint) == (None, None)

    later = dataclasses.replace(
        before,
        pods=(driver_pod(before.stream_join, config_hash=found.config_hash),),
        scrape=running(columns={"orders": {"values": "nope BIGINT, id BIGINT"}}),
    )
    after, decision = settle(later, CONFIG)
    assert decision.status["checkpoint"] == {
        "folder": "/data/other",
        "columns": {"orders": {"values": "nope BIGINT, id BIGINT"}},
    }
    assert isinstance(verdict_of(after.stream_join), Admitted)


def test_a_document_that_declares_its_columns_comes_to_take_them() -> None:
    """The columns that it has in the registry are known by then, and its state is compared."""
    given = registered(topic(columns="id BIGINT NOT NULL, note STRING"))
    found, _ = settle(at_work(given), CONFIG)
    status = found.stream_join["status"]
    assert set(status["checkpoint"]) == {"folder", "fingerprint", "columns"}
    assert decide(dataclasses.replace(found, stream_join=registered(None, status)), CONFIG).status["plan"]


@pytest.mark.parametrize(
    "told",
    [None, 3, [], {"orders": 3}, {"orders": {}}, {"orders": {"values": 3}}, {"orders": {"keys": "key INT"}}],
)
def test_nonsense_from_a_driver_is_left_out(told: Any) -> None:
    """A driver runs what the author of a document gives it."""
    assert Scrape(0.0, {"columns": told}).columns == {}


@pytest.mark.parametrize("text", ["", "nonsense", "id BIGNIT", "a BIGINT, a BIGINT"])
def test_columns_that_are_none_stay_unknown(text: str) -> None:
    """They refuse nothing; the driver decides."""
    found = verdict_of(registered(None, begun(orders={"values": text})))
    assert isinstance(found, Admitted)
    assert found.plan is None


def test_columns_of_keys() -> None:
    """Where a key is a column, it is planned once the type of keys is known, too."""
    keyed = topic(keyFormat="avro", metadata={"key": "k"})
    sql = "SELECT o.k.part, s.carrier FROM orders o JOIN shipments s ON o.k.id = s.id"
    without = verdict_of(registered(keyed, begun(), sql=sql))
    assert isinstance(without, Admitted) and without.plan is None

    columns = {"values": VALUES, "keys": "key STRUCT<id: BIGINT, part: STRING>"}
    known = verdict_of(registered(keyed, begun(orders=columns), sql=sql))
    assert isinstance(known, Admitted) and known.plan is not None
    assert known.config_hash == without.config_hash


def test_a_change_of_the_unknown_is_the_drivers() -> None:
    """It is followed, with a warning, and what the driver says of it is the reason of `Degraded`."""
    assert warned(registered(sql=WRONG), registered()) == [UNKNOWN]
    given = registered(sql=WRONG)
    end = {"terminated": {"exitCode": 2, "message": "spec.sql: line 1, column 8: o has no column nope\n"}}
    pod = driver_pod(
        given, ready=False, containerStatuses=[{"name": "driver", "state": end, "restartCount": 0}]
    )
    decision = decide(ObservedState(given, {}, pods=(pod,), claims={"shared": True}, at=AT), CONFIG)
    assert decision.status["phase"] == "Failed"
    assert decision.status["message"] == "spec.sql: line 1, column 8: o has no column nope"


def test_the_hash_is_that_of_the_text() -> None:
    """The driver that has told its columns is not replaced because they are known now."""
    assert (
        accepted(registered()).config_hash
        == accepted(registered(), pinned(registered(None, begun()))).config_hash
    )
