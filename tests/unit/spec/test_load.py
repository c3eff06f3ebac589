"""Loading: a file becomes the model, or every mistake is named at its line with the fix."""

import pickle
from pathlib import Path

import pytest

from joinlib.errors import SpecError
from joinlib.spec import StreamJoin, load, parse
from joinlib.spec.base import Model
from joinlib.spec.cases import Cases
from joinlib.spec.patterns import PATTERNS

TEXT = """\
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: late}
spec:
  sql: SELECT o.id FROM orders o JOIN payments p ON o.id = p.id
  inputs:
    orders:
      schema: id BIGINT, at TIMESTAMP
      eventTime: {column: at, delay: 10s}
      files: {path: data/orders}
    payments:
      schema: id BIGINT, at TIMESTAMP_NTZ
      eventTime: {column: at}
      generator: {rows: 10}
  output:
    files: {path: out}
  join: {units: 16, retention: 7d}
  checkpoint: {path: checkpoint}
"""


def model(text: str) -> StreamJoin:
    """The model of a text in a file of the folder /jobs."""
    return parse(text, "late.yaml", Path("/jobs"))


def mistakes(old: str, new: str) -> list[str]:
    """What is said of the good text with one part replaced."""
    assert old in TEXT
    with pytest.raises(SpecError) as error:
        model(TEXT.replace(old, new, 1))
    return str(error.value).splitlines()


def test_a_good_file_becomes_the_model() -> None:
    """Names, units and defaults are those of the design."""
    spec = model(TEXT).spec
    orders = spec.inputs["orders"]
    assert orders.event_time is not None
    assert orders.files is not None
    assert (orders.arrow_schema.names, orders.event_time.delay_us, orders.is_stream) == (
        ["id", "at"],
        10_000_000,
        True,
    )
    assert (orders.files.format, orders.files.order_by, orders.files.on_bad_file) == (
        "parquet",
        "modified",
        "fail",
    )
    assert (spec.join.strategy, spec.join.units, spec.join.retention_us) == ("auto", 16, 604_800_000_000)
    assert (spec.batch.max_rows, spec.batch.interval_us, spec.output.mode) == (1_000_000, None, "append")
    assert (spec.scaling.period_us, spec.executors) == (60_000_000, None)


def test_relative_paths_start_at_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the command runs; absolute paths stay."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "late.yaml").write_text(TEXT.replace("path: out", f"path: {tmp_path}/out"))
    monkeypatch.chdir(tmp_path)
    spec = load("jobs/late.yaml").spec
    assert spec.checkpoint.path == tmp_path / "jobs" / "checkpoint"
    assert spec.output.files is not None
    assert spec.output.files.path == tmp_path / "out"


def test_a_model_can_be_sent_and_written() -> None:
    """It pickles for Spark's workers and its JSON form is a valid spec again."""
    job = model(TEXT)
    assert pickle.loads(pickle.dumps(job)) == job
    assert StreamJoin.model_validate(job.model_dump(mode="json", by_alias=True)) == job


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "kind: StreamJoin",
            "kind: StreamJoyn",
            "2: kind: 'StreamJoyn' is not one of StreamJoin; did you mean 'StreamJoin'?",
        ),
        (
            "name: late",
            "name: Late_1",
            "3: metadata.name: 'Late_1' does not fit; write lower-case letters, digits and '-', such as late-orders",
        ),
        ("  sql: SELECT", "  sql: '' # ", "5: spec.sql: '' does not fit; write a SELECT"),
        (
            "eventTime: {column: at, delay",
            "eventTme: {column: at, delay",
            "9: spec.inputs.orders.eventTme: unknown field; did you mean 'eventTime'?",
        ),
        (
            "eventTime: {column: at, delay: 10s}",
            "event_time: {column: at}",
            "9: spec.inputs.orders.event_time: unknown field; did you mean 'eventTime'?",
        ),
        (
            "delay: 10s",
            "delay: 10",
            "9: spec.inputs.orders.eventTime.delay: 10 has no unit; write 10s, 500ms or 2h30m",
        ),
        (
            "id BIGINT, at TIMESTAMP\n",
            "id BIGNT\n",
            "8: spec.inputs.orders.schema: column 'id': unknown type 'BIGNT'; did you mean 'BIGINT'?",
        ),
        (
            "{column: at, delay",
            "{column: att, delay",
            "9: spec.inputs.orders.eventTime.column: no column 'att' in the schema; did you mean 'at'?",
        ),
        (
            "{column: at, delay",
            "{column: id, delay",
            "9: spec.inputs.orders.eventTime.column: column 'id' is not a TIMESTAMP; declare it as one in the schema",
        ),
        (
            "      files: {path: data/orders}\n",
            "",
            "7: spec.inputs.orders: has no source; add one of files, generator, kafka, postgres",
        ),
        (
            "files: {path: data/orders}",
            "files: {path: data/orders}\n      generator: {}",
            "7: spec.inputs.orders: has files and generator; keep one",
        ),
        (
            "generator: {rows: 10}",
            "generator: {rows: 10}\n      role: table",
            "15: spec.inputs.payments.role: generator cannot be a table; remove role, or use another source",
        ),
        (
            "rows: 10",
            "rows: 0",
            "14: spec.inputs.payments.generator.rows: should be greater than or equal to 1",
        ),
        (
            "rows: 10",
            "skew: 10.5",
            "14: spec.inputs.payments.generator.skew: should be less than or equal to 10",
        ),
        (
            "path: data/orders",
            "path: data/orders, format: csv, csv: {delimiter: ''}",
            "10: spec.inputs.orders.files.csv.delimiter: '' does not fit; write one ASCII character, and no line break",
        ),
        (
            "path: data/orders",
            'path: data/orders, format: csv, csv: {quote: "\\r"}',
            "10: spec.inputs.orders.files.csv.quote: '\\r' does not fit; write one ASCII character, and no line break",
        ),
        (
            "path: data/orders",
            "path: data/orders, format: csv, csv: {delimiter: §}",
            "10: spec.inputs.orders.files.csv.delimiter: '§' does not fit; write one ASCII character, and no line break",
        ),
        (
            "path: data/orders",
            "path: data/orders, format: csv, csv: {quote: ','}",
            "10: spec.inputs.orders.files.csv.quote: is ',', and so is delimiter; change one of them",
        ),
        (
            "path: data/orders",
            "path: data/orders, csv: {header: false}",
            "10: spec.inputs.orders.files.csv: is for format csv, but format is parquet; remove one of them",
        ),
        (
            "path: data/orders",
            "path: data/orders, format: parqet",
            "10: spec.inputs.orders.files.format: 'parqet' is not one of parquet, csv, jsonl; did you mean 'parquet'?",
        ),
        (
            "path: data/orders",
            "path: 's3://bucket/orders'",
            "10: spec.inputs.orders.files.path: 's3://bucket/orders' is on an object store, which is not supported yet; name a local or shared folder",
        ),
        (
            "path: data/orders",
            "path: 'file:///data/orders'",
            "10: spec.inputs.orders.files.path: 'file:///data/orders' is a URL; write the path alone: /data/orders",
        ),
        (
            "files: {path: out}",
            "noop: {a: 1}",
            "16: spec.output.noop.a: unknown field; there is none here",
        ),
        (
            "retention: 7d",
            "retention: 0s",
            "17: spec.join.retention: is zero; write 10s, 500ms or 2h30m",
        ),
        (
            "files: {path: out}",
            "kafka: {bootstrapServers: 'k:9092', topic: t, transactionTimeout: 0s}",
            "16: spec.output.kafka.transactionTimeout: is less than 1s; write 1s or more",
        ),
        (
            "files: {path: out}",
            "kafka: {bootstrapServers: 'k:9092', topic: 'my topic'}",
            "16: spec.output.kafka.topic: 'my topic' does not fit; write letters, digits, '.', '_' and '-', at most 249",
        ),
        (
            "checkpoint: {path: checkpoint}",
            "checkpoint: {path: checkpoint, reset: 'a b'}",
            "18: spec.checkpoint.reset: 'a b' does not fit; write letters, digits, '.', '_' and '-', at most 63",
        ),
        (
            "checkpoint: {path: checkpoint}",
            "checkpoint: {path: checkpoint}\n  driver: {cpuRequest: 1.5}",
            "19: spec.driver.cpuRequest: 1.5 is no text; write it in quotes",
        ),
        (
            "checkpoint: {path: checkpoint}",
            "checkpoint: {path: checkpoint}\n  driver: {cpuRequest: '1.5'}",
            "19: spec.driver.cpuRequest: '1.5' does not fit; write 2 or 500m",
        ),
        (
            "checkpoint: {path: checkpoint}",
            "checkpoint: {path: checkpoint}\n  image: a b",
            "19: spec.image: 'a b' does not fit; write it without spaces, such as registry.example/streamjoin:1",
        ),
        (
            "    payments:",
            "    2pay:",
            "11: spec.inputs.2pay: '2pay' is not a name for an input; write letters, digits and '_', as SQL does",
        ),
        (
            "    payments:",
            "    Orders:",
            "11: spec.inputs.Orders: is the same name as 'orders' in SQL; rename one",
        ),
        (
            "    files: {path: out}",
            "    mode: append",
            "15: spec.output: has no sink; add one of files, kafka, postgres, console, noop",
        ),
        ("units: 16", "units: 12", "17: spec.join.units: 12 is not a power of two; write 8 or 16"),
        (
            "      eventTime: {column: at}\n",
            "",
            "11: spec.inputs.payments: join.retention needs eventTime on every stream; add it, or remove retention",
        ),
        (
            "  checkpoint: {path: checkpoint}",
            "",
            "4: spec.checkpoint: is missing; add it (Where the job keeps its progress and state)",
        ),
        (
            "path: checkpoint",
            "path: out/state",
            "16: spec.output.files.path: /jobs/out and checkpoint.path /jobs/out/state overlap; use folders apart",
        ),
        (
            "path: out",
            "path: data/orders/../orders",
            "16: spec.output.files.path: /jobs/data/orders and inputs.orders.files.path /jobs/data/orders overlap; use folders apart",
        ),
        (
            "path: out",
            "path: out, compact: {every: 0s}",
            "16: spec.output.files.compact.every: is zero; write 10s, 500ms or 2h30m",
        ),
        (
            "files: {path: data/orders}",
            "files: {path: data/orders, done: archive}",
            "10: spec.inputs.orders.files.archive: belongs to done: archive; write both or none",
        ),
        (
            "files: {path: data/orders}",
            "files: {path: data/orders, archive: data/read}",
            "10: spec.inputs.orders.files.archive: belongs to done: archive; write both or none",
        ),
        (
            "files: {path: data/orders}",
            "files: {path: data/orders, done: archive, archive: data/orders/read}",
            (
                "10: spec.inputs.orders.files.archive: /jobs/data/orders/read and inputs.orders.files.path"
                " /jobs/data/orders overlap; use folders apart"
            ),
        ),
        (
            "generator: {rows: 10}",
            "files: {path: data/orders, done: delete}",
            "14: spec.inputs.payments.files.done: must be keep: orders reads the same folder; use keep, or a folder for each of them",
        ),
        (
            "eventTime: {column: at}\n      generator: {rows: 10}",
            "role: table\n      files: {path: data/rates, done: delete}",
            "14: spec.inputs.payments.files.done: is for streams: a table is read again; remove it",
        ),
        (
            "  checkpoint:",
            "  executors: {max: 10, cores: 4}\n  checkpoint:",
            "17: spec.join.units: 16 is less than executors.max x executors.cores, 40; write 64 or more",
        ),
        (
            "  checkpoint:",
            "  executors: {min: 3, max: 2}\n  checkpoint:",
            "18: spec.executors.min: 3 is more than max, 2; lower min or raise max",
        ),
        (
            "  checkpoint:",
            "  executors: {min: 2, max: 4, spare: 3}\n  checkpoint:",
            "18: spec.executors.spare: 3 and min, 2, are more than max, 4; lower spare or raise max",
        ),
        (
            "  checkpoint:",
            "  executors: {memory: 8Gib}\n  checkpoint:",
            "18: spec.executors.memory: '8Gib' is not an amount of memory; write 8Gi or 512Mi",
        ),
        (
            "  checkpoint:",
            "  scaling: {low: 0.7}\n  checkpoint:",
            "18: spec.scaling.target: out of order (low 0.7, target 0.6, high 0.8); write low < target < high",
        ),
        (
            "  checkpoint:",
            "  batch: fast\n  checkpoint:",
            "18: spec.batch: needs fields below it (How much a batch takes, and how often one starts); write {} for none",
        ),
        (
            "checkpoint: {path: checkpoint}",
            "checkpoint: checkpoint",
            "18: spec.checkpoint: needs fields below it (Where the job keeps its progress and state); write {path: ...}",
        ),
        (
            "metadata: {name: late}",
            "metadata: late",
            "3: metadata: needs fields below it (What the job is called); write {name: ...}",
        ),
        (
            "  output:\n    files: {path: out}",
            "  output: out",
            "15: spec.output: needs fields below it (Where results go)",
        ),
        (
            "files: {path: out}",
            "files: {path: 5}",
            "16: spec.output.files.path: 5 is no path; write text, such as data/orders",
        ),
        ("{name: late}", "{name: 5}", "3: metadata.name: 5 is no text; write it in quotes"),
        (
            "sql: SELECT o.id FROM orders o JOIN payments p ON o.id = p.id",
            "sql: [a]",
            "5: spec.sql: should be text",
        ),
        (
            TEXT[TEXT.index("    orders:\n") : TEXT.index("  output:")],
            "    {}\n",
            "6: spec.inputs: is empty; it needs at least one (The inputs, by the names that the SQL uses)",
        ),
        (
            TEXT[TEXT.index("    orders:\n") : TEXT.index("  output:")],
            "    []\n",
            "6: spec.inputs: needs fields below it (The inputs, by the names that the SQL uses); write {NAME: ...}",
        ),
        (
            "  join:",
            "  sql: SELECT 1\n  join:",
            "17: spec.sql: appears twice, first at line 5; remove one",
        ),
    ],
)
def test_a_mistake_is_named_at_its_line(old: str, new: str, expected: str) -> None:
    """One mistake, one line: file, line, field, what and the fix."""
    assert mistakes(old, new) == [f"late.yaml:{expected}"]


def test_all_mistakes_come_at_once() -> None:
    """In the order of the file, whatever kind they are."""
    text = (
        TEXT.replace("kind: StreamJoin", "kind: X")
        .replace("delay: 10s", "delay: soon")
        .replace("units", "unit")
    )
    with pytest.raises(SpecError) as error:
        model(text)
    assert [line.split(": ")[:2] for line in str(error.value).splitlines()] == [
        ["late.yaml:2", "kind"],
        ["late.yaml:9", "spec.inputs.orders.eventTime.delay"],
        ["late.yaml:17", "spec.join.unit"],
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "late.yaml:1: is not a StreamJoin; start with apiVersion, kind, metadata and spec"),
        ("- a", "late.yaml:1: is not a StreamJoin; start with apiVersion, kind, metadata and spec"),
        ("a: [1\nb: 2", "late.yaml:2: is not valid YAML: "),
        ("a: 1\n---\nb: 2", "late.yaml:1: holds 2 documents, no StreamJoin"),
        (f"a: 1\n---\n{TEXT}---\n{TEXT}", "late.yaml:22: holds 2 StreamJoins; keep one"),
        (
            "a: !!python/object:os.system {}",
            "late.yaml:1: is not valid YAML: could not determine a constructor",
        ),
        ("[" * 100_000, "late.yaml:1: is nested too deeply; write at most 100 levels"),
        (
            "\n".join(" " * level + "a:" for level in range(200)),
            "late.yaml:100: is nested",
        ),
        ("a: \x00", "late.yaml:1: is not valid YAML: "),
        ("a: 2024-99-99", "late.yaml:1: is not valid YAML: "),
    ],
)
def test_what_is_no_spec_at_all(text: str, message: str) -> None:
    """Text that is not valid YAML, or YAML of something else, is refused in one line."""
    with pytest.raises(SpecError) as error:
        model(text)
    assert str(error.value).startswith(message)


CLAIM = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: late}\n"


@pytest.mark.parametrize(
    "text", [f"{CLAIM}---\n{TEXT}", f"{TEXT}---\n{CLAIM}", f"---\n{TEXT}---\n", f"# none\n---\n{TEXT}"]
)
def test_a_file_may_hold_what_else_a_cluster_needs(text: str) -> None:
    """Of several documents the one StreamJoin is taken."""
    assert model(text) == model(TEXT)


def test_lines_are_those_of_the_file() -> None:
    """Whatever documents are before the StreamJoin."""
    with pytest.raises(SpecError, match=r"^late\.yaml:21: spec\.join\.unit: unknown field"):
        model(f"{CLAIM}---\n{TEXT.replace('units', 'unit')}")


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parents[3] / "manifests/examples").glob("0*.yaml")), ids=lambda f: f.name
)
def test_examples_for_a_cluster_are_read(file: Path) -> None:
    """As they are applied, with their claims."""
    assert load(file).spec.inputs


def test_keys_are_text() -> None:
    """`null` names a field, and `on` may be the name of a label: neither is a value where it is a key."""
    given = "files: {path: data/orders, format: csv, csv: {null: NONE}}"
    text = TEXT.replace("files: {path: data/orders}", given).replace(
        "{name: late}", "{name: late, labels: {on: 'x', yes: 'y', null: 'z'}}"
    )
    found = model(text)
    files = found.spec.inputs["orders"].files
    assert files is not None
    assert files.csv.null == "NONE"
    assert found.metadata.labels == {"on": "x", "yes": "y", "null": "z"}
    kafka = "{bootstrapServers: 'k:9092', topic: t, format: csv, csv: {null: NONE}}"
    read = model(TEXT.replace("files: {path: data/orders}", f"kafka: {kafka}")).spec.inputs["orders"].kafka
    assert read is not None
    assert (read.csv.null, read.csv.header) == ("NONE", False)


def test_aliases_cost_nothing() -> None:
    """A few lines of aliases that stand for billions of values, and one that holds itself, are refused at once."""
    bomb = "a: &a [1]\n" + "".join(
        f"{chr(c + 1)}: &{chr(c + 1)} [{', '.join([f'*{chr(c)}'] * 9)}]\n" for c in range(97, 115)
    )
    with pytest.raises(SpecError, match="unknown field"):
        model(bomb + "self: &self [*self]\n")


def test_an_unreadable_file_is_named() -> None:
    """So is one that is no text."""
    with pytest.raises(SpecError, match=r"^nowhere.yaml: cannot be read: No such file or directory$"):
        load("nowhere.yaml")


def test_two_inputs_may_read_one_folder() -> None:
    """Reading twice harms nobody; only writing needs folders apart."""
    model(TEXT.replace("generator: {rows: 10}", "files: {path: data/orders}"))


def test_executors_need_no_more_units_when_they_are_not_given() -> None:
    """A local run ignores them, so the default of 8 units is enough."""
    assert model(TEXT.replace("units: 16, ", "")).spec.join.units == 8


def test_postgres_is_a_table() -> None:
    """It can only be looked up, so retention does not ask it for an event time."""
    table = "postgres: {host: db, database: shop, table: payments, user: reader}"
    text = TEXT.replace("      eventTime: {column: at}\n      generator: {rows: 10}", f"      {table}")
    assert not model(text).spec.inputs["payments"].is_stream


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "security: {mode: verify-full}",
            "security.caFile: is missing, and verify-full checks the server against it",
        ),
        ("security: {caFile: ca.crt}", "security.caFile: is ignored with mode require"),
        ("security: {certFile: c.crt}", "security: certFile and keyFile belong together"),
        ("security: {mode: disable, certFile: c, keyFile: k}", "security: certFile and keyFile need TLS"),
        ("security: {mode: prefer}", "security.mode"),
        (
            "passwordFile: p, passwordEnv: P",
            "passwordFile: and passwordEnv, P, are two passwords; remove one of them",
        ),
    ],
)
def test_security_of_postgres(given: str, said: str) -> None:
    """What would not be looked at, or is missing, is named."""
    table = f"postgres: {{host: db, database: shop, table: payments, user: reader, {given}}}"
    text = TEXT.replace("      eventTime: {column: at}\n      generator: {rows: 10}", f"      {table}")
    with pytest.raises(SpecError, match=r"spec\.inputs\.payments\.postgres") as refused:
        model(text)
    assert said in str(refused.value)


def test_a_stream_of_postgres_follows_changes() -> None:
    """Else it is a table, and the field that makes it a stream is named."""
    table = "{role: stream, schema: id BIGINT, postgres: {host: db, database: d, user: u, table: t}}"
    start, stop = TEXT.index("    payments:\n"), TEXT.index("  output:")
    with pytest.raises(SpecError, match=r"role: is a stream for .* changes; add postgres\.changes, or"):
        model(f"{TEXT[:start]}    payments: {table}\n{TEXT[stop:]}")


def test_a_connection_string_says_it_all() -> None:
    """TLS and the password too: two places could contradict each other."""
    for name, given in (("security", "{mode: disable}"), ("passwordFile", "p")):
        table = f"postgres: {{uriEnv: SHOP, table: payments, {name}: {given}}}"
        text = TEXT.replace("      eventTime: {column: at}\n      generator: {rows: 10}", f"      {table}")
        with pytest.raises(SpecError, match=rf"postgres\.{name}: stands in the connection string of uriEnv"):
            model(text)


REGISTRY = "kafka: {topic: t, format: avro, bootstrapServers: 'k:1', registry: {url: %s}}"
BROKERS = "kafka: {topic: t, format: json, bootstrapServers: %s}"
LOGIN = (
    "kafka: {topic: t, format: json, bootstrapServers: 'k:1',"
    " security: {protocol: SASL_SSL, mechanism: PLAIN, usernameEnv: U, passwordEnv: %s}}"
)
TABLE = "postgres: {host: h, database: d, user: u, table: t, %s}"


@pytest.mark.parametrize(
    ("source", "place"),
    [
        (TABLE % "passwordEnv: 71423", "passwordEnv: is no text"),
        (TABLE % "passwordEnv: [71423]", "passwordEnv: should be text"),
        (TABLE % "passwordFile: 71423", "passwordFile: is no path"),
        (TABLE % "passwordFile: 's3://71423'", "passwordFile: is on an object store"),
        (
            TABLE % "passwordEnv: '71423 pw!'",
            "passwordEnv: does not fit; write its name, such as SHOP_PASSWORD",
        ),
        ("postgres: {table: t, uriEnv: 'postgres://u:71423@h/d'}", "uriEnv: does not fit; write its name"),
        (
            LOGIN % "'71423 pw!'",
            "security.passwordEnv: does not fit; write its name, such as SHOP_PASSWORD",
        ),
        (REGISTRY % "'https://u:71423@h'", "registry.url: is not the address of a registry"),
        (REGISTRY % "71423", "registry.url: is no text"),
        (BROKERS % "'SASL://u:71423@h:1'", "bootstrapServers: is not a list of brokers"),
    ],
)
def test_a_secret_in_place_of_its_name_is_in_no_error(source: str, place: str) -> None:
    """Whatever is wrong with it, also where it is a number."""
    with pytest.raises(SpecError) as error:
        parse(with_input(source), "secret.yaml", Path())
    assert place in str(error.value) and "71423" not in str(error.value)


@pytest.mark.parametrize("entry", ["{secret: '71423 PW', key: k}", "{secret: s, key: '71423 pw!'}"])
def test_a_secret_in_place_of_where_it_is_stored_is_in_no_error(entry: str) -> None:
    with pytest.raises(SpecError, match="does not fit") as error:
        parse(f"{TEXT}  env: {{SHOP_PASSWORD: {entry}}}\n", "secret.yaml", Path())
    assert "71423" not in str(error.value)


def with_input(source: str) -> str:
    """Return a spec whose only input is this one."""
    start, stop = TEXT.index("    orders:\n"), TEXT.index("  output:")
    return f"{TEXT[:start]}    orders: {{schema: 'id BIGINT', {source}}}\n{TEXT[stop:]}"


@pytest.mark.parametrize("kind", [StreamJoin, Cases])
def test_every_pattern_has_words(kind: type[Model]) -> None:
    """No mistake is told by a regular expression."""
    found: list[object] = [kind.model_json_schema()]
    while found:
        node = found.pop()
        found += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        if isinstance(node, dict) and isinstance(node.get("pattern"), str):
            assert node["pattern"] in PATTERNS
