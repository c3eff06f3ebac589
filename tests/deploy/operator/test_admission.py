"""Admission: everything that is wrong with a document is found without Spark, with its field and the fix."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joinop.admission import Admitted, Rejected, document, validate

from tests.deploy.operator.objects import accepted, stream_join


def topic(**fields: Any) -> dict[str, Any]:
    kafka = {"bootstrapServers": "kafka:9092", "topic": "orders", **fields}
    return {"schema": "id BIGINT, customer STRING", "kafka": kafka}


TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # of the driver's pod


def table(**fields: Any) -> dict[str, Any]:
    """A table of a database, reached with these fields."""
    postgres = {"host": "db", "database": "shop", "user": "app", "table": "customers", **fields}
    return {"schema": "id BIGINT, name STRING", "postgres": postgres}


def refused(**places: Any) -> str:
    verdict = validate(document(stream_join(**places)))
    assert isinstance(verdict, Rejected)
    return "\n".join(verdict.problems)


def test_accepted() -> None:
    """A good document has a plan, a fingerprint and a hash."""
    verdict = accepted(stream_join())

    assert verdict.plan.startswith("result: final rows")
    assert verdict.folder == "/data/checkpoint"
    assert json.loads(json.dumps(verdict.fingerprint)) == verdict.fingerprint


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("sql", "SELECT o.nope FROM orders o JOIN shipments s ON o.id = s.id", "spec.sql: line 1, column 8: o has no column nope"),
        ("sql", "SELEC 1", "spec.sql: line 1"),
        ("checkpoint__path", "relative", "spec.checkpoint.path: 'relative' is relative; in a cluster write an absolute path"),
        ("checkpoint__path", "s3://bucket/x", "spec.checkpoint.path: 's3://bucket/x' is on an object store"),
        ("checkpoint__path", "/elsewhere", "spec.checkpoint.path: /elsewhere is under no volume (mounted: /data)"),
        ("output__files__path", "/elsewhere", "spec.output.files.path: /elsewhere is under no volume"),
        ("inputs__orders__files__path", "/in", "spec.inputs.orders.files.path: /in is under no volume"),
        ("inputs__orders__files", {"path": "/data/in", "done": "archive", "archive": "/read"}, "spec.inputs.orders.files.archive: /read is under no volume"),
        ("volumes", None, "spec.checkpoint.path: /data/checkpoint is under no volume (mounted: none)"),
        ("volumes", [{"mountPath": "/data", "claim": "c", "readOnly": True}], "which is readOnly"),
        ("volumes", [{"mountPath": "/data", "secret": "c"}], "which is a Secret; use another volume"),
        ("inputs__orders", topic(security={"protocol": "SSL", "caFile": "/ca.crt"}), "spec.inputs.orders.kafka.security.caFile: the file is under no volume"),
        ("inputs__customers", table(passwordFile=TOKEN), "spec.inputs.customers.postgres.passwordFile: the file is under no volume"),
        ("output", {"postgres": table(passwordFile=TOKEN)["postgres"] | {"table": "t"}}, "spec.output.postgres.passwordFile: the file is under no volume"),
        ("inputs__customers", table(passwordFile=f"/data/..{TOKEN}"), "passwordFile: the file is under no volume"),
        ("inputs__customers", table(security={"mode": "verify-full", "caFile": "/ca.crt"}), "postgres.security.caFile: the file is under no volume"),
        ("inputs__orders", topic(onBadMessage="deadLetter", deadLetters={"path": "/bad"}), "spec.inputs.orders.kafka.deadLetters.path: /bad is under no volume"),
        ("volumes", [{"mountPath": "/data", "claim": "c"}] * 2, "spec.volumes.1.mountPath: /data is mounted twice"),
        *(
            ("volumes", [{"mountPath": "/data", "claim": "c"}, {"mountPath": path, "claim": "d"}], "could hide files of the image")
            for path in ("/", "/etc/x", "//etc", "/var", "/var/run/secrets/kubernetes.io/serviceaccount", "/data/../etc")
        ),
        *(
            ("env", {name: {"secret": "s", "key": "k"}}, "is not the name of a credential")
            for name in ("_JAVA_OPTIONS", "BASH_ENV", "NUMBA_CACHE_DIR", "CLASSPATH", "SPARK_AUTH_SECRET", "LD_PRELOAD", "PGHOSTADDR")
        ),
        ("executors__min", 9, "spec.executors.min: 9 is more than max, 4"),
        ("join__units", 2, "spec.join.units: 2 is less than executors.max x executors.cores, 4"),
        ("exeutors", {}, "spec.exeutors: unknown field; did you mean 'executors'?"),
        ("output", None, "spec.output: is missing"),
    ],
)  # fmt: skip
def test_refused(place: str, value: Any, said: str) -> None:
    """A mistake is named by its field, with the fix."""
    assert said in refused(**{place: value})


def test_long_name() -> None:
    """What is added to a name must still fit."""
    verdict = validate(document(stream_join("n" * 41)))

    assert isinstance(verdict, Rejected)
    assert "metadata.name" in verdict.problems[0]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "/data", "{", "SELECT 1"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["sql", "files", "path", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
FIELDS = st.sampled_from(
    ["sql", "inputs", "inputs__orders", "output", "checkpoint", "volumes", "executors", "join", "driver"]
)


@given(FIELDS, JSON)
def test_never_raises(place: str, value: Any) -> None:
    """Whatever is in a field, there is a verdict."""
    assert isinstance(validate(document(stream_join(**{place: value}))), Admitted | Rejected)


def test_defaults_are_no_part_of_the_hash() -> None:
    """Writing a default out, as an API server does, restarts nothing."""
    plain, written = (
        stream_join(),
        stream_join(
            driver={"cores": 1, "memory": "2Gi"}, batch={"maxRows": 1_000_000}, suspend=False, scaling={}
        ),
    )

    assert accepted(plain).config_hash == accepted(written).config_hash


def test_kubernetes_fields_are_left_out() -> None:
    """The driver's document holds nothing that changes without the user."""
    given = stream_join(status={"phase": "Running"})
    given["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}

    assert document(given)["metadata"] == {"name": "late", "namespace": "shop"}
    assert "status" not in document(given)
