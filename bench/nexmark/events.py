"""Events of Nexmark, as its generator draws them: of 50 events one is a person, three are auctions, 46 are bids.

event n     second n / rate      id of a person: n // 50 + 1000      of an auction: 3 (n // 50) + 0..2 + 1000
a bid       half of them on the newest auction whose number ends with 00, others on one of the last hundred or so
an auction  three quarters by the newest seller whose number ends with 00, others by one of the last thousand
a price     10^(6 x) dollars, in cents

python bench/nexmark/events.py --events 10000000
"""

import argparse
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.append(str(Path(__file__).parents[1]))
import task
from task import Task, write_file

OF_50 = {"person": 1, "auction": 3, "bid": 46}
INPUTS = {
    "person": "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING,"
    " dateTime TIMESTAMP, extra STRING",
    "auction": "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP,"
    " expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING",
}
START_US = 1_436_918_400_000_000  # 2015-07-15
FIRST = 1000  # id of persons and auctions
ACTIVE_PEOPLE, IN_FLIGHT = 1000, 100
AHEAD = 10  # so many ids that are not there yet may be named
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")


@dataclass(frozen=True)
class Shape:
    """What the events are; equal shapes are equal bytes."""

    events: int = 10_000_000
    rate: int = 10_000  # events a second of their time
    batches: int = 20
    seed: int = 7
    version: int = 1  # of this file's way to make rows

    @property
    def folder(self) -> Path:
        """Where the files of this shape lie."""
        return task.folder(f"nexmark-{self.events}", self)


QUICK = Shape(events=500_000, batches=10)
TINY = Shape(events=20_000, rate=1_000, batches=4)


def ensure(shape: Shape) -> Path:
    """The folder of a shape, written if it is not there: 10 M events take half a minute and 1 GB."""
    return task.ensure(shape.folder, partial(_write, shape))


def _write(shape: Shape, folder: Path) -> Task:
    rows = 0
    for batch in range(shape.batches):
        random = np.random.default_rng([shape.seed, batch])
        numbers = np.arange(batch, batch + 1) * (shape.events // shape.batches)
        events = np.arange(numbers[0], numbers[0] + shape.events // shape.batches)
        offset = events % 50
        made = {
            "person": _people(events[offset < 1], shape, random),
            "auction": _auctions(events[(offset >= 1) & (offset < 4)], shape, random),
            "bid": _bids(events[offset >= 4], shape, random),
        }
        for name, table in made.items():
            write_file(table, folder / name, batch)
            rows += table.num_rows
    return Task(INPUTS, rows, shape.batches, 0)


def _people(events: np.ndarray, shape: Shape, random: np.random.Generator) -> pa.Table:
    count = len(events)
    first, last = _one_of(FIRST_NAMES, count, random), _one_of(LAST_NAMES, count, random)
    return _table(
        "person",
        [
            last_person(events) + FIRST,
            _joined(" ", first, last),
            _joined("@", _text(7, count, random), _text(9, count, random)),
            _text(19, count, random),
            _one_of(CITIES, count, random),
            _one_of(STATES, count, random),
            _times(events, shape),
            _text(110, count, random),
        ],
    )


def _auctions(events: np.ndarray, shape: Shape, random: np.random.Generator) -> pa.Table:
    count, initial = len(events), _prices(len(events), random)
    horizon_us = int(IN_FLIGHT * 50 / 3 / shape.rate * 1e6)  # the time in which so many auctions begin
    times = START_US + events * 1_000_000 // shape.rate
    expires = times + 1000 + random.integers(0, max(2 * horizon_us, 1), count) // 1000 * 1000
    person = last_person(events)
    hot = random.integers(0, 4, count) > 0
    seller = np.where(hot, person // 100 * 100, _active_person(person, random)) + FIRST
    return _table(
        "auction",
        [
            last_auction(events) + FIRST,
            _text(12, count, random),
            _text(60, count, random),
            initial,
            initial + _prices(count, random),
            _times(events, shape),
            pa.array(expires // 1000 * 1000, pa.timestamp("us")),
            seller,
            10 + random.integers(0, 5, count),
            _text(360, count, random),
        ],
    )


def _bids(events: np.ndarray, shape: Shape, random: np.random.Generator) -> pa.Table:
    count = len(events)
    newest, person = last_auction(events), last_person(events)
    oldest = np.maximum(newest - IN_FLIGHT, 0)
    any_of = oldest + random.integers(0, newest - oldest + 1 + AHEAD)
    auction = np.where(random.integers(0, 2, count) > 0, newest // 100 * 100, any_of) + FIRST
    hot = random.integers(0, 4, count) > 0
    bidder = np.where(hot, person // 100 * 100 + 1, _active_person(person, random)) + FIRST
    numbers = random.integers(0, 10_000, count)
    named, known = random.integers(0, 2, count) > 0, _one_of(CHANNELS, count, random).cast(pa.string())
    number = pa.array(numbers).cast(pa.string())
    channel = pa.compute.if_else(pa.array(named), known, _joined("", "channel-", number))
    page = _joined(
        "",
        "https://www.nexmark.com/",
        _text(5, count, random),
        "/",
        _text(5, count, random),
        "/item.htm?query=1",
    )
    url = pa.compute.if_else(pa.array(named), page, _joined("", page, "&channel_id=", number))
    return _table(
        "bid",
        [
            auction,
            bidder,
            _prices(count, random),
            channel,
            url,
            _times(events, shape),
            _text(12, count, random),
        ],
    )


def last_person(events: np.ndarray) -> np.ndarray:
    """The number of the newest person at each event."""
    return events // 50


def last_auction(events: np.ndarray) -> np.ndarray:
    """The number of the newest auction at each event; -1 becomes 0."""
    epoch, offset = events // 50, events % 50
    return np.maximum(epoch * 3 + np.where(offset < 1, -1, np.minimum(offset, 3) - 1), 0)


def _active_person(person: np.ndarray, random: np.random.Generator) -> np.ndarray:
    active = np.minimum(person + 1, ACTIVE_PEOPLE)
    return person + 1 - active + random.integers(0, active + AHEAD)


def _prices(count: int, random: np.random.Generator) -> np.ndarray:
    return np.round(10 ** (random.random(count) * 6) * 100).astype(np.int64)


def _times(events: np.ndarray, shape: Shape) -> pa.Array:
    return pa.array((START_US + events * 1_000_000 // shape.rate) // 1000 * 1000, pa.timestamp("us"))


def _text(length: int, count: int, random: np.random.Generator) -> pa.Array:
    """Random small letters, of about that length."""
    lengths = random.integers(length * 4 // 5, length * 6 // 5 + 1, count)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    letters = random.integers(97, 123, int(ends[-1]), dtype=np.uint8)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends.tobytes()), pa.py_buffer(letters.tobytes()))


def _one_of(words: tuple[str, ...], count: int, random: np.random.Generator) -> pa.Array:
    return pa.array(words).take(pa.array(random.integers(0, len(words), count)))


def _joined(between: str, *parts: pa.Array | str) -> pa.Array:
    return pa.compute.binary_join_element_wise(*parts, between)


def _table(name: str, columns: list[object]) -> pa.Table:
    names = [column.split()[0] for column in INPUTS[name].split(", ")]
    return pa.table(dict(zip(names, map(pa.array, columns), strict=True)))


def main() -> None:
    """Writes the events and prints where they are."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in asdict(Shape()).items():
        if name != "version":
            asked.add_argument(f"--{name}", type=int, default=default)
    print(ensure(Shape(**vars(asked.parse_args()))))


if __name__ == "__main__":
    main()
