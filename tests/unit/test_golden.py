"""Values that stored data rests on, as they were when the formats of `joinlib.formats` were first pinned. Literals, made once.

A checkpoint holds hashes of keys, and rows in the units that these hashes chose: whoever computes another hash does not find them,
and says nothing. So a test that is red here is right: put the code back, or give the format a new version and a reader of the old
one. Only then may a literal change.
"""

import base64
import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from joinlib.aggregate.bag import comparable
from joinlib.aggregate.partial import partial
from joinlib.index.bloom import bloom
from joinlib.model.fingerprint import fingerprint
from joinlib.model.grouping import Grouping, GroupKey
from joinlib.plan import pipeline_of
from joinlib.route.biclique import Group, homes
from joinlib.route.hash import key_hash, spread
from joinlib.route.slots import slots
from joinlib.route.split import split
from joinlib.source.kafka.ranges import OffsetRanges
from joinlib.source.known_files import KnownFiles
from joinlib.source.log import Log
from joinlib.spec import parse
from joinlib.state import segment
from joinlib.state.manifest import Segment
from tests.configs import results
from tests.messages import written

NAN, INFINITE = float("nan"), float("inf")
UTC = dt.UTC
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [-128, -1, 0, 127]),
    "int16": (pa.int16(), [-(2**15), -1, 0, 2**15 - 1]),
    "int32": (pa.int32(), [-(2**31), -1, 0, 2**31 - 1]),
    "int64": (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    "float": (pa.float32(), [0.0, -0.0, 1.5, -1.5, NAN, INFINITE, -INFINITE]),
    "double": (pa.float64(), [0.0, -0.0, 0.1, -0.1, NAN, INFINITE, -INFINITE, 5e-324]),
    "decimal small": (pa.decimal128(9, 2), [Decimal("0.00"), Decimal("-1.00"), Decimal("1234567.89")]),
    "decimal large": (pa.decimal128(38, 10), [Decimal(10) ** 27, -(Decimal(10) ** 27), Decimal("1e-10")]),
    "string": (pa.string(), ["", "a", "seven..", "eight...", "nine.....", "ä€𝄞", "\0", "\0\0"]),
    "binary": (pa.binary(), [b"", b"\0", b"\xff" * 9]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2026, 11, 22)]),
    "timestamp": (pa.timestamp("us", "UTC"), [dt.datetime(1969, 12, 31, tzinfo=UTC), dt.datetime(2026, 11, 22, 1, 2, 3, 4, UTC)]),
    "timestamp_ntz": (pa.timestamp("us"), [dt.datetime(1969, 12, 31), dt.datetime(2026, 11, 22, 1, 2, 3, 4)]),  # noqa: DTZ001
}  # fmt: skip
WITH_NULL = {name: pa.array([*values[:1], None], kind) for name, (kind, values) in COLUMNS.items()}


def column(name: str) -> pa.Array:
    kind, values = COLUMNS[name]
    return pa.array(values, kind)


def composite() -> list[pa.Array]:
    """Keys of several columns: their order counts."""
    return [pa.array([1, 2]), pa.array(["a", "b"]), pa.array([0.5, -0.0])]


def grouped(keys: list[pa.Array]) -> list[int]:
    """The hashes of groups, NULLs among their keys."""
    grouping = Grouping(tuple(GroupKey(f"$g{n}", k.type, "") for n, k in enumerate(keys)), (), None, ())
    rows = pa.record_batch(keys, [f"$g{n}" for n in range(len(keys))])
    return partial(rows, grouping).column(0).to_pylist()


def all_types() -> pa.RecordBatch:
    """Two rows of every type, the second NULL."""
    return pa.record_batch(list(WITH_NULL.values()), [n.replace(" ", "_") for n in WITH_NULL])


HASHES = {
    "bool": [0x910A2DEC89025CC1, 0xE220A8397B1DCDAF],
    "int8": [0x91DE0036E7E6BC39, 0xE4D971771B652C20, 0xE220A8397B1DCDAF, 0x3FADB6BDE9285E98],
    "int16": [0x2E3B2EE7C80B725D, 0xE4D971771B652C20, 0xE220A8397B1DCDAF, 0xB73AB1ECF2C9D038],
    "int32": [0xEE1591EA220FB185, 0xE4D971771B652C20, 0xE220A8397B1DCDAF, 0x61FA36A6261A4BE7],
    "int64": [
        0x481EC0A212A9F3DB,
        0xE4D971771B652C20,
        0xE220A8397B1DCDAF,
        0x910A2DEC89025CC1,
        0x2A67D7552E039EA7,
    ],
    "float": [
        0xE220A8397B1DCDAF,
        0xE220A8397B1DCDAF,
        0xD6DAB18E1392608A,
        0x5C4CE031A716B337,
        0xC72971D82E15BB46,
        0x249E5410C2F97D99,
        0x8CE2CA027CDA7FFE,
    ],
    "double": [
        0xE220A8397B1DCDAF,
        0xE220A8397B1DCDAF,
        0xF823E4ED2FB12A7D,
        0x2BD2C02C909AAE3D,
        0xC72971D82E15BB46,
        0x249E5410C2F97D99,
        0x8CE2CA027CDA7FFE,
        0x910A2DEC89025CC1,
    ],
    "decimal small": [0xA706DD2F4D197E6F, 0x551D08CED9949252, 0x800343194B107776],
    "decimal large": [0x8766AB0133CDC6C8, 0xCE1A2B6268943584, 0x5E41AB087439611E],
    "string": [
        0xE220A8397B1DCDAF,
        0x5E025F9ADE9EAF3E,
        0x54D74B1C5EEE48CE,
        0x035CA4EEB3308F63,
        0x1091A6116BADCCA7,
        0x9D8FBA83C734459A,
        0x5E41AB087439611E,
        0x64684C4F0FD784B4,
    ],
    "binary": [0xE220A8397B1DCDAF, 0x5E41AB087439611E, 0x47BF8877CA2C0A4E],
    "date": [0x4186BAB396079324, 0xE220A8397B1DCDAF, 0x1417C1584D8C0693],
    "timestamp": [0x71A10EE1562BAFD4, 0x3935BA6D984D2AF3],
    "timestamp_ntz": [0x71A10EE1562BAFD4, 0x3935BA6D984D2AF3],
}
COMPOSITE = [0x08A01D64D1BF4440, 0xFACCF7657D1F73F1]
REVERSED = [0x867FE5E25AE7E89E, 0xA1E76B5B9C32F3E0]
GROUPS = {
    "bool": [0x910A2DEC89025CC1, 0xE220A8397B1DCDAF],
    "int8": [0x91DE0036E7E6BC39, 0xE220A8397B1DCDAF],
    "int16": [0x2E3B2EE7C80B725D, 0xE220A8397B1DCDAF],
    "int32": [0xEE1591EA220FB185, 0xE220A8397B1DCDAF],
    "int64": [0x481EC0A212A9F3DB, 0xE220A8397B1DCDAF],
    "float": [0xE220A8397B1DCDAF, 0xE220A8397B1DCDAF],
    "double": [0xE220A8397B1DCDAF, 0xE220A8397B1DCDAF],
    "decimal small": [0xA706DD2F4D197E6F, 0xA706DD2F4D197E6F],
    "decimal large": [0x8766AB0133CDC6C8, 0xA706DD2F4D197E6F],
    "string": [0xE220A8397B1DCDAF, 0xE220A8397B1DCDAF],
    "binary": [0xE220A8397B1DCDAF, 0xE220A8397B1DCDAF],
    "date": [0x4186BAB396079324, 0xE220A8397B1DCDAF],
    "timestamp": [0x71A10EE1562BAFD4, 0xE220A8397B1DCDAF],
    "timestamp_ntz": [0x71A10EE1562BAFD4, 0xE220A8397B1DCDAF],
}
SPREAD = [
    [0xE220A8397B1DCDAF, 0x910A2DEC89025CC1, 0x975835DE1C9756CE],
    [0xB94083AA31091A4E, 0x4977F42F23D6F9E8, 0x486E851C593533BA],
]
UNITS = {0: [10, 18, 3], 1: [11, 16, 5, 7, 14, 4], 2: [17, 15, 1, 12, 2, 8, 9, 19, 6], 3: [13, 0]}
SLOTS = (12, 16, 5, 1, 37, 20, 2, 35, 13, 6, 49, 7, 25, 15, 4, 0)
HOMES = [2, 2, 2, 0, 1, 0, 3, 0, 2, 3, 1, 0, 3, 3, 1, 3, 1, 2, 0, 3]
ORDERED = [
    0,
    0,
    4591870180066957722,
    -4591870180066957723,
    9221120237041090560,
    9218868437227405312,
    -9218868437227405313,
    1,
]
BLOOM = [
    0x0000000021000001,
    0x0000001841000028,
    0x0000002010000001,
    0xA008800000620800,
    0x1820000840001800,
    0x3200009000000000,
    0x2000208040102102,
    0x0000800000200050,
]
STORED = (
    "/////zgDAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAA4AAADYAgAAjAIAAFgCAAAkAgAA8AEA"
    "ALwBAACMAQAASAEAAAwBAADgAAAAtAAAAIQAAAA8AAAABAAAAHD9//8AAAEKEAAAACAAAAAEAAAAAAAAAA0AAAB0aW1lc3RhbXBf"
    "bnR6AAAAcv7//wAAAgCk/f//AAABChAAAAAkAAAABAAAAAAAAAAJAAAAdGltZXN0YW1wAAAACAAMAAYACAAIAAAAAAACAAQAAAAD"
    "AAAAVVRDAOj9//8AAAEIEAAAABgAAAAEAAAAAAAAAAQAAABkYXRlAAAAAOL+//8AAAAAFP7//wAAAQQQAAAAGAAAAAQAAAAAAAAA"
    "BgAAAGJpbmFyeQAABP7//zz+//8AAAEFEAAAABgAAAAEAAAAAAAAAAYAAABzdHJpbmcAACz+//9k/v//AAABBxAAAAAgAAAABAAA"
    "AAAAAAANAAAAZGVjaW1hbF9sYXJnZQAAAMj///8mAAAACgAAAJz+//8AAAEHEAAAACgAAAAEAAAAAAAAAA0AAABkZWNpbWFsX3Nt"
    "YWxsAAAACAAMAAQACAAIAAAACQAAAAIAAADc/v//AAABAxAAAAAYAAAABAAAAAAAAAAGAAAAZG91YmxlAADW////AAACAAj///8A"
    "AAEDEAAAABwAAAAEAAAAAAAAAAUAAABmbG9hdAAGAAgABgAGAAAAAAABADj///8AAAECEAAAABgAAAAEAAAAAAAAAAUAAABpbnQ2"
    "NAAAAHD///8AAAABQAAAAGj///8AAAECEAAAABgAAAAEAAAAAAAAAAUAAABpbnQzMgAAAKD///8AAAABIAAAAJj///8AAAECEAAA"
    "ABgAAAAEAAAAAAAAAAUAAABpbnQxNgAAAND///8AAAABEAAAAMj///8AAAECEAAAACAAAAAEAAAAAAAAAAQAAABpbnQ4AAAAAAgA"
    "DAAIAAcACAAAAAAAAAEIAAAAEAAUAAgABgAHAAwAAAAQABAAAAAAAAEGEAAAABwAAAAEAAAAAAAAAAQAAABib29sAAAAAAQABAAE"
    "AAAAAAAAAP////8YAwAAFAAAAAAAAAAMABYABgAFAAgADAAMAAAAAAMEABgAAABAAQAAAAAAAAAACgAYAAwABAAIAAoAAAD8AQAA"
    "EAAAAAIAAAAAAAAAAAAAAB4AAAAAAAAAAAAAAAEAAAAAAAAACAAAAAAAAAABAAAAAAAAABAAAAAAAAAAAQAAAAAAAAAYAAAAAAAA"
    "AAIAAAAAAAAAIAAAAAAAAAABAAAAAAAAACgAAAAAAAAABAAAAAAAAAAwAAAAAAAAAAEAAAAAAAAAOAAAAAAAAAAIAAAAAAAAAEAA"
    "AAAAAAAAAQAAAAAAAABIAAAAAAAAABAAAAAAAAAAWAAAAAAAAAABAAAAAAAAAGAAAAAAAAAACAAAAAAAAABoAAAAAAAAAAEAAAAA"
    "AAAAcAAAAAAAAAAQAAAAAAAAAIAAAAAAAAAAAQAAAAAAAACIAAAAAAAAACAAAAAAAAAAqAAAAAAAAAABAAAAAAAAALAAAAAAAAAA"
    "IAAAAAAAAADQAAAAAAAAAAEAAAAAAAAA2AAAAAAAAAAMAAAAAAAAAOgAAAAAAAAAAAAAAAAAAADoAAAAAAAAAAEAAAAAAAAA8AAA"
    "AAAAAAAMAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAEAAAAAAAAACAEAAAAAAAAIAAAAAAAAABABAAAAAAAAAQAAAAAA"
    "AAAYAQAAAAAAABAAAAAAAAAAKAEAAAAAAAABAAAAAAAAADABAAAAAAAAEAAAAAAAAAAAAAAADgAAAAIAAAAAAAAAAQAAAAAAAAAC"
    "AAAAAAAAAAEAAAAAAAAAAgAAAAAAAAABAAAAAAAAAAIAAAAAAAAAAQAAAAAAAAACAAAAAAAAAAEAAAAAAAAAAgAAAAAAAAABAAAA"
    "AAAAAAIAAAAAAAAAAQAAAAAAAAACAAAAAAAAAAEAAAAAAAAAAgAAAAAAAAABAAAAAAAAAAIAAAAAAAAAAQAAAAAAAAACAAAAAAAA"
    "AAEAAAAAAAAAAgAAAAAAAAABAAAAAAAAAAIAAAAAAAAAAQAAAAAAAAACAAAAAAAAAAEAAAAAAAAAAQAAAAAAAAABAAAAAAAAAAEA"
    "AAAAAAAAgAAAAAAAAAABAAAAAAAAAACAAAAAAAAAAQAAAAAAAAAAAACAAAAAAAEAAAAAAAAAAAAAAAAAAIAAAAAAAAAAAAEAAAAA"
    "AAAAAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AQAAAAAAAAAAAAAAoDb0ANlG2tUQ7oUHAAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAEAAAAAAAAAxgb1/wAAAAABAAAAAAAAAACgKOLr////AAAAAAAAAAABAAAAAAAAAACgKOLr////AAAAAAAA"
    "AAD/////AAAAAA=="
)
DIGEST = "dabf8c8092eea3180b831f4bcfb87fd0"
CHAINED = 1321957721470940705
TOPIC_LOG = (
    '["a3f666a3", {"base": 7, "rows": 70, "lost": 2, "at": [["t", 0, 40], ["t", 1, 30]], "ids": {"t": "0f"}}]\n'
    '["34583089", {"cut": [["t", 0, 40, 50, 8, 100]]}]\n'
    '["b09a156a", {"at": [["t", 2, 5]], "cut": [["t", 1, 30, 34, 8, 100], ["t", 2, 5, 6, 8, 100]]}]\n'
)
FILES_LOG = (
    '["d5833108", {"path": "a/x.parquet", "size": 9, "mtime_ns": 3, "slices": [[0, 0, 0, 7], [1, 0, 0, 5]]}]\n'
    '["e7f16bb0", {"path": "y.parquet", "size": 1, "mtime_ns": 4, "slices": [], "skipped": "no footer"}]\n'
)
FILES_SLICES = [("/in/a/x.parquet", 7, 0, 9, 3), ("/in/a/x.parquet", 5, 1, 9, 3)]
KEYS: dict[str, list[bytes]] = {
    "bool": [b"true", b"false"],
    "int8": [b"-128", b"-1", b"0", b"127"],
    "int16": [b"-32768", b"-1", b"0", b"32767"],
    "int32": [b"-2147483648", b"-1", b"0", b"2147483647"],
    "int64": [b"-9223372036854775808", b"-1", b"0", b"1", b"9223372036854775807"],
    "float": [b"0", b"-0", b"1.5", b"-1.5", b"nan", b"inf", b"-inf"],
    "double": [b"0", b"-0", b"0.1", b"-0.1", b"nan", b"inf", b"-inf", b"5e-324"],
    "decimal small": [b"0.00", b"-1.00", b"1234567.89"],
    "decimal large": [
        b"1000000000000000000000000000.0000000000",
        b"-1000000000000000000000000000.0000000000",
        b"1E-10",
    ],
    "string": [
        b"",
        b"a",
        b"seven..",
        b"eight...",
        b"nine.....",
        b"\xc3\xa4\xe2\x82\xac\xf0\x9d\x84\x9e",
        b"\x00",
        b"\x00\x00",
    ],
    "binary": [b"", b"AA==", b"////////////"],
    "date": [b"0001-01-01", b"1970-01-01", b"2026-11-22"],
    "timestamp": [b"1969-12-31T00:00:00.000000Z", b"2026-11-22T01:02:03.000004Z"],
    "timestamp_ntz": [b"1969-12-31T00:00:00.000000", b"2026-11-22T01:02:03.000004"],
}
COMPOSITE_KEYS = [b'[1,"a",0.5]', b'[2,"b",-0]']
PLAN = {
    "version": 1,
    "units": 8,
    "stages": [
        {
            "version": 1,
            "units": 8,
            "inputs": [
                {
                    "alias": "o",
                    "source": "orders",
                    "columns": {
                        "o.id": ["o.id", "BIGINT", "int64"],
                        "o.client": ["o.client", "INT", "int32"],
                        "o.amount": ["o.amount", "DECIMAL(10,2)", "decimal128(10, 2)"],
                        "o.at": ["o.at", "TIMESTAMP", "timestamp[us, tz=UTC]"],
                    },
                    "keys": ["o.id"],
                    "filter": "((o.amount > 0) AND CASE WHEN ((o.id % 2) = 0) THEN TRUE ELSE "
                    "(CAST(o.client AS STRING) < '5') END)",
                    "time": "o.at",
                    "null_keys": True,
                },
                {
                    "alias": "p",
                    "source": "payments",
                    "columns": {
                        "p.id": ["p.id", "BIGINT", "int64"],
                        "p.paid": ["p.paid", "DOUBLE", "double"],
                        "p.at": ["p.at", "TIMESTAMP", "timestamp[us, tz=UTC]"],
                    },
                    "keys": ["p.id"],
                    "filter": "(NOT p.void)",
                    "time": "p.at",
                    "null_keys": False,
                },
            ],
            "tree": {
                "kind": "left",
                "inputs": [0, 1],
                "keys": [["o.id"], ["p.id"]],
                "bounds": [["o.at", "p.at", -300000000, 3600000000]],
                "predicate": "(o.amount <> p.paid)",
                "where": None,
            },
            "route": None,
        },
        {
            "version": 1,
            "units": 8,
            "inputs": [
                {
                    "alias": "$0",
                    "source": "$stage0",
                    "columns": {
                        "o.client": ["o.client", "INT", "int32"],
                        "o.amount": ["o.amount", "DECIMAL(10,2)", "decimal128(10, 2)"],
                        "o.at": ["o.at", "TIMESTAMP", "timestamp[us, tz=UTC]"],
                        "p.paid": ["p.paid", "DOUBLE", "double"],
                    },
                    "keys": ["o.client"],
                    "filter": None,
                    "time": "o.at",
                    "null_keys": False,
                },
                {
                    "alias": "c",
                    "source": "clients",
                    "columns": {
                        "c.id": ["c.id", "INT", "int32"],
                        "c.name": ["c.name", "STRING", "string"],
                        "c.at": ["c.at", "TIMESTAMP", "timestamp[us, tz=UTC]"],
                    },
                    "keys": ["c.id"],
                    "filter": "(((c.name LIKE 'a%') OR (c.name IS NULL)) OR (c.name IN ('x', 'y')))",
                    "time": "c.at",
                    "null_keys": False,
                },
            ],
            "tree": {
                "kind": "inner",
                "inputs": [0, 1],
                "keys": [["o.client"], ["c.id"]],
                "bounds": [["c.at", "o.at", 0, 86400000000]],
                "predicate": None,
                "where": None,
            },
            "route": None,
        },
        {
            "version": 1,
            "units": 8,
            "inputs": [
                {
                    "alias": "$2",
                    "source": "$stage1",
                    "columns": {
                        "$g0": ["$g0", "TIMESTAMP", "timestamp[us, tz=UTC]"],
                        "$g1": ["$g1", "STRING", "string"],
                        "$x2": ["$x2", "DECIMAL(12,2)", "decimal128(12, 2)"],
                        "$x3": ["$x3", "DOUBLE", "double"],
                    },
                    "keys": [],
                    "filter": None,
                    "time": None,
                    "null_keys": True,
                },
            ],
            "groups": {
                "by": ["date_trunc('hour', o.at)", "upper(c.name)"],
                "of": ["count(*)", "sum((o.amount * 2))", "avg(p.paid)"],
                "mode": "append",
                "having": "(count(*) > 1)",
            },
        },
    ],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_hash_of_a_key(name: str) -> None:
    """By type: in every segment, and what chose its unit."""
    assert key_hash([column(name)]).tolist() == HASHES[name]


def test_hash_of_a_composite_key() -> None:
    """In the order of its columns."""
    assert key_hash(composite()).tolist() == COMPOSITE
    assert key_hash(composite()[::-1]).tolist() == REVERSED


@pytest.mark.parametrize("name", COLUMNS)
def test_hash_of_a_group(name: str) -> None:
    """NULL is a group of its own, with the hash of zero or of nothing."""
    assert grouped([WITH_NULL[name]]) == GROUPS[name]


def test_rows_without_a_key() -> None:
    """They lie where their number and the slice's seed say."""
    assert spread(3, 0).tolist() == SPREAD[0]
    assert spread(3, 2**40 + 7).tolist() == SPREAD[1]


def test_units() -> None:
    """The top bits of the hash; Spark's partition comes from the slot."""
    hashes = key_hash([pa.array(range(20))])
    block = pa.record_batch([pa.array(hashes), pa.array(range(20))], ["$hash", "k"])
    assert {unit: rows.column(1).to_pylist() for unit, rows in split(block, 4)} == UNITS
    assert slots(16) == SLOTS
    assert homes(Group(0, 4, 2), hashes, {}, 5).tolist() == HOMES


def test_floats_as_numbers() -> None:
    """How partials keep least and greatest: as whole numbers in the order of the floats."""
    assert comparable(column("double")).to_pylist() == ORDERED


def test_bits_of_a_filter() -> None:
    """A run that was killed leaves its filters on the machine, and the next version may find them."""
    assert bloom(np.sort(key_hash([pa.array(range(9))]))).words.tolist() == BLOOM


def test_a_stored_segment(tmp_path: Path) -> None:
    """What was written then is read as it was: every type, and NULL of it. Its name comes from its content."""
    content = base64.b64decode(STORED)
    (tmp_path / "0-stored.arrow").write_bytes(content)
    stored = Segment("0-stored.arrow", 2, len(content), DIGEST, 1, 0)
    segment.verify(tmp_path, stored)

    rows = segment.read(tmp_path, stored, all_types().schema)
    rows.validate(full=True)
    assert str(rows.to_pylist()) == str(all_types().to_pylist())  # NaN is written, but not equal
    assert segment.chained(segment.chained(0, DIGEST), DIGEST) == CHAINED


@pytest.mark.parametrize("name", COLUMNS)
def test_key_of_a_message(name: str) -> None:
    """Kafka chooses the partition by these bytes: others would put later changes of a key where the earlier ones are not."""
    target = results("kafka:9092", "t", key=("k",))
    batch = pa.record_batch([column(name)], ["k"])
    assert [key for key, _ in written(batch, target)] == KEYS[name]


def test_composite_key_of_a_message() -> None:
    """A JSON array."""
    target = results("kafka:9092", "t", key=("a", "b", "c"))
    batch = pa.record_batch([*composite()], ["a", "b", "c"])
    assert [key for key, _ in written(batch, target)] == COMPOSITE_KEYS


def test_what_a_checkpoint_depends_on() -> None:
    """The fingerprint of a query with every part of one. Its texts are ours, not the parser's: a new sqlglot changes none."""
    assert (
        json.loads(json.dumps(fingerprint(pipeline_of(parse(SPEC, "golden.yaml", Path("/golden")))))) == PLAN
    )


def test_log_of_a_topic(tmp_path: Path) -> None:
    """Positions in it are what offsets of batches mean."""
    (tmp_path / "log").write_text(TOPIC_LOG)
    known = OffsetRanges("log", Log(tmp_path / "log").entries)
    assert [(s.path, s.group, s.start, s.stop) for s in known.between(7, known.slices)] == [
        ("t", 0, 40, 48),
        ("t", 0, 48, 50),
        ("t", 1, 30, 34),
        ("t", 2, 5, 6),
    ]
    assert (known.base, known.rows, known.lost, known.ids) == (7, 85, 2, {"t": "0f"})
    assert known.at == {("t", 0): 50, ("t", 1): 34, ("t", 2): 6}


def test_log_of_files(tmp_path: Path) -> None:
    """Likewise."""
    (tmp_path / "log").write_text(FILES_LOG)
    known = KnownFiles(tmp_path / "log", exact=True)
    for entry in Log(tmp_path / "log").entries:
        known.add(entry)
    found = known.between(Path("/in"), 0, known.slices)
    assert [(s.path, s.rows, s.group, s.size, s.mtime_ns) for s in found] == FILES_SLICES
    assert known.holds("a/x.parquet") and not known.holds("y.parquet") and set(known.skipped) == {"y.parquet"}


SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: golden}
spec:
  sql: >-
    SELECT date_trunc('hour', o.at) AS hour, upper(c.name) AS name, count(*) AS n, sum(o.amount * 2) AS total, avg(p.paid) AS mean
    FROM orders o LEFT JOIN payments p
    ON o.id = p.id AND p.at BETWEEN o.at - INTERVAL 5 MINUTES AND o.at + INTERVAL 1 HOUR AND o.amount <> p.paid AND NOT p.void
    JOIN clients c ON o.client = c.id AND c.at BETWEEN o.at - INTERVAL 1 DAY AND o.at
    WHERE o.amount > 0 AND (c.name LIKE 'a%' OR c.name IS NULL OR c.name IN ('x', 'y'))
    AND CASE WHEN o.id % 2 = 0 THEN TRUE ELSE CAST(o.client AS STRING) < '5' END
    GROUP BY date_trunc('hour', o.at), upper(c.name) HAVING count(*) > 1
  inputs:
    orders:
      schema: "id BIGINT, client INT, amount DECIMAL(10, 2), at TIMESTAMP"
      eventTime: {column: at, delay: 1m}
      files: {path: orders}
    payments:
      schema: id BIGINT, paid DOUBLE, void BOOLEAN, at TIMESTAMP
      eventTime: {column: at, delay: 1m}
      files: {path: payments}
    clients:
      schema: id INT, name STRING, at TIMESTAMP
      eventTime: {column: at, delay: 1m}
      files: {path: clients}
  output: {noop: {}}
  checkpoint: {path: checkpoint}
"""
