"""Results in Avro, by the schema that a run registers in a real registry; fastavro reads them, and so does another job."""

import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from joinlib.compiled import compiled
from joinlib.errors import NotReady, SpecError
from joinlib.sink.config import KafkaSinkConfig
from joinlib.sink.kafka.schemas import registered
from joinlib.source.avro.schema import parsed
from joinlib.spec import parse
from tests import configs
from tests.kafka.broker import Broker
from tests.kafka.registry import Registry
from tests.spark.trial import Trial

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
SQL = "SELECT a.k AS k, a.v AS v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k"


def target(url: str, topic: str, **registry: Any) -> KafkaSinkConfig:
    return configs.results("localhost:9092", topic, format="avro", registry={"url": url, **registry})


def newest(registry: Registry, subject: str) -> dict[str, Any]:
    return dict(registry.get(f"/subjects/{subject}/versions/latest"))


def test_a_schema_is_registered_once(registry: Registry) -> None:
    """Each start finds the same id; another column is a version more, of which readers can follow."""
    first = registered(target(registry.url, "once"), COLUMNS)
    assert registered(target(registry.url, "once"), COLUMNS).schema_id == first.schema_id > 0
    more = pa.schema([*COLUMNS, ("price", pa.decimal128(9, 2))])
    assert registered(target(registry.url, "once"), more).schema_id != first.schema_id
    assert newest(registry, "once-value")["version"] == 2


def test_a_subject_that_has_a_schema(registry: Registry) -> None:
    """The record keeps the name that readers know; what they could not follow is refused in the registry's words."""
    theirs = {
        "type": "record",
        "name": "Person",
        "namespace": "shop",
        "fields": [{"name": "id", "type": ["null", "long"], "default": None}],
    }
    registry.register("people", theirs)
    assert registered(target(registry.url, "t", subject="people"), COLUMNS).schema_id > 0
    ours = parsed([newest(registry, "people")["schema"]])
    assert (ours.name, [f.name for f in ours.fields]) == ("shop.Person", ["id", "name"])
    registry.post("/config/people", {"compatibility": "BACKWARD"}, "PUT")
    wrong = pa.schema([("id", pa.string()), ("name", pa.string())])
    with pytest.raises(
        SpecError, match=r"refuses the schema \(409\): .*subject people, or name another subject"
    ):
        registered(target(registry.url, "t", subject="people"), wrong)


def test_the_schema_of_keys(registry: Registry) -> None:
    """A record of their columns, beside that of the values; text has none."""
    spec = target(registry.url, "keyed")
    keyed = replace(spec, key=("name",), spec=spec.spec.model_copy(update={"key_format": "avro"}))
    found = registered(keyed, COLUMNS)
    assert found == registered(keyed, COLUMNS)
    assert found.key_schema_id != found.schema_id
    made = newest(registry, "keyed-key")
    assert made["id"] == found.key_schema_id
    assert [(f.name, f.type.words) for f in parsed([made["schema"]]).fields] == [
        ("name", "a union of null and string")
    ]
    assert parsed([made["schema"]]).name == "keyed_key"
    assert registered(spec, COLUMNS) == replace(spec, schema_id=found.schema_id)


def test_a_registry_that_does_not_answer() -> None:
    with pytest.raises(NotReady, match=r"registry http://127\.0\.0\.1:9: no answer"):
        registered(target("http://127.0.0.1:9", "silent"), COLUMNS)


def run_outer_join(broker: Broker, trial: Trial, mode: str, kafka: dict[str, Any]) -> None:
    """Fill two inputs, and run an outer join of them into a topic."""
    for name in ("a", "b"):
        trial.input(name, "k BIGINT, v BIGINT", maxFilesPerBatch=1, orderBy="name")
        trial.fill(
            name, [(k, k * (1 if name == "a" else 10)) for k in range(0, 40, 1 if name == "a" else 3)], 4
        )
    key = {"key": ["k"]} if mode == "upsert" else {}
    trial.run(SQL, output={"mode": mode, **key, "kafka": {"bootstrapServers": broker.servers, **kafka}})


@pytest.mark.spark
@pytest.mark.parametrize(
    ("mode", "keys"), [("append", "text"), ("changelog", "text"), ("upsert", "text"), ("upsert", "avro")]
)
def test_results_of_a_job(broker: Broker, registry: Registry, trial: Trial, mode: str, keys: str) -> None:
    """An outer join in each mode: rows, changes, or the last message of a key, as DuckDB has them."""
    topic = broker.topic(f"avro-{mode}-{keys}", 2)
    kafka = {"topic": topic, "format": "avro", "registry": {"url": registry.url}, "keyFormat": keys}
    run_outer_join(broker, trial, mode, kafka)

    schema = fastavro.parse_schema(json.loads(newest(registry, f"{topic}-value")["schema"]))
    rows = Counter[tuple[Any, ...]]()
    last: dict[bytes | None, Any] = {}
    for message in broker.read(topic):
        if message.value is None:
            last.pop(message.key, None)
            continue
        row: Any = fastavro.schemaless_reader(io.BytesIO(message.value[5:]), schema, None)
        last[message.key] = row
        rows[row["k"], row["v"], row["w"]] += (
            -1 if row.get("_change_type") in ("delete", "update_preimage") else 1
        )
    if mode == "upsert":
        rows = Counter((r["k"], r["v"], r["w"]) for r in last.values())
    if keys == "avro":
        schema = fastavro.parse_schema(json.loads(newest(registry, f"{topic}-key")["schema"]))
        read = [fastavro.schemaless_reader(io.BytesIO(key[5:]), schema, None) for key in last if key]
        assert read == [{"k": row["k"]} for row in last.values()]
    assert +rows == trial.expected(SQL)
    assert -rows == Counter()


def test_a_column_that_avro_does_not_have(tmp_path: Path) -> None:
    """Before anything runs, by `validate` too."""
    given = {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": "avro"},
        "spec": {
            "sql": "SELECT k, count(*) FROM a GROUP BY k",
            "inputs": {"a": {"schema": "k BIGINT", "files": {"path": "a"}}},
            "output": {
                "mode": "changelog",
                "kafka": {
                    "bootstrapServers": "b:1",
                    "topic": "t",
                    "format": "avro",
                    "registry": {"url": "http://r"},
                },
            },
            "checkpoint": {"path": "checkpoint"},
        },
    }
    with pytest.raises(SpecError, match=r"no name like that of column 'count\(\*\)'; give it one of letters"):
        compiled(parse(json.dumps(given), "avro.yaml", tmp_path), 1)
