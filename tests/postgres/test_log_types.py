"""Values of every type, as the snapshot has them and as the log has them: the same."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from joinlib.errors import InputError, SpecError
from tests.postgres.database import Database
from tests.postgres.replica import Replica, plan
from tests.postgres.test_reader import COLUMNS

MORE: dict[str, tuple[str, pa.DataType, list[str]]] = {
    "as_text": ("int", pa.string(), ["1", "-2", "0"]),
    "wider": ("smallint", pa.int64(), ["1", "-2", "0"]),
    "flag_text": ("boolean", pa.string(), ["t", "f", "t"]),
    "address": ("inet", pa.string(), ["10.0.0.1", "10.0.0.0/8", "::1"]),
    "net": ("cidr", pa.string(), ["10.0.0.0/8", "10.0.0.1/32", "::1/128"]),
    "doc": ("jsonb", pa.string(), ['{"a": 1}', "[]", '"x"']),
    "late": ("time", pa.string(), ["10:00", "11:00:00.5", "12:00"]),
    "span": ("interval", pa.string(), ["1 day", "2 hours", "1 mon"]),
    "mood": ("mood", pa.string(), ["sad", "happy", "sad"]),
    "money": ("price", pa.decimal128(12, 2), ["1", "2.50", "0"]),
    "code": ("code", pa.string(), ["a", "bb", "ccc"]),
    "ints": ("int[]", pa.list_(pa.int32()), ["{1,2}", "{}", "{NULL,3}"]),
    "texts": ("text[]", pa.list_(pa.string()), ['{a,"b c"}', '{"x\\"y",NULL}', '{"NULL","{}"}']),
    "times": ("timestamptz[]", pa.list_(pa.timestamp("us", "UTC")), ["{2026-01-01 05:00}", "{}", "{NULL}"]),
    "flags": ("boolean[]", pa.list_(pa.bool_()), ["{t,f}", "{}", "{NULL}"]),
}
NAMES = [*COLUMNS, *MORE]


def _text(value: Any) -> str:
    return "\\x" + value.hex() if isinstance(value, bytes) else str(value)


def test_the_log_has_what_the_snapshot_has(logical: Database, tmp_path: Path) -> None:
    """One replica saw the rows come, the other found them there. NULLs too."""
    logical.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    logical.execute("CREATE DOMAIN base_price AS numeric(12,2)")
    logical.execute("CREATE DOMAIN price AS base_price CHECK (VALUE >= 0)")
    logical.execute("CREATE DOMAIN code AS char(4)")
    types = {**{n: t for n, (t, _, _) in COLUMNS.items()}, **{n: t for n, (t, _, _) in MORE.items()}}
    columns = ", ".join(f'"{n}" {t}' for n, t in types.items())
    logical.execute(f"CREATE TABLE kinds (k int PRIMARY KEY, {columns})")
    logical.execute("CREATE PUBLICATION p_kinds FOR TABLE kinds")
    wanted = [(n, t) for n, (_, t, _) in [*COLUMNS.items(), *MORE.items()]]
    schema = pa.schema([("k", pa.int64()), *wanted])
    first = Replica(
        tmp_path / "1", [plan(logical, "kinds", schema, "kinds_1", ("k",), publication="p_kinds")]
    )
    first.step()
    for i in range(3):
        values = [_text(v[i]) for _, _, v in [*COLUMNS.values(), *MORE.values()]]
        marks = ", ".join(f"${n + 1}::text::{t}" for n, t in enumerate(types.values()))
        with logical.connected() as connection, connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO kinds VALUES ({i}, {marks})", tuple(values))
    logical.execute("INSERT INTO kinds VALUES (3)")
    first.step()
    second = Replica(
        tmp_path / "2", [plan(logical, "kinds", schema, "kinds_2", ("k",), publication="p_kinds")]
    )
    second.step()
    logged, read = ({r[0]: dict(zip(schema.names, r)) for r in replica.upserts["kinds"].values()} for replica in (first, second))  # fmt: skip
    assert len(logged) == 4
    for k in range(4):
        for name in schema.names:
            assert logged[k][name] == read[k][name], (k, name)
    for name, (_, _, values) in COLUMNS.items():
        assert [logged[k][name] for k in range(3)] == values, name
    for slot in ("kinds_1", "kinds_2"):
        logical.execute(f"SELECT pg_drop_replication_slot('{slot}')::text")


@pytest.mark.parametrize(
    ("type", "declared", "value"),
    [
        ("numeric", pa.decimal128(4, 2), "123.45"),
        ("numeric", pa.decimal128(4, 2), "1.234"),
        ("numeric", pa.decimal128(12, 2), "NaN"),
        ("date", pa.date32(), "infinity"),
        ("timestamptz", pa.timestamp("us", "UTC"), "infinity"),
        ("timestamp", pa.timestamp("us"), "0044-03-15 BC"),
        ("int[]", pa.list_(pa.int32()), "{{1},{2}}"),
    ],
)
def test_a_value_that_does_not_fit(
    logical: Database, tmp_path: Path, type: str, declared: pa.DataType, value: str
) -> None:
    """Named by its column, and never repeated."""
    logical.execute(f"CREATE TABLE odd (k int PRIMARY KEY, v {type})")
    logical.execute("CREATE PUBLICATION p_odd FOR TABLE odd")
    try:
        schema = pa.schema([("k", pa.int32()), ("v", declared)])
        replica = Replica(tmp_path, [plan(logical, "odd", schema, "odd", ("k",), publication="p_odd")])
        replica.step()
        logical.execute(f"INSERT INTO odd VALUES (1, '{value}')")
        with pytest.raises(
            InputError, match=r"inputs\.odd: column 'v' holds a value that does not fit"
        ) as error:
            replica.step()
        assert not value[0].isdigit() or value not in str(error.value)
        assert error.value.__cause__ is None
    finally:
        logical.execute(
            "SELECT pg_drop_replication_slot(slot_name)::text FROM pg_replication_slots WHERE slot_name = 'odd'"
        )
        logical.execute("DROP PUBLICATION p_odd")
        logical.execute("DROP TABLE odd")


@pytest.mark.parametrize(
    ("type", "declared", "said"),
    [
        ("bigint", pa.int32(), "declared as INT"),
        ("text", pa.int32(), "declared as INT"),
        ("point", pa.float64(), "declared as DOUBLE"),
        ("numeric", pa.float64(), "declared as DOUBLE"),
    ],
)
def test_types_that_do_not_fit(
    logical: Database, tmp_path: Path, type: str, declared: pa.DataType, said: str
) -> None:
    logical.execute(f"CREATE TABLE unfit (k int PRIMARY KEY, v {type})")
    logical.execute("CREATE PUBLICATION p_unfit FOR TABLE unfit")
    try:
        schema = pa.schema([("k", pa.int32()), ("v", declared)])
        replica = Replica(tmp_path, [plan(logical, "unfit", schema, "unfit", ("k",), publication="p_unfit")])
        with pytest.raises(SpecError, match=said):
            replica.step()
    finally:
        logical.execute("DROP PUBLICATION p_unfit")
        logical.execute("DROP TABLE unfit")
