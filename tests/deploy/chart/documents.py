"""A StreamJoin that is right, what makes it wrong, with the field and fix that are to be named, and what does not."""

import copy
from typing import Any

GONE = object()
GOOD: dict[str, Any] = {
    "apiVersion": "streamjoin.dev/v1alpha1",
    "kind": "StreamJoin",
    "metadata": {"name": "good"},
    "spec": {
        "sql": "SELECT o.k FROM orders o JOIN payments p ON o.k = p.k",
        "inputs": {
            "orders": {"schema": "k BIGINT, at TIMESTAMP", "files": {"path": "/data/in/orders"}},
            "payments": {"schema": "k BIGINT, at TIMESTAMP", "generator": {"rows": 10}},
        },
        "output": {"files": {"path": "/data/out"}},
        "join": {"units": 8},
        "checkpoint": {"path": "/data/checkpoint"},
        "volumes": [
            {"mountPath": "/data", "claim": "data"},
            {"mountPath": "/srv/old", "claim": "data", "readOnly": True},
        ],
        "executors": {"min": 1, "max": 4, "cores": 2, "memory": "2Gi"},
    },
}
KEEPS = {"files": {"path": "/data/out"}, "onError": "deadLetter"}
TABLE = {"host": "db", "database": "d", "user": "u", "table": "t"}
TOPIC = {"bootstrapServers": "kafka:9092", "topic": "t"}
UPSERT = {"mode": "upsert", "key": ["k"]}
WRITTEN = {**TOPIC, "keyFormat": "avro"}
AVRO = {"format": "avro", "registry": {"url": "http://registry:8081"}}
FILES = "spec.inputs.orders.files"
ORDERS, KAFKA = "spec.inputs.orders", "spec.inputs.orders.kafka"
TLS = f"{ORDERS}.postgres.security"


def table(**security: Any) -> dict[str, Any]:
    """A table of a database that is reached so."""
    postgres = {"host": "db", "database": "shop", "user": "app", "table": "orders", "security": security}
    return {"schema": "k BIGINT", "postgres": postgres}


def topic(**fields: Any) -> dict[str, Any]:
    """An input over a topic."""
    return {
        "schema": "k BIGINT, at TIMESTAMP",
        "kafka": {"bootstrapServers": "k:9092", "topic": "t", **fields},
    }


LOGIN = {
    "mechanism": "PLAIN",
    "usernameEnv": "USER",
    "passwordFile": "/srv/old/password",
    "caFile": "/srv/old/ca.crt",
}
BAD: list[tuple[str, Any, str, str]] = [  # what is changed, to what, the field named, the fix
    ("metadata.name", "a" * 41, "metadata.name", "shorten it"),
    ("metadata.name", "7-seas", "metadata.name", "begin with a letter"),
    ("metadata.name", "a.b", "metadata.name", "write lower-case letters"),
    ("spec.sql", " ", "spec.sql", "write a SELECT"),
    ("spec.sql", GONE, "spec.sql", "Required value"),
    ("spec.sqll", "x", "spec.sqll", "unknown field"),
    ("spec.env", {"A B": {"secret": "s", "key": "k"}}, "spec.env", "is not that of a credential"),
    ("spec.env", {"SPARK_HOME": {"secret": "s", "key": "k"}}, "spec.env", "is not that of a credential"),
    ("spec.env", {"KEY": {"secret": "s", "key": "a/b"}}, "spec.env.KEY.key", "is not an entry of a Secret"),
    ("spec.env", {"KEY": {"secret": "s"}}, "spec.env.KEY.key", "Required value"),
    ("spec.inputs", {}, "spec.inputs", "at least 1"),
    (
        "spec.inputs.bad name",
        {"schema": "k INT", "generator": {}},
        "spec.inputs",
        "write letters, digits and '_'",
    ),
    (
        "spec.inputs.Orders",
        {"schema": "k BIGINT", "generator": {}},
        "spec.inputs",
        "rename one",
    ),
    (f"{FILES}.path", "s3://bucket/in", f"{FILES}.path", "name a folder of a volume"),
    (f"{FILES}.path", "/elsewhere", "spec.inputs", "lies under no volume; mount one"),
    (f"{FILES}.path", "/database/in", "spec.inputs", "lies under no volume"),
    (f"{FILES}.path", "", f"{FILES}.path", "at least 1"),
    (f"{FILES}.csv", {"header": False}, f"{FILES}.csv", "write format: csv"),
    (f"{FILES}.csv", {"delimiter": ";;"}, f"{FILES}.csv.delimiter", "write one ASCII character"),
    (f"{FILES}.csv", {"quote": ","}, f"{FILES}.csv.quote", "change one of them"),
    (
        ORDERS,
        topic(format="csv", csv={"header": False, "delimiter": "§"}),
        f"{KAFKA}.csv.delimiter",
        "write one ASCII character",
    ),
    (
        "spec.inputs.payments.generator.skew",
        10.5,
        "spec.inputs.payments.generator.skew",
        "less than or equal to 10",
    ),
    (f"{FILES}.format", "orc", f"{FILES}.format", 'supported values: "parquet", "csv", "jsonl"'),
    (f"{FILES}.pth", "x", f"{FILES}.pth", "unknown field"),
    (f"{FILES}.done", "archive", f"{FILES}.done", "write both or none"),
    (f"{FILES}.archive", "/data/read", f"{FILES}.done", "write both or none"),
    (
        ORDERS,
        {"schema": "k BIGINT", "role": "table", "files": {"path": "/data/in", "done": "delete"}},
        FILES,
        "files.done is for streams",
    ),
    (
        "spec.output.files.compact",
        {"every": "0s"},
        "spec.output.files.compact.every",
        "is zero",
    ),
    (
        "spec.inputs.orders.kafka",
        {"bootstrapServers": "k:9092", "topic": "t"},
        "spec.inputs.orders",
        "write exactly one of",
    ),
    (
        "spec.inputs.payments.generator",
        GONE,
        "spec.inputs.payments",
        "write exactly one of files, generator, kafka or",
    ),
    ("spec.inputs.payments.role", "table", "spec.inputs.payments.role", "remove role, or use another source"),
    (
        "spec.inputs.payments.generator.rows",
        0,
        "spec.inputs.payments.generator.rows",
        "greater than or equal to 1",
    ),
    (
        "spec.inputs.orders.eventTime",
        {"column": "at", "delay": "10"},
        "spec.inputs.orders.eventTime.delay",
        "is not a duration; write each unit once",
    ),
    (ORDERS, table(mode="verify-full"), f"{TLS}.mode", "correct mode or caFile"),
    (ORDERS, table(caFile="/data/ca.crt"), f"{TLS}.mode", "correct mode or caFile"),
    (ORDERS, table(keyFile="/data/key"), f"{TLS}.mode", "write both or none"),
    (ORDERS, table(mode="prefer"), f"{TLS}.mode", "supported values"),
    (ORDERS, topic(bootstrapServers="k"), f"{KAFKA}.bootstrapServers", "write HOST:PORT"),
    (ORDERS, topic(topic="a b"), f"{KAFKA}.topic", "write letters, digits"),
    (ORDERS, topic(topics=["b"]), KAFKA, "write exactly one of topic or topics"),
    (ORDERS, topic(format="xml"), f"{KAFKA}.format", 'supported values: "json", "arrow", "csv"'),
    (
        ORDERS,
        topic(format="avro"),
        f"{KAFKA}.format",
        "registry and format: avro or protobuf belong together",
    ),
    (
        ORDERS,
        topic(format="avro", registry={"url": "http://registry:8081", "message": "shop.Order"}),
        f"{KAFKA}.registry.message",
        "is for format: protobuf",
    ),
    (
        ORDERS,
        topic(keyFormat="avro"),
        f"{KAFKA}.keyFormat",
        "keyFormat is text, or avro or protobuf as format is",
    ),
    (
        ORDERS,
        topic(format="avro", registry={"url": "http://registry:8081", "keySubject": "orders-key"}),
        f"{KAFKA}.registry.keySubject",
        "is for keyFormat: avro or protobuf; write both or none",
    ),
    (ORDERS, topic(onBadMessage="deadLetter"), f"{KAFKA}.onBadMessage", "write both or none"),
    (f"{ORDERS}.onLate", "deadLetter", f"{ORDERS}.onLate", "needs an eventTime"),
    (f"{ORDERS}.onError", "deadLetter", "spec.deadLetters", "write both, or none"),
    ("spec.output.onError", "deadLetter", "spec.deadLetters", "write both, or none"),
    ("spec.deadLetters", {"path": "/data/dead"}, "spec.deadLetters", "write both, or none"),
    (
        "spec",
        {**GOOD["spec"], "output": KEEPS, "deadLetters": {"path": "/srv/old/dead"}},
        "spec.deadLetters.path",
        "under no volume that can be written",
    ),
    (
        ORDERS,
        topic(onBadMessage="deadLetter", deadLetters={"path": "/srv/old/bad"}),
        "spec.inputs",
        "under no volume that can be written",
    ),
    (
        ORDERS,
        topic(security={"protocol": "SASL_SSL"}),
        f"{KAFKA}.security.protocol",
        "write all of them or none",
    ),
    (ORDERS, topic(security={"passwordEnv": "P"}), f"{KAFKA}.security.protocol", "write all of them or none"),
    (
        ORDERS,
        topic(security={"caFile": "/data/ca"}),
        f"{KAFKA}.security.protocol",
        "are for SSL and SASL_SSL",
    ),
    (
        ORDERS,
        topic(security={"protocol": "SSL", "keyFile": "/data/key"}),
        f"{KAFKA}.security.certFile",
        "belong together",
    ),
    ("spec.output.noop", {}, "spec.output", "write exactly one of files, kafka, postgres, console or noop"),
    ("spec.output.files", GONE, "spec.output", "write exactly one of"),
    ("spec.output", {"mode": "upsert", "noop": {}}, "spec.output.key", "write both or none"),
    ("spec.output.key", ["k"], "spec.output.key", "write both or none"),
    (
        "spec.output",
        {"kafka": {**WRITTEN, **AVRO}},
        "spec.output.kafka",
        "messages have no key; add kafka.key",
    ),
    (
        "spec.output",
        {"kafka": {**TOPIC, "format": "protobuf"}},
        "spec.output.kafka.format",
        "registry and format: avro or protobuf belong together",
    ),
    (
        "spec.output",
        {"kafka": {**TOPIC, **AVRO, "format": "protobuf", "keyFormat": "avro", "key": ["k"]}},
        "spec.output.kafka.keyFormat",
        "keyFormat is text, or avro or protobuf as format is",
    ),
    (
        "spec.output",
        {"kafka": {**WRITTEN, "key": ["k"]}},
        "spec.output.kafka.keyFormat",
        "keyFormat is text, or avro or protobuf as format is",
    ),
    ("spec.output", {**UPSERT, "files": {"path": "/data/out"}}, "spec.output.mode", "correct mode"),
    ("spec.output", {"mode": "changelog", "postgres": TABLE}, "spec.output.mode", "correct mode"),
    ("spec.output", {**UPSERT, "kafka": {**TOPIC, "key": ["k"]}}, "spec.output.key", "remove kafka.key"),
    ("spec.output", {"kafka": {**TOPIC, "format": "debezium"}}, "spec.output.mode", "correct kafka.format"),
    (
        "spec.output",
        {**UPSERT, "kafka": {**TOPIC, "format": "arrow"}},
        "spec.output.mode",
        "correct kafka.format",
    ),
    (
        "spec.output",
        {"postgres": {**TABLE, "security": {"mode": "verify-full"}}},
        "spec.output.postgres.security.mode",
        "correct mode",
    ),
    (
        "spec.output.files.path",
        "/srv/old/out",
        "spec.output.files.path",
        "under no volume that can be written; mount one",
    ),
    ("spec.output.files.path", "/data/checkpoint/out", "spec.output.files.path", "use folders apart"),
    ("spec.output.files.path", "/data/in", "spec.inputs", "use folders apart"),
    ("spec.checkpoint.path", "/nowhere", "spec.checkpoint.path", "mount one that holds it"),
    ("spec.checkpoint.path", "gs://b/c", "spec.checkpoint.path", "is on an object store"),
    ("spec.checkpoint.path", "/data", "spec.output.files.path", "use folders apart"),
    ("spec.checkpoint.reset", "a b", "spec.checkpoint.reset", "is not a word; write letters"),
    ("spec.checkpoint", GONE, "spec.checkpoint", "Required value"),
    ("spec.join.units", 6, "spec.join.units", "write 1, 2, 4, 8"),
    ("spec.join.units", 131072, "spec.join.units", "less than or equal to 65536"),
    (
        "spec.join.units",
        4,
        "spec.join",
        "units is less than executors.max x executors.cores; raise units",
    ),
    (
        "spec.join.retention",
        "1h",
        "spec.join",
        "needs eventTime on every stream; add it, or remove retention",
    ),
    ("spec.join.retention", "30m2h", "spec.join.retention", "the largest first, such as 10s"),
    ("spec.join.retention", "", "spec.join.retention", "is not a duration"),
    ("spec.join.retention", "0s", "spec.join.retention", "write 10s, 500ms or 2h30m"),
    ("spec.executors.min", 5, "spec.executors.min", "lower min or raise max"),
    ("spec.executors.spare", 9, "spec.executors.spare", "lower spare or raise max"),
    (
        "spec.executors.instances",
        5,
        "spec.executors.instances",
        "is not between min and max; change one",
    ),
    ("spec.executors.memory", "8GB", "spec.executors.memory", "write 8Gi or 512Mi"),
    (
        "spec.executors.memory",
        "900Mi",
        "spec.executors.memory",
        "write more than 812Mi and 150Mi for each core",
    ),
    ("spec.executors.cores", 0, "spec.executors.cores", "greater than or equal to 1"),
    ("spec.executors.max", "four", "spec.executors.max", "must be of type integer"),
    ("spec.scaling", {"target": 0.9}, "spec.scaling.target", "write low < target < high"),
    ("spec.scaling", {"low": 0.6}, "spec.scaling.target", "write low < target < high"),
    ("spec.scaling", {"high": 1.5}, "spec.scaling.high", "less than or equal to 1"),
    ("spec.scaling", {"period": "0s"}, "spec.scaling.period", "write 60s"),
    (
        "spec.volumes",
        [{"mountPath": "/data"}],
        "spec.volumes[0]",
        "write exactly one of claim, hostPath or secret",
    ),
    (
        "spec.volumes",
        [{"mountPath": "/data", "claim": "c", "hostPath": "/d"}],
        "spec.volumes[0]",
        "write exactly one of",
    ),
    ("spec.volumes", [{"mountPath": "data", "claim": "c"}], "spec.volumes[0].mountPath", "write /data"),
    *(
        (
            "spec.volumes",
            [{"mountPath": path, "claim": "c"}],
            "spec.volumes[0].mountPath",
            "could hide files of the image",
        )
        for path in (
            "/",
            "//etc",
            "/etc",
            "/var/lib",
            "/var/run/secrets/kubernetes.io/serviceaccount",
            "/data/../etc",
        )
    ),
    *(
        ("spec.env", {name: {"secret": "s", "key": "k"}}, "spec.env", "is not that of a credential")
        for name in (
            "_JAVA_OPTIONS",
            "BASH_ENV",
            "NUMBA_CACHE_DIR",
            "CLASSPATH",
            "SPARK_AUTH_SECRET",
            "LD_PRELOAD",
            "OTEL_PYTHON_CONFIGURATOR",
            "A_OTEL_TRACES_SAMPLER",
            "OPENLINEAGE__TRANSPORT__TYPE",
            "SSL_CERT_FILE",
        )
    ),
    ("spec.volumes", [{"mountPath": "/data", "claim": "c"}] * 2, "spec.volumes[1]", "Duplicate value"),
    ("spec.image", "a b", "spec.image", "write it without spaces"),
    ("spec.suspend", "yes", "spec.suspend", "must be of type boolean"),
]
FINE: list[tuple[str, Any]] = [
    ("metadata.name", "a" * 40),
    (ORDERS, topic()),
    (ORDERS, table(mode="verify-full", caFile="/data/ca.crt")),
    (ORDERS, table(mode="disable")),
    (ORDERS, topic(bootstrapServers="a:1, [::1]:2,c.d:3", security={"protocol": "SASL_SSL", **LOGIN})),
    (
        ORDERS,
        topic(
            onBadMessage="deadLetter", deadLetters={"path": "/data/bad"}, format="csv", csv={"header": False}
        ),
    ),
    ("spec", {**GOOD["spec"], "output": KEEPS, "deadLetters": {"path": "/data/dead"}}),
    ("spec.inputs.orders.role", "table"),
    (f"{FILES}.csv", {"header": True}),
    (FILES, {"path": "/data/in/orders", "format": "csv", "csv": {"delimiter": "\t", "quote": "'"}}),
    (f"{FILES}.path", "../in"),  # for a local run; the operator judges
    (f"{FILES}.path", "/srv/old/in"),
    (FILES, {"path": "/data/in/orders", "done": "archive", "archive": "/data/read"}),
    ("spec.output.files.compact", {}),
    ("spec.output", {**UPSERT, "postgres": TABLE}),
    ("spec.output", {"postgres": TABLE}),
    ("spec.output", {**UPSERT, "kafka": {**TOPIC, "format": "debezium"}}),
    ("spec.output", {"mode": "changelog", "key": ["k"], "kafka": {**TOPIC, "format": "arrow"}}),
    ("spec.output.mode", "changelog"),
    ("spec.volumes", [{"mountPath": "/data/", "claim": "data"}]),
    ("spec.volumes", [{"mountPath": "/data", "hostPath": "/srv"}]),  # the operator says whether it is allowed
    ("spec.checkpoint.reset", "second.try"),
    ("spec.env", {"PGPASSWORD": {"secret": "shop-login", "key": "password"}}),
    *(
        ("spec.env", {name: {"secret": "streamjoin-traces", "key": "k"}})
        for name in (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
            "OTEL_EXPORTER_OTLP_CLIENT_KEY",
            "OTEL_TRACES_SAMPLER_ARG",
            "OPENLINEAGE_HEADERS",
            "OPENLINEAGE_CERTIFICATE",
            "OPENLINEAGE_CLIENT_CERTIFICATE",
        )
    ),
    ("spec.executors.instances", 4),
    ("spec.executors", GONE),
    ("spec.executors.memory", "1113Mi"),  # with two cores
    ("spec.join", GONE),
    ("spec.scaling", {}),
    ("spec.volumes", [{"mountPath": f"/data{n or ''}", "claim": "data"} for n in range(16)]),
]


def changed(document: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    """A copy in which one field is another, or gone."""
    result = copy.deepcopy(document)
    *path, last = place.split(".")
    node = result
    for step in path:
        node = node.setdefault(step, {})
    if value is GONE:
        del node[last]
    else:
        node[last] = value
    return result
