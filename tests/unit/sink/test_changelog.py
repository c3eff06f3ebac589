"""Changes as rows: nothing is lost or made up, pairs stand side by side, and keys that repeat are named."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.errors import SpecError
from joinlib.sink import changelog
from joinlib.sink.changing import ChangingSink, changing, shown
from joinlib.sink.config import KafkaSinkConfig, SinkConfig
from joinlib.sink.console import ConsoleSink
from joinlib.spec.output import KafkaOutput

SIGN = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
KEYS = st.none() | st.integers(0, 3)
CHANGES = st.lists(
    st.tuples(KEYS, st.sampled_from("ab"), st.integers(-3, 3).filter(bool)),
    max_size=12,
    unique_by=lambda row: row[:2],
)


def batch_of(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    k, v, w = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.record_batch(
        [pa.array(k, pa.int64()), pa.array(v, pa.string()), pa.array(w, pa.int64())], ["k", "v", "$weight"]
    )


def read(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return list(zip(*(c.to_pylist() for c in batch.columns), strict=True))


@given(rows=CHANGES, key=st.sampled_from([(), ("k",), ("k", "v")]))
def test_the_sum_of_the_rows_is_that_of_the_changes(
    rows: list[tuple[Any, ...]], key: tuple[str, ...]
) -> None:
    """Row by row, with each row as often as it weighs; the number of the batch is on each."""
    made = read(changelog.rows(batch_of(rows), key, 7))
    assert {number for *_, number in made} <= {7}
    total: Counter[tuple[Any, ...]] = Counter()
    for k, v, word, _ in made:
        total[k, v] += SIGN[word]
    assert {row: n for row, n in total.items() if n} == {(k, v): w for k, v, w in rows}
    assert len(made) == sum(abs(w) for *_, w in rows)


@given(rows=CHANGES)
def test_rows_of_a_key_are_paired(rows: list[tuple[Any, ...]]) -> None:
    """As many as there are of the fewer kind, the old row right before the new one; NULL is a key as well."""
    made = read(changelog.rows(batch_of(rows), ("k",)))
    words = [word for *_, word in made]
    pairs: Counter[Any] = Counter()
    for at, (k, _, word) in enumerate(made):
        if word == "update_preimage":
            assert (made[at + 1][0], made[at + 1][2]) == (k, "update_postimage")
            pairs[k] += 1
    assert words.count("update_postimage") == sum(pairs.values())
    for k in {k for k, *_ in rows}:
        gone = sum(-w for key, _, w in rows if key == k and w < 0)
        new = sum(w for key, _, w in rows if key == k and w > 0)
        assert pairs[k] == min(gone, new)
    assert [w for w in words if w in ("delete", "insert")] == ["delete"] * words.count("delete") + [
        "insert"
    ] * words.count("insert")


def test_results_that_only_grow_are_inserts() -> None:
    """They have no weights; the rows are as they were."""
    made = changelog.rows(pa.record_batch({"k": [1, 2]}), ("k",), 3)
    assert read(made) == [(1, "insert", 3), (2, "insert", 3)]
    assert made.schema == changelog.described(pa.schema({"k": pa.int64()}))
    assert changelog.rows(batch_of([]), ("k",)).schema.names == ["k", "v", "_change_type"]


@given(rows=CHANGES)
def test_the_last_row_of_a_key(rows: list[tuple[Any, ...]]) -> None:
    """The new one, or the one that went; where a key has several of either, the error names the column only."""
    for sign in (1, -1):
        several = Counter({k: 0 for k, *_ in rows})
        for k, _, w in rows:
            several[k] += max(sign * w, 0)
        if max(several.values(), default=0) > 1:
            with pytest.raises(
                SpecError, match=r"output\.key: the result has several rows with the same k, and"
            ):
                changelog.latest(batch_of(rows), ("k",))
            return
    table = {k: (k, v, 1) for k, v, w in rows if w > 0}
    table = {k: (k, v, -1) for k, v, w in rows if w < 0} | table
    made = read(changelog.latest(batch_of(rows), ("k",)))
    assert sorted(map(str, made)) == sorted(map(str, table.values()))
    assert [w for *_, w in made] == sorted(w for *_, w in made), "what goes is first"


@pytest.mark.parametrize(
    "column",
    [
        pa.array([float("nan"), float("nan")]),
        pa.array([0.0, -0.0]),
        pa.array([None, None], pa.decimal128(9, 2)),
        pa.array([b"a", b"a"]),
        pa.array([1, 1], pa.timestamp("us", "UTC")),
        pa.array([True, True]),
    ],
    ids=str,
)
def test_keys_of_every_type_meet(column: pa.Array) -> None:
    """Also those that are not equal to themselves."""
    batch = pa.record_batch([column, pa.array([-1, 1])], ["k", "$weight"])
    assert changelog.rows(batch, ("k",)).column(1).to_pylist() == ["update_preimage", "update_postimage"]


class Kept(ConsoleSink):
    """Keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__(0)
        self.got: list[list[tuple[Any, ...]]] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self.got.append(read(batch))


FRAMES = [batch_of([(1, "a", -1), (2, "a", -1)]), batch_of([(1, "b", 1)])]
UPDATED = [(2, "a", "delete"), (1, "a", "update_preimage"), (1, "b", "update_postimage")]


def test_frames_of_a_unit_are_seen_together() -> None:
    """With a key: an old row and a new one may be in two frames. Without, each frame passes at once."""
    kept = Kept()
    sink = changing(kept, SinkConfig("noop", "changelog", ("k",)), 5)
    for frame in FRAMES:
        sink.write(frame)
    assert kept.got == []
    sink.next_unit()
    assert kept.got == [[(*row, 5) for row in UPDATED]]
    kept.got.clear()
    sink.next_unit()
    assert kept.got == [], "a unit without rows writes none"
    sink = changing(kept, SinkConfig("noop", "changelog"), 5)
    sink.write(FRAMES[0])
    assert kept.got == [[(1, "a", "delete", 5), (2, "a", "delete", 5)]]


def test_who_replaces_and_who_shows() -> None:
    """A topic takes the last row of each key, a console shows what happened; append changes nothing."""
    topic = KafkaOutput(bootstrap_servers="kafka:9092", topic="t")
    for config, made in (
        (SinkConfig("kafka", "upsert", ("k",), kafka=KafkaSinkConfig(topic)), [(2, "a", -1), (1, "b", 1)]),
        (SinkConfig("console", "upsert", ("k",)), [(*row, 0) for row in UPDATED]),
    ):
        kept = Kept()
        sink = changing(kept, config, 0)
        for frame in FRAMES:
            sink.write(frame)
        sink.next_unit()
        assert kept.got == [made]
    assert not isinstance(changing(Kept(), SinkConfig("console"), 0), ChangingSink)


def test_rows_of_a_dataframe() -> None:
    """No number: the batches are the caller's."""
    assert [read(f) for f in shown(FRAMES, SinkConfig("rows", "upsert", ("k",)))] == [UPDATED]
    assert [len(f) for f in shown(FRAMES, SinkConfig("rows", "changelog"))] == [2, 1]
    assert list(shown(FRAMES, SinkConfig("rows"))) == FRAMES
    assert list(shown([], SinkConfig("rows", "upsert", ("k",)))) == []
