"""The allow lists: what authors of StreamJoins may name."""

from typing import Any

import pytest
from joinop.admission import Rejected, document, validate
from joinop.allow import Allow
from joinop.config import Config
from joinop.decide import ObservedState, decide

from tests.deploy.operator.objects import accepted, stream_join
from tests.deploy.operator.test_admission import topic

LOGIN = {"secret": "shop-login", "key": "password"}
TABLE = {
    "schema": "id BIGINT",
    "postgres": {"user": "u", "database": "d", "table": "t", "host": "db.shop.svc"},
}
HIDDEN = {"schema": "id BIGINT", "postgres": {"uriEnv": "SHOP_URI", "table": "t"}}
AVRO = {"bootstrapServers": "kafka-1:9092", "topic": "t", "format": "avro"}
SHARED = Allow(secrets=("shop-*",), hosts=("*.shop.svc", "kafka-?"))
HOST = [{"mountPath": "/data", "hostPath": "/srv"}]


def problems(allow: Allow, **places: Any) -> list[str]:
    return list(allow.problems(accepted(stream_join(**places)).model.spec, "registry:5000/streamjoin:1"))


@pytest.mark.parametrize(
    ("allow", "places", "said"),
    [
        (Allow(), {"volumes": HOST}, "spec.volumes.0.hostPath: volumes of this kind are not allowed here (claim, secret are)"),
        (Allow(), {"image": "evil"}, "spec.image: image evil is not allowed here (registry:5000/streamjoin:*)"),
        (Allow(), {"image": "registry:5000/streamjoin/x:1"}, "spec.image: image registry:5000/streamjoin/x:1 is not"),
        (Allow(), {"image": "registry:5000/streamjoin:1/evil"}, "spec.image: image registry:5000/streamjoin:1/evil is not"),
        (SHARED, {"env": {"A_PASSWORD": {**LOGIN, "secret": "other"}}}, "spec.env.A_PASSWORD: Secret other is not allowed"),
        (SHARED, {"volumes": [{"mountPath": "/data", "claim": "c"}, {"mountPath": "/mnt", "secret": "other"}]}, "spec.volumes.1.secret: Secret other"),
        (SHARED, {"inputs__t": TABLE | {"postgres": TABLE["postgres"] | {"host": "db.shop.svc,mine"}}}, "spec.inputs.t.postgres.host: host mine is not"),  # type: ignore[operator]
        (SHARED, {"inputs__t": HIDDEN}, "spec.inputs.t.postgres.uriEnv: only listed hosts are allowed here, and this one is hidden"),
        (SHARED, {"inputs__orders": topic(bootstrapServers="kafka-1:9092, mine:9092")}, "spec.inputs.orders.kafka.bootstrapServers: host mine is not"),
        (SHARED, {"output": {"kafka": {"bootstrapServers": "mine:1", "topic": "t"}}}, "spec.output.kafka.bootstrapServers: host mine is not"),
        (SHARED, {"output": {"kafka": {**AVRO, "registry": {"url": "https://mine:8081"}}}}, "spec.output.kafka.registry.url: host mine is not"),
        (SHARED, {"output": {"postgres": TABLE["postgres"] | {"host": "mine"}}}, "spec.output.postgres.host: host mine is not"),  # type: ignore[operator]
        (SHARED, {"output": {"postgres": HIDDEN["postgres"]}}, "spec.output.postgres.uriEnv: only listed hosts are"),
        *(
            (SHARED, {"env": {name: LOGIN}}, f"spec.env.{name}: only listed hosts are allowed here")
            for name in ("OPENLINEAGE_URL", "OTEL_EXPORTER_OTLP_ENDPOINT")
        ),
    ],
)  # fmt: skip
def test_refused(allow: Allow, places: dict[str, Any], said: str) -> None:
    """Each with its field, what is allowed, and who can change that."""
    (problem,) = problems(allow, **places)
    assert said in problem
    assert "jobs.allow" in problem or "passwordEnv" in problem


@pytest.mark.parametrize(
    "places",
    [
        {"volumes": [{"mountPath": "/data", "claim": "c"}], "env": {"A_PASSWORD": LOGIN}},
        {"image": "registry:5000/streamjoin:2"},
        {"image": "registry:5000/streamjoin@sha256:" + "0" * 64},
        {"inputs__t": TABLE},
        {"inputs__orders": topic(bootstrapServers="kafka-1:9092,kafka-2:9092")},
    ],
)
def test_allowed(places: dict[str, Any]) -> None:
    """The default image in another version, and what the lists hold."""
    assert problems(SHARED, **places) == []


def test_without_lists_secrets_and_hosts_are_free() -> None:
    """As they are for who may make pods in the namespace."""
    assert problems(Allow(), env={"A_PASSWORD": LOGIN, "OPENLINEAGE_URL": LOGIN}, inputs__t=HIDDEN) == []
    assert problems(Allow(volumes=("hostPath",), images=("*",)), volumes=HOST, image="any") == []


def test_what_is_not_allowed_is_not_run() -> None:
    """Nor is what was accepted once, under other lists: its pods are left as they are, and nothing is made
    of it.
    """
    first = decide(ObservedState(stream_join(), {}, claims={"shared": True}), Config())
    held = {(o["kind"], o["metadata"]["name"]): o for o in first.apply}
    stricter = Config(allow=Allow(volumes=("secret",)))
    after = decide(ObservedState(stream_join(), held, claims={"shared": True}), stricter)

    assert first.job is not None
    assert (after.job, after.apply, after.prune) == (None, (), ())
    (degraded,) = (c for c in after.status["conditions"] if c["type"] == "Degraded")
    assert degraded["reason"] == "SpecRefused" and "spec.volumes.0.claim" in degraded["message"]


def test_lists_come_from_the_environment() -> None:
    """A list that is not named keeps its default."""
    config = Config.of({"JOINOP_ALLOW": '{"secrets": ["a-*"]}', "JOINOP_SCRAPERS": '[{"podSelector": {}}]'})

    assert config.allow == Allow(secrets=("a-*",))
    assert config.scrapers == ({"podSelector": {}},)


def test_functions_are_those_that_are_listed() -> None:
    """Their code runs in the pods, so there are none by default; a folder could be written by anybody."""
    given = {"score": {"python": "scoring:score", "returns": "DOUBLE"}}
    (said,) = problems(Allow(), functions=given)
    assert said.startswith("spec.functions.score.python: module scoring is not allowed here (none)")
    assert problems(Allow(functions=("scor*",)), functions=given) == []


@pytest.mark.parametrize("path", ["/", "/data", "data", ""])
def test_functions_are_those_of_the_image(path: str) -> None:
    """No folder can be named: below /, the module data.listed would be a file of a volume."""
    given = {"score": {"python": "data.listed:score", "returns": "DOUBLE", "path": path}}
    verdict = validate(document(stream_join(functions=given)))
    assert isinstance(verdict, Rejected)
    said = "spec.functions.score.path: modules of a job are those of its image; leave path out"
    assert verdict.problems == (said,)
