"""A spec has every default once; what it says arrives where it is needed, whichever field says it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from joinlib.compiled import Compiled, compiled, database
from joinlib.join.order.policy import OrderPolicy, policy_of
from joinlib.model.joins import Caching
from joinlib.model.tuning import Tuning
from joinlib.plan.spec import options
from joinlib.postgres import connection
from joinlib.scale.policy import of_spec
from joinlib.source import PostgresLogConfig, RowChanges
from joinlib.spec import parse
from joinlib.spec.base import Model
from joinlib.spec.changes import Changes, Upsert
from joinlib.spec.inputs import (
    Csv,
    Debezium,
    Files,
    Generator,
    Input,
    KafkaTopics,
    MessageCsv,
    Postgres,
    PostgresLog,
)
from joinlib.spec.kafka import SchemaRegistry
from joinlib.spec.model import Checkpoint, Executors, JoinSettings, LagScaling, Scaling, StreamJoin, Window
from joinlib.spec.output import Console, KafkaOutput, Output, OutputFiles
from joinlib.spec.postgres import PostgresSecurity

DOCUMENT = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: j}
spec:
  sql: SELECT s.k, t.v FROM s JOIN t ON s.k = t.k
  inputs:
    s: {schema: "k BIGINT, at TIMESTAMP", generator: {}}
    t: {schema: "k BIGINT, v STRING", role: table, files: {path: t}}
  output: {noop: {}}
  checkpoint: {path: c}
"""
FILE = Path("/elsewhere")
SECURITY = {"mode": "verify-full", "ca_file": FILE, "cert_file": FILE, "key_file": FILE}
LOGIN = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username_env": "U", "password_env": "P"}
# Each of their fields has another value than that of DEFAULTS.
FILES = Files(
    path="f",
    format="csv",
    order_by="name",
    max_files_per_batch=3,
    on_bad_file="skip",
    done="archive",
    archive="a",
    csv={"header": False, "delimiter": ";", "quote": "'", "null": "-"},
    refresh_us="5s",
    budget_bytes="3Mi",
)
GENERATOR = Generator(rows_per_second=5, rows=6, keys=7, skew=0.5, seed=8)
POSTGRES = Postgres(
    host="h2",
    port=1,
    database="d2",
    user="u2",
    query="SELECT 1",
    password_file=FILE,
    security=SECURITY,
    cache="incremental",
    refresh_us="5s",
    budget_bytes="3Mi",
    timeout_us="1s",
    patience_us="2s",
).model_copy(
    update={"password_env": "OTHER", "uri_env": "URI", "changes": PostgresLog(slot="slot", publication="p")}
)
TOPICS = KafkaTopics(
    bootstrap_servers="k:2",
    security=LOGIN,
    topics=("b", "c"),
    format="csv",
    csv=MessageCsv(delimiter=";"),
    starting_offsets="latest",
    on_missing_offsets="reset",
    on_bad_message="deadLetter",
    dead_letters={"path": "d"},
    metadata={"key": "k"},
    max_bytes_per_batch="3Mi",
).model_copy(
    update={
        "debezium": Debezium(timestamps="millis", unavailable="-"),
        "key_format": "avro",
        "registry": SchemaRegistry(url="http://r:1", subject="s"),
    }
)
TO_TOPIC = KafkaOutput(
    bootstrap_servers="k:2",
    security=LOGIN,
    topic="u",
    format="csv",
    key=("k",),
    on_forgotten="repeat",
    transaction_timeout_us="1s",
).model_copy(update={"key_format": "avro", "registry": SchemaRegistry(url="http://r:1", subject="s")})
DEFAULTS: dict[type[Model], Model] = {
    Files: Files(path="x"),
    Generator: Generator(),
    Postgres: Postgres(host="h", database="d", user="u", table="t"),
    KafkaTopics: KafkaTopics(bootstrap_servers="k:1", topic="t"),
    KafkaOutput: KafkaOutput(bootstrap_servers="k:1", topic="t"),
    OutputFiles: OutputFiles(path="x"),
}
# Read from the document by `spark.job`; makes a stream of a table, which has a test of its own.
ELSEWHERE = {(OutputFiles, "compact"), (Postgres, "changes")}


def document(**parts: Any) -> StreamJoin:
    """The document with other parts: `s` and `t` are inputs, the others parts of the spec."""
    whole = parse(DOCUMENT, "j.yaml", Path("/jobs"))
    inputs = {n: parts.pop(n, whole.spec.inputs[n]) for n in ("s", "t")}
    return whole.model_copy(update={"spec": whole.spec.model_copy(update={"inputs": inputs, **parts})})


def given(source: Model, role: str | None = None) -> Input:
    """An input over a source."""
    plain = parse(DOCUMENT, "j.yaml", Path("/jobs")).spec.inputs["t" if role == "table" else "s"]
    names = {Files: "files", Generator: "generator", KafkaTopics: "kafka", Postgres: "postgres"}
    empty = dict.fromkeys(names.values())
    return plain.model_copy(update={**empty, "role": role, names[type(source)]: source})


def holding(part: Model) -> list[StreamJoin]:
    """The documents that say this."""
    match part:
        case Files():
            return [document(s=given(part)), document(t=given(part, "table"))]
        case Postgres():
            return [document(t=given(part, "table"))]
        case Generator() | KafkaTopics():
            return [document(s=given(part))]
        case KafkaOutput():
            least = Output(kafka=DEFAULTS[KafkaOutput])  # type: ignore[arg-type]
            return [document(output=least.model_copy(update={"kafka": part}))]
        case OutputFiles():
            return [document(output=Output(files=part))]
    raise AssertionError(part)


def run(plan: Compiled) -> tuple[object, ...]:
    """What tasks have of it."""
    return plan.source, plan.join, plan.checkpoint


def cases() -> list[Any]:
    full = (FILES, GENERATOR, POSTGRES, TOPICS, TO_TOPIC, OutputFiles(path="y", format="csv", compact={}))
    found = [(model, field) for model in full for field in type(model).model_fields]
    return [pytest.param(*case, id=f"{type(case[0]).__name__}-{case[1]}") for case in found]


@pytest.mark.parametrize(("full", "field"), cases())
def test_every_field_arrives(full: Model, field: str) -> None:
    """Without it, tasks are others. A new field of the spec needs a value here, and a place to go to."""
    default = getattr(DEFAULTS[type(full)], field)
    assert getattr(full, field) != default
    if (type(full), field) in ELSEWHERE:
        return
    without = full.model_copy(update={field: default})
    pairs = zip(holding(full), holding(without), strict=True)
    assert any(run(compiled(one, 2)) != run(compiled(other, 2)) for one, other in pairs)


@pytest.mark.parametrize("field", PostgresSecurity.model_fields)
def test_every_field_of_the_security_arrives(field: str) -> None:
    """As those of the table do."""
    without = POSTGRES.security.model_copy(update={field: getattr(PostgresSecurity(), field)})
    other = POSTGRES.model_copy(update={"security": without})
    plans = [run(compiled(document(t=given(p, "table")), 2)) for p in (POSTGRES, other)]
    assert plans[0] != plans[1]


@pytest.mark.parametrize("field", Csv.model_fields)
@pytest.mark.parametrize("source", [FILES, TOPICS.model_copy(update={"csv": FILES.csv})])
def test_every_field_of_csv_arrives(source: Files | KafkaTopics, field: str) -> None:
    """From a file's description and from a message's."""
    without = source.csv.model_copy(update={field: getattr(Csv(), field)})
    other = source.model_copy(update={"csv": without})
    configs = [compiled(document(s=given(s)), 2).source.sources[0].config.csv for s in (source, other)]
    assert configs[0] != configs[1]


def test_what_else_a_run_takes_from_the_spec() -> None:
    """Rows of a batch, rows on the console, how probe orders are chosen, the limit of paths, syncing."""
    plan = document().spec
    other = document(
        batch=plan.batch.model_copy(update={"max_rows": 7}),
        output=Output(console=Console(rows=3)),
        join=JoinSettings(probe_order="greedy", cycle=5, history=7, path_limit=9),
        checkpoint=Checkpoint(path="c", sync=False),
    )
    tasks = compiled(other, 2)
    assert (tasks.source.max_rows, tasks.join.sink.show) == (7, 3)
    tuning = tasks.join.tuning
    assert (tuning.probe_order, tuning.probe_cycle, tuning.probe_history) == ("greedy", 5, 7)
    assert (tuning.path_rows, tuning.sync) == (9, False)


OPTIONS = JoinSettings(units=16, retention_us="5s", strategy="biclique", subgroups=2, window=Window(rows=3))


@pytest.mark.parametrize("field", JoinSettings.model_fields)
def test_every_option_of_the_join_arrives(field: str) -> None:
    """In the planner; how probe orders are chosen, the limit of paths and memory are the tasks' matter, order chooses a plan."""
    if field in ("probe_order", "cycle", "history", "path_limit", "memory_bytes", "order"):
        return
    without = OPTIONS.model_copy(update={field: getattr(JoinSettings(), field)})
    assert options(without) != options(OPTIONS)


@pytest.mark.parametrize("source", [FILES.model_copy(update={"done": "keep", "archive": None}), TOPICS])
def test_what_says_that_rows_change_arrives(source: Files | KafkaTopics) -> None:
    """The column with the operation and the key, at the readers; SQL sees the key alone."""
    plain = given(source)
    schema = pa.schema([*plain.arrow_schema, pa.field("op", pa.string())])
    parts = {"arrow_schema": schema, "changes": Changes(op="op"), "upsert": Upsert(key=("k",))}
    changing = document(s=plain.model_copy(update=parts), output=Output(mode="changelog", noop={}))
    plan = compiled(changing, 2).source.sources[0]
    assert plan.config.changes == RowChanges("op", ("k",))
    assert "op" in plan.schema.names
    assert compiled(document(s=plain), 2).source.sources[0].config.changes is None


@pytest.mark.parametrize("key", [("k",), ()])
def test_a_table_that_is_followed(key: tuple[str, ...]) -> None:
    """It is a stream whose rows may go, by its key or whole; where it is, is said as for a table."""
    followed = POSTGRES.model_copy(update={"query": None, "table": "t"})
    changing = given(followed).model_copy(update={"upsert": Upsert(key=key) if key else None})
    plan = compiled(document(s=changing, output=Output(mode="changelog", noop={})), 2)
    (found,) = [s.config for s in plan.source.sources if s.name == "s"]
    assert found == PostgresLogConfig(database("s", followed), "slot", "p", key)


SCALED = (
    Executors(min=2, max=9, instances=3),
    Scaling(
        mode="advise",
        high=0.9,
        low=0.2,
        target=0.5,
        lag=LagScaling(catch_up_us="1m"),
        period_us="7s",
        votes=4,
        cool_down_us="8s",
        patience_us="9s",
    ),
)


@pytest.mark.parametrize(
    ("part", "field"),
    [
        *(("executors", f) for f in ("min", "max", "instances")),
        *(("scaling", f) for f in Scaling.model_fields),
    ],
)
def test_every_field_of_scaling_arrives(part: str, field: str) -> None:
    """In the policy."""
    parts = dict(zip(("executors", "scaling"), SCALED, strict=True))
    default = getattr(type(parts[part])(), field)
    other = {**parts, part: parts[part].model_copy(update={field: default})}
    assert of_spec(document(**parts).spec) != of_spec(document(**other).spec)


def test_defaults_that_stand_twice() -> None:
    """Workers do not load the spec, and the Python API has none: these are the same."""
    tuning, join = Tuning(), JoinSettings()
    found = tuning.probe_order, tuning.probe_cycle, tuning.probe_history, tuning.sync
    assert found == (join.probe_order, join.cycle, join.history, Checkpoint(path="c").sync)
    assert tuning.path_rows == join.path_limit
    assert OrderPolicy() == policy_of(tuning)
    assert Caching().budget == Files(path="x").budget_bytes
    assert DEFAULTS[Postgres].password_env == connection._USUAL
