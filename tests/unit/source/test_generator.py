"""Row i is the same row, however it is asked for; the clock decides how many there are."""

import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.errors import SpecError
from joinlib.source import Slice, make, reader
from joinlib.source.zipf import TABLE, zipf
from tests.configs import generator

SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("n", pa.int8()), ("name", pa.string()),
        ("price", pa.decimal128(10, 2)), ("ratio", pa.decimal128(2, 2)), ("x", pa.float32()), ("ok", pa.bool_()),
        ("day", pa.date32()), ("raw", pa.binary()), ("local", pa.timestamp("us")),
    ]
)  # fmt: skip
CONFIG = generator(rows=1_000, keys=10, skew=1.2, seed=7, time_column="at")


@given(st.lists(st.integers(0, 300), max_size=6), st.permutations(SCHEMA.names))
def test_same_rows_for_any_slicing(cuts: list[int], columns: list[str]) -> None:
    """Cut anywhere and with any columns, the rows are those of one slice."""
    read = pickle.loads(pickle.dumps(reader(CONFIG, SCHEMA))).read_many
    ends = sorted({0, 300, *cuts})
    parts = [Slice(0, None, 1, start=a, stop=b) for a, b in pairwise(ends)]
    whole = pa.Table.from_batches(read([Slice(0, None, 1, start=0, stop=300)], SCHEMA.names))
    some = columns[:3]
    assert pa.Table.from_batches(read(parts, some)).equals(whole.select(some))


def test_values_fill_the_schema() -> None:
    """Every type comes as declared; keys stay in their range, event time rises, nothing is NULL."""
    table = pa.Table.from_batches(
        reader(CONFIG, SCHEMA).read(Slice(0, None, 1, start=0, stop=1_000), SCHEMA.names)
    )
    table.validate(full=True)
    assert table.schema == SCHEMA
    assert set(table["id"].to_pylist()) == set(range(10))
    times = table["at"].to_pylist()
    assert times == sorted(set(times))
    assert all(column.null_count == 0 for column in table.columns)


@pytest.mark.parametrize("skew", [0.0, 0.8, 1.0, 1.5])
@pytest.mark.parametrize("keys", [1, 3, TABLE + 5, 10**9])
def test_zipf_follows_its_law(keys: int, skew: float) -> None:
    """Keys are in range and monotone in the draw; key 0 is as likely as the law says."""
    draws = (np.arange(20_000) + 0.5) / 20_000
    drawn = zipf(draws, keys, skew)
    assert drawn.min() >= 0
    assert drawn.max() < keys
    assert (np.diff(drawn) >= 0).all()
    ranks = np.arange(1, min(keys, 10**6) + 1, dtype=float) ** -skew
    rest = 0.0
    if keys > 10**6:
        rest = np.log(keys / 1e6) if skew == 1 else (keys ** (1 - skew) - 1e6 ** (1 - skew)) / (1 - skew)
    assert abs((drawn == 0).mean() - 1 / (ranks.sum() + rest)) < 1e-3


def test_follows_the_clock_over_restarts(tmp_path: Path) -> None:
    """A restarted generator goes on from the time of its first discovery."""
    config = generator(rows=100, rows_per_second=10, time_column="at")
    clock = [5 * 10**9]

    def known() -> int:
        return make("g", config, SCHEMA, tmp_path, now=lambda: clock[0]).discover()

    assert known() == 0
    clock[0] += 10**9
    assert known() == 5  # slices of 2 rows
    source = make("g", config, SCHEMA, tmp_path, now=lambda: clock[0])
    clock[0] += 10**12
    assert source.discover() == 50
    clock[0] = 0
    assert source.discover() == 50
    assert source.lag(49) == {"slices": 1, "rows": 2, "read": 98}
    rows = pa.Table.from_batches(source.reader.read_many(source.slices(0, 50), ["at"]))
    assert len(rows) == 100
    assert rows["at"][10].value == 6 * 10**6


def test_bounded_and_not_by_the_clock(tmp_path: Path) -> None:
    """Without a rate all rows are there at once; the last slice is what remains."""
    source = make("g", generator(rows=70_000), SCHEMA, tmp_path)
    assert source.discover() == 2
    assert [s.rows for s in source.slices(0, 2)] == [65_536, 4_464]


def test_without_end(tmp_path: Path) -> None:
    """With neither rate nor number there is always more, and no lag."""
    source = make("g", generator(), SCHEMA, tmp_path)
    assert source.discover() > 10**9
    assert source.lag(3) == {"slices": 0, "rows": 0, "read": 3 * 65_536}
    (last,) = source.slices(10**9, 10**9 + 1)
    assert last.start == 10**9 * 65_536


def test_another_generator_is_refused(tmp_path: Path) -> None:
    """Positions of one generator mean nothing to another."""
    make("g", generator(rows=10, keys=5), SCHEMA, tmp_path).discover()
    with pytest.raises(SpecError, match="keys changed since the checkpoint"):
        make("g", generator(rows=10, keys=6), SCHEMA, tmp_path).discover()


def test_what_cannot_be_generated() -> None:
    """It is said before anything runs."""
    with pytest.raises(SpecError, match="column 'x' is list"):
        reader(generator(rows=1), pa.schema([("x", pa.list_(pa.int8()))]))
