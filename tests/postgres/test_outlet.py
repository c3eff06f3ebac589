"""Results in a table of a real PostgreSQL: every type, modes, each batch once, takeovers, refusals, a server that dies."""

import itertools
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from joinlib.compiled import results
from joinlib.errors import NotReady, SpecError, StateError
from joinlib.sink.changing import changing
from joinlib.sink.config import SinkConfig
from joinlib.sink.outlet import StagedLost
from joinlib.sink.postgres.config import PostgresSinkConfig
from joinlib.sink.postgres.outlet import TableOutlet
from joinlib.sink.postgres.sink import PostgresSink
from joinlib.spec.output import Output
from tests.postgres.database import PASSWORD, Database

TABLES = map("sunk_{}".format, itertools.count())
SCHEMA = pa.schema({"k": pa.int64(), "v": pa.string()})
Change = tuple[int | None, str, int]


class Run:
    """One run of a job that writes into a table."""

    def __init__(
        self,
        server: Database,
        table: str,
        mode: str = "upsert",
        job: str = "3b0f5f5e-aaaa-bbbb-cccc-000000000001",
        begun: int | None = None,
        schema: pa.Schema = SCHEMA,
        marks: Callable[[int], str] = "mark {}".format,
        **fields: Any,
    ) -> None:
        key = ["k"] if mode == "upsert" else []
        postgres = {**server.fields, "table": table, "patience": "5s", **fields}
        self.output = Output.model_validate({"mode": mode, "key": key, "postgres": postgres})
        self.may = True
        self.outlet = TableOutlet(results(self.output), schema, self._ours, marks)
        self.outlet.open(job, begun)

    def _ours(self) -> None:
        if not self.may:
            raise NotReady("another run has begun")

    @property
    def target(self) -> PostgresSinkConfig:
        return self.outlet.target

    def stage(self, batch: int, *frames: pa.RecordBatch) -> list[str]:
        """What one task does; the files of its receipts."""
        config = SinkConfig("postgres", self.output.mode, self.output.key, postgres=self.target)
        sink = changing(PostgresSink(self.target, batch), config, batch)
        told: list[str] = []
        for frame in frames:
            sink.write(frame)
            told += sink.next_unit()[0]
        sink.close()
        return told

    def batch(self, number: int, *tasks: Sequence[Change]) -> None:
        """A batch of several tasks."""
        self.outlet.take(number, [name for task in tasks for name in self.stage(number, changes(task))])


def changes(rows: Sequence[Change]) -> pa.RecordBatch:
    k, v, w = zip(*rows, strict=True)
    return pa.record_batch({"k": pa.array(k, pa.int64()), "v": list(v), "$weight": list(w)})


@pytest.fixture
def table(database: Database) -> str:
    name = next(TABLES)
    database.execute(f"CREATE TABLE {name} (k bigint PRIMARY KEY, v text, extra text DEFAULT 'x')")
    return name


def rows(database: Database, table: str, columns: str = "k, v") -> list[tuple[Any, ...]]:
    found = database.execute(f"SELECT {columns} FROM {table} ORDER BY 1")
    assert found is not None
    return list(zip(*(c.to_pylist() for c in found.columns), strict=True))


def staged(database: Database) -> list[str]:
    found = database.execute("SELECT relname::text FROM pg_class WHERE relname LIKE 'streamjoin_staged%'")
    assert found is not None
    return found.column(0).to_pylist()


def test_rows_are_replaced_and_deleted(database: Database, table: str) -> None:
    """By key, over batches and tasks; columns that the result does not have keep their values."""
    run = Run(database, table)
    run.batch(0, [(1, "a", 1), (2, "b", 1)], [(3, "c", 1)])
    assert rows(database, table) == [(1, "a"), (2, "b"), (3, "c")]
    database.execute(f"UPDATE {table} SET extra = 'mine' WHERE k = 1")
    run.batch(4, [(1, "a", -1), (2, "b", -1), (1, "A", 1)], [(4, "d", 1)])
    assert rows(database, table, "k, v, extra") == [(1, "A", "mine"), (3, "c", "x"), (4, "d", "x")]
    assert rows(database, run.outlet.target.schema + "." + run.target.staging, "part") == []
    run.outlet.close()
    assert run.target.staging not in staged(database)


def test_rows_are_added(database: Database) -> None:
    """In mode append, into a table without a key, as often as they come."""
    name = next(TABLES)
    database.execute(f"CREATE TABLE {name} (v varchar(5), k bigint)")
    run = Run(database, name, "append")
    plain = pa.record_batch({"k": [1, 1], "v": ["a", "a"]})
    run.outlet.take(0, [*run.stage(0, plain), *run.stage(0, plain.slice(0, 1), plain)])
    assert rows(database, name) == [(1, "a")] * 5
    run.outlet.take(1, [])
    assert rows(database, name) == [(1, "a")] * 5


def test_a_batch_that_runs_again_does_nothing(database: Database, table: str) -> None:
    """Killed after the commit: the number is there. Another batch of the same number is refused."""
    Run(database, table, begun=None).batch(7, [(1, "a", 1)])
    again = Run(database, table, begun=7)
    database.execute(f"UPDATE {table} SET v = 'changed'")
    again.batch(7, [(1, "a", 1)])
    assert rows(database, table) == [(1, "changed")]
    other = Run(database, table, begun=7, marks=lambda _: "other")
    with pytest.raises(StateError, match=r"another batch 7 than the one.*old copy"):
        other.batch(7, [(1, "b", 1)])
    assert rows(database, table) == [(1, "changed")]


def test_an_older_copy_is_refused(database: Database, table: str) -> None:
    """At the start, without stopping the run that writes; and if its batches fall behind later."""
    run = Run(database, table)
    run.batch(5, [(1, "a", 1)])
    with pytest.raises(
        StateError, match=r"has batch 5 of this checkpoint, which is at batch 4: it is an old copy"
    ):
        Run(database, table, begun=4)
    with pytest.raises(StateError, match="its beginning"):
        Run(database, table)
    with pytest.raises(StateError, match="has batch 5 of this checkpoint, which is at batch 3"):
        run.batch(3, [(1, "b", 1)])
    run.batch(6, [(2, "b", 1)])
    assert rows(database, table) == [(1, "a"), (2, "b")]
    Run(database, table, job="another-job").batch(0, [(9, "z", 1)])  # a job of its own
    assert len(rows(database, table)) == 3


def test_the_newest_run_writes(database: Database, table: str) -> None:
    """An older one of the same checkpoint ends, wherever it is; its staging table goes."""
    old = Run(database, table)
    parts = old.stage(0, changes([(1, "old", 1)]))
    new = Run(database, table)
    assert old.target.staging not in staged(database)
    with pytest.raises(NotReady, match="another run of this checkpoint has taken over"):
        old.outlet.take(0, parts)
    with pytest.raises(NotReady, match="another run of this checkpoint has taken over"):
        old.stage(0, changes([(1, "old", 1)]))
    new.batch(0, [(1, "new", 1)])
    new.may = False
    with pytest.raises(NotReady, match="another run has begun"):
        new.batch(1, [(1, "newer", 1)])
    assert rows(database, table) == [(1, "new")]


def test_parts_of_dead_attempts_are_left_out(database: Database, table: str) -> None:
    """Only what receipts name counts; the next batch starts with an empty table."""
    run = Run(database, table)
    run.stage(0, changes([(1, "dead", 1)]))
    run.batch(0, [(1, "a", 1)])
    assert rows(database, table) == [(1, "a")]


def test_what_was_staged_is_lost(database: Database, table: str) -> None:
    """A server that crashes empties the staging table: the batch is computed again, not left out."""
    run = Run(database, table, patience="30s")
    parts = run.stage(0, changes([(1, "a", 1), (2, "b", 1)]))
    database.crash()
    database.start()
    with pytest.raises(StagedLost, match="2 rows of batch 0 were staged, and 0 are there"):
        run.outlet.take(0, parts)
    assert rows(database, table) == []
    run.batch(0, [(1, "a", 1), (2, "b", 1)])
    assert len(rows(database, table)) == 2


def test_nothing_is_there_of_a_batch_that_fails(database: Database, table: str) -> None:
    """The error quotes no value; the batch can be applied once its cause is gone."""
    database.execute(f"ALTER TABLE {table} ADD CONSTRAINT short CHECK (length(v) < 9)")
    run = Run(database, table)
    bad = [(1, "fine", 1), (2, "much too long", 1)]
    with pytest.raises(SpecError, match='violates check constraint "short"') as refused:
        run.batch(0, bad)
    assert "too long" not in str(refused.value)
    assert rows(database, table) == []
    database.execute(f"ALTER TABLE {table} DROP CONSTRAINT short")
    run.batch(0, bad)
    assert len(rows(database, table)) == 2


def test_a_key_that_is_not_one(database: Database, table: str) -> None:
    """Two rows of a key from two units, and a key that is NULL: errors that name the column."""
    run = Run(database, table)
    with pytest.raises(SpecError, match=r"output\.key: the result has several rows with the same k in table"):
        run.batch(0, [(1, "a", 1)], [(1, "b", 1)])
    with pytest.raises(SpecError, match=r"output\.key: the result has several rows with the same k, and"):
        run.batch(0, [(1, "a", 1), (1, "b", 1)])
    with pytest.raises(SpecError, match=r"output\.key: k is NULL in a row.*WHERE k IS NOT NULL"):
        run.batch(0, [(None, "a", 1)])
    assert rows(database, table) == []


TYPES: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "k": ("bigint PRIMARY KEY", pa.int32(), [1, 2]),
    "tiny": ("smallint", pa.int8(), [-1, 127]),
    "big": ("numeric", pa.int64(), [-(2**63), 2**63 - 1]),
    "real": ("double precision", pa.float32(), [0.5, float("inf")]),
    "num": ("numeric(14, 4)", pa.decimal128(12, 2), [Decimal("-0.10"), Decimal("9999999999.99")]),
    "id": ("uuid", pa.string(), [f"0000000{i}-0000-0000-0000-000000000000" for i in range(2)]),
    "mood": ("mood", pa.string(), ["happy", "sad"]),
    "doc": ("jsonb", pa.string(), ['{"a": 1}', "[]"]),
    "list": ("jsonb", pa.list_(pa.int64()), [[1, 2], []]),
    "struct": ("json", pa.struct({"a": pa.string()}), [{"a": 'x"'}, {"a": None}]),
    "flag": ("boolean", pa.bool_(), [True, False]),
    "raw": ("bytea", pa.binary(), [b"", b"\x00'"]),
    "day": ("date", pa.date32(), [date(2026, 1, 1), date(1969, 12, 31)]),
    "at": ("timestamptz", pa.timestamp("us", "UTC"), [datetime(2026, 1, n, 5, tzinfo=UTC) for n in (1, 2)]),
    "local": ("timestamp", pa.timestamp("us"), [datetime(2026, 1, n, 5) for n in (1, 2)]),  # noqa: DTZ001
    'odd "name"': ("positive", pa.int16(), [3, 4]),
    "nothing": ("integer", pa.null(), [None, None]),
    "select": ("varchar(9)", pa.large_string(), ["ä; --", "it's"]),
}


def test_every_type(database: Database) -> None:
    """What the result holds is in the table, whatever the table's type for it; NULL too, and odd names."""
    name = f'odd "{next(TABLES)}"'
    database.execute("CREATE TYPE mood AS ENUM ('happy', 'sad')")
    database.execute("CREATE DOMAIN positive AS integer CHECK (VALUE > 0)")
    quoted = {c: '"' + c.replace('"', '""') + '"' for c in (*TYPES, name)}
    columns = ", ".join(f"{quoted[c]} {kind}" for c, (kind, _, _) in TYPES.items())
    database.execute(f"CREATE TABLE {quoted[name]} ({columns})")
    schema = pa.schema([(c, kind) for c, (_, kind, _) in TYPES.items()])
    made = pa.record_batch([pa.array(v, kind) for _, kind, v in TYPES.values()], schema=schema)
    empty = pa.record_batch(
        [pa.array([3 if c == "k" else None], kind) for c, (_, kind, _) in TYPES.items()], schema=schema
    )
    run = Run(database, name, schema=schema)
    run.outlet.take(0, run.stage(0, made))
    run.outlet.take(1, run.stage(1, empty))
    casts = ", ".join(f"{quoted[c]}::text" for c in TYPES)
    told = rows(database, quoted[name], casts)
    assert told[0] == (
        *("1", "-1", str(-(2**63)), "0.5", "-0.1000", TYPES["id"][2][0], "happy", '{"a": 1}', "[1, 2]"),
        *('{"a":"x\\""}', "true", "\\x", "2026-01-01", "2026-01-01 05:00:00+00", "2026-01-01 05:00:00", "3"),
        *(None, "ä; --"),
    )
    assert told[2] == ("3", *(None for _ in range(len(TYPES) - 1)))
    gone = pa.record_batch(
        [*made.columns, pa.array([-1, -1])], schema.append(pa.field("$weight", pa.int64()))
    )
    run.outlet.take(2, run.stage(2, gone))
    assert len(rows(database, quoted[name], casts)) == 1


REFUSED: list[tuple[str, str, pa.Schema, str]] = [
    ("", "upsert", SCHEMA, r"there is no table {t}; create it"),
    ("VIEW {t} AS SELECT 1::bigint AS k, ''::text AS v", "append", SCHEMA, "is no table, but a view"),
    ("TABLE {t} (k bigint PRIMARY KEY)", "upsert", SCHEMA, "has no column 'v'; it has k: add one"),
    ("TABLE {t} (k int PRIMARY KEY, v text)", "upsert", SCHEMA, "'k' of {t} is integer, which does not hold every BIGINT"),
    ("TABLE {t} (k bigint, v text)", "upsert", SCHEMA, r"output\.key: table {t} has no primary key or unique constraint on exactly k"),
    ("TABLE {t} (k bigint, v text, PRIMARY KEY (k, v))", "upsert", SCHEMA, "on exactly k"),
    ("TABLE {t} (k bigint, v text, UNIQUE (k) DEFERRABLE)", "upsert", SCHEMA, "on exactly k"),
    ("TABLE {t} (k bigint, v text, w int NOT NULL)", "append", SCHEMA, "'w' of {t} is NOT NULL, and the result has no such column"),
    ("TABLE {t} (k bigint GENERATED ALWAYS AS IDENTITY, v text)", "append", SCHEMA, "'k' of {t} is generated"),
    ("TABLE {t} (k numeric(18), v text)", "append", SCHEMA, "numeric\\(18,0\\), which does not hold every BIGINT"),
    ("TABLE {t} (k numeric(9, 2))", "append", pa.schema({"k": pa.decimal128(9, 3)}), "does not hold every DECIMAL"),
    ("TABLE {t} (k text)", "append", pa.schema({"k": pa.list_(pa.int64())}), "does not hold every ARRAY"),
    ("TABLE {t} (k timestamp)", "append", pa.schema({"k": pa.timestamp("us", "UTC")}), "CAST the column"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "mode", "schema", "message"), REFUSED)
def test_what_does_not_fit_is_refused_at_the_start(
    database: Database, made: str, mode: str, schema: pa.Schema, message: str
) -> None:
    """With the table, the column and the mend; nothing is made."""
    name = next(TABLES)
    if made:
        database.execute(f"CREATE {made.format(t=name)}")
    before = staged(database)
    with pytest.raises(SpecError, match=message.format(t=name)):
        Run(database, name, mode, schema=schema)
    assert staged(database) == before


def test_rights_are_checked(database: Database, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the table, of its schema, and of the job's own table."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    Run(database, table)
    database.execute("CREATE ROLE reader LOGIN PASSWORD 'r'", as_superuser=True)
    database.execute(f"GRANT SELECT, INSERT ON {table} TO reader")
    monkeypatch.setenv("PGPASSWORD", "r")
    with pytest.raises(SpecError, match=f"this user may not UPDATE, DELETE in table {table}; GRANT"):
        Run(database, table, user="reader")
    with pytest.raises(SpecError, match="may not CREATE in schema public, where rows are staged; GRANT"):
        Run(database, table, "append", user="reader")
    database.execute("GRANT CREATE ON SCHEMA public TO reader", as_superuser=False)
    with pytest.raises(SpecError, match=r"may not SELECT, INSERT and UPDATE in table .*streamjoin_batches"):
        Run(database, table, "append", user="reader")


def test_a_table_in_another_schema_and_two_jobs_at_once(database: Database) -> None:
    """The job's own tables are beside the table; each of two jobs has its row."""
    name = next(TABLES)
    database.execute('CREATE SCHEMA "Sinks of"')
    database.execute(f'CREATE TABLE "Sinks of".{name} (k bigint PRIMARY KEY, v text)')
    one, two = (Run(database, f"Sinks of.{name}", job=f"job-{n}") for n in range(2))
    one.batch(0, [(1, "one", 1)])
    two.batch(3, [(2, "two", 1)])
    assert rows(database, f'"Sinks of".{name}') == [(1, "one"), (2, "two")]
    assert rows(database, '"Sinks of".streamjoin_batches', "job, target, batch") == [
        ("job-0", f"Sinks of.{name}", 0),
        ("job-1", f"Sinks of.{name}", 3),
    ]


def test_a_database_that_is_away(database: Database, table: str) -> None:
    """The task and the driver wait, then the job ends; nothing is lost when it goes on."""
    run = Run(database, table, patience="1s")
    parts = run.stage(0, changes([(1, "a", 1)]))
    database.crash()
    with pytest.raises(NotReady, match=r"output: .*, for 1 s; run again when it is there"):
        run.outlet.take(0, parts)
    with pytest.raises(NotReady, match=r"output: "):
        run.stage(0, changes([(1, "a", 1)]))
    database.start()
    Run(database, table, begun=0).batch(0, [(1, "a", 1)])
    assert rows(database, table) == [(1, "a")]
