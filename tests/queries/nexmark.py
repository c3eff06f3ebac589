"""Events of Nexmark, small and dense: people, auctions and bids in the order of their time, some seconds late."""

import datetime as dt
from random import Random
from typing import Any

from tests.queries.draw import Shape
from tests.queries.hints import Value

Row = dict[str, Any]
START = dt.datetime(2026, 1, 1, 6, 0, 0)  # noqa: DTZ001 - as in most files, no zone
HASTE_S = 3  # so late an event is at most
CHANNELS = ("Google", "Facebook", "Baidu", "Apple", "channel-7", "channel-8")


def rows(hints: dict[str, list[Value]], shape: Shape) -> dict[str, list[Row]]:
    """Three streams of one to three to twelve rows, and the side input."""
    del hints  # a query's numbers are those of the benchmark's generator
    random = Random(shape.seed)
    count = shape.rows // 16
    people = [_person(random, n, n * 16) for n in range(count)]
    auctions = [_auction(random, n, n * 5, count) for n in range(count * 3)]
    bids = [_bid(random, n, len(auctions)) for n in range(shape.rows)]
    side = [{"key": 123 * n % 10000, "value": f"side {n}"} for n in range(1, 20)]
    return {"person": people, "auction": auctions, "bid": bids, "side_input": side}


def _at(second: float, random: Random) -> dt.datetime:
    """Every two seconds or so, of every hour of a day some; microseconds make times unique."""
    burst = int(second) // 20  # a burst of a few seconds, then silence
    late = random.random() * HASTE_S
    return START + dt.timedelta(seconds=burst * 47 + second % 20 - late, microseconds=random.randint(0, 999))


def _person(random: Random, number: int, second: float) -> Row:
    return {
        "id": 1000 + number, "name": f"person {number % 7}", "emailAddress": f"{number}@example.org",
        "creditCard": f"{random.randint(1000, 9999)}", "city": random.choice(("Portland", "Boise", "Phoenix")),
        "state": random.choice(("OR", "ID", "CA", "AZ", None)), "dateTime": _at(second, random), "extra": "p",
    }  # fmt: skip


def _auction(random: Random, number: int, second: float, people: int) -> Row:
    at = _at(second, random)
    newest = max(0, min(people - 1, int(second) // 16))
    return {
        "id": 123 * (1 + number // 3) if number % 3 == 0 else 123 * (1 + number // 3) + number % 3,
        "itemName": f"item {number}", "description": None if number % 5 == 0 else "good", "initialBid": random.randint(1, 99),
        "reserve": random.randint(100, 9999), "dateTime": at, "expires": at + dt.timedelta(seconds=random.choice((5, 40, 90))),
        "seller": 1000 + max(0, newest - random.choice((0, 0, 0, 1, 2))), "category": 10 + number % 4, "extra": "a",
    }  # fmt: skip


def _bid(random: Random, number: int, auctions: int) -> Row:
    newest = min(auctions - 1, number * 3 // 16)
    of = max(0, newest - random.choice((0, 0, 1, 1, 2, 5, 9)))
    channel = random.choice(CHANNELS)
    tail = f"?a=1&channel_id={random.randint(1, 99)}" if channel[0] == "c" and random.random() < 0.5 else ""
    return {
        "auction": 123 * (1 + of // 3) + of % 3, "bidder": 1000 + number // 16 - random.choice((0, 0, 0, 1, 2)),
        "price": int(10 ** (random.random() * 7)) + number, "channel": channel,
        "url": f"https://www.nexmark.com/{channel}/item/{of}{tail}", "dateTime": _at(number, random),
        "extra": random.choice(("abc", "cc", "", None)),
    }  # fmt: skip
