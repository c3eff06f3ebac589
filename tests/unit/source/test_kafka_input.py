"""The log of a topic's input: nothing is written while nothing happens, and a year of batches does not make it long."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from joinlib.errors import InputError, StateError
from joinlib.source.kafka.brokers import Brokers
from joinlib.source.kafka.input import KafkaInput
from joinlib.source.kafka.ranges import SLICE_BYTES, Partition
from joinlib.source.log import Log
from tests.configs import topics

SCHEMA = pa.schema([("a", pa.int64())])


class Fake(Brokers):
    """Brokers that say what a test sets."""

    def __init__(self, message_bytes: int = 100) -> None:
        self.now: dict[Partition, tuple[int, int]] = {}
        self.message_bytes = message_bytes
        self.asked = 0
        self.ids: dict[str, str] = {}

    def ends(self) -> dict[Partition, tuple[int, int]]:
        return self.now

    def sizes(self, points: Mapping[str, Iterable[tuple[int, int]]]) -> dict[str, int]:
        self.asked += 1
        return dict.fromkeys(points, self.message_bytes)


def opened(folder: Path, brokers: Brokers, **config: Any) -> KafkaInput:
    log = Log(folder / "t.jsonl")
    return KafkaInput(topics("i", "k:1", "t", **config), SCHEMA, log, brokers, clock=lambda: 0.0)


@pytest.mark.slow
def test_idle_and_busy(tmp_path: Path) -> None:
    """An idle topic adds nothing to the log; a busy one keeps what Spark may ask for, and little more."""
    brokers = Fake()
    one = opened(tmp_path, brokers)
    for batch in range(2_600):
        brokers.now = {("t", p): (0, batch) for p in range(3)}
        known = one.discover()
        before = (tmp_path / "t.jsonl").read_bytes() if batch % 500 == 0 else None
        assert one.discover() == known
        assert before is None or (tmp_path / "t.jsonl").read_bytes() == before
        one.forget(max(known - 6, 0))

    again = opened(tmp_path, brokers)

    assert len((tmp_path / "t.jsonl").read_text().splitlines()) < 2_200
    assert again.discover() == known
    assert again.slices(known - 6, known) == one.slices(known - 6, known)
    assert again.lag(known - 3) == one.lag(known - 3) == {"slices": 3, "rows": 3, "read": 7794}
    assert brokers.asked == 1  # sizes: not with every batch
    with pytest.raises(StateError, match="restore the file or start with a new checkpoint"):
        again.slices(0, 1)


def test_a_backlog_of_large_messages_is_cut_fine(tmp_path: Path) -> None:
    """A slice is bounded in bytes as in messages, and says how many it has, for a batch to be bounded too."""
    brokers = Fake(SLICE_BYTES // 10)
    brokers.now = {("t", 0): (0, 1_000)}
    one = opened(tmp_path, brokers)
    slices = one.slices(0, one.discover())
    assert len(slices) == 100
    assert all(s.size <= SLICE_BYTES for s in slices)
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("high", [40, 100, 500])  # less than was read, as much, more
def test_a_topic_that_was_made_again(tmp_path: Path, high: int) -> None:
    """Its offsets mean other messages, however many there are; a partition that it has not may come back later."""
    brokers = Fake()
    brokers.ids, brokers.now = {"t": "old"}, {("t", 0): (0, 100), ("t", 1): (0, 9)}
    slices = opened(tmp_path, brokers).discover()

    brokers.ids, brokers.now = {"t": "new"}, {("t", 0): (0, high)}
    with pytest.raises(
        InputError, match=r"topic t, partition 0.*deleted and created again.*onMissingOffsets: reset"
    ):
        opened(tmp_path, brokers).discover()
    again = opened(tmp_path, brokers, on_missing_offsets="reset")
    known = again.discover()
    assert [(s.start, s.stop) for s in again.slices(slices, known)] == [(0, high)]

    brokers.now[("t", 1)] = (0, 5)
    last = opened(tmp_path, brokers)
    assert [(s.group, s.start, s.stop) for s in last.slices(known, last.discover())] == [(1, 0, 5)]


def test_a_log_of_before_there_were_ids(tmp_path: Path) -> None:
    """The topic is taken for the one that it was; from then on it is known by its id."""
    brokers = Fake()
    brokers.now = {("t", 0): (0, 100)}
    opened(tmp_path, brokers).discover()
    brokers.ids, brokers.now = {"t": "one"}, {("t", 0): (0, 200)}
    one = opened(tmp_path, brokers)
    assert [(s.start, s.stop) for s in one.slices(1, one.discover())] == [(100, 200)]

    brokers.ids = {"t": "another"}
    with pytest.raises(InputError, match="deleted and created again"):
        opened(tmp_path, brokers).discover()
