"""Envelopes of Debezium some of which cannot be read, and rows of others that fail; without Spark.

After each batch the answer is DuckDB's over the rows that are there and do not fail, and the letters, those of rows that went
taken from those of rows that came, are the others.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from joinlib import registered
from tests.kafka.broker import Broker
from tests.kafka.test_letters import expected, spec
from tests.laws.changelog import Changelog
from tests.laws.harness import SMALL
from tests.laws.product import Course, own_folder
from tests.laws.test_letters import net
from tests.laws.test_small_batches import Alternating, letters

BATCHES = 5
UNREADABLE = (
    b"no",
    b"[1]",
    b'{"op":"x","after":{"id":1,"amount":2}}',
    b'{"op":"t"}',
    b'{"op":"c","after":null}',
    b'{"op":"u","after":{"id":1,"amount":"x"}}',
    b'{"op":"c","after":{"amount":2}}',
    b'{"op":"d","before":{"amount":2}}',
)


@dataclass
class Table:
    """The table whose changes are told: amounts by id. Each id has its partition."""

    broker: Broker
    topic: str
    draw: Random
    amounts: dict[int, int] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=lambda: [0, 0])
    unreadable: list[tuple[str, int, int, str]] = field(default_factory=list)

    def batch(self) -> None:
        """Send changes of both partitions, and messages that say nothing among them."""
        for partition in (0, 1):
            values: list[bytes | None] = []
            for _ in range(self.draw.randrange(12)):
                if self.draw.random() < 0.3:
                    bad = self.draw.choice(UNREADABLE)
                    place = partition, self.offsets[partition] + len(values)
                    self.unreadable.append((self.topic, *place, bad.decode()))
                    values.append(bad)
                else:
                    values.append(self._change(2 * self.draw.randrange(4) + partition))
            self.broker.send(self.topic, values, partition)
            self.offsets[partition] += len(values)

    def _change(self, id: int) -> bytes:
        before = {"id": id, "amount": self.amounts[id]} if id in self.amounts else None
        if before is not None and self.draw.random() < 0.3:
            del self.amounts[id]
            return json.dumps({"op": "d", "before": before, "after": None}).encode()
        self.amounts[id] = self.draw.choice([0, 0, 1, 2, 5, 20])
        after = {"id": id, "amount": self.amounts[id]}
        return json.dumps({"op": "u" if before else "c", "before": before, "after": after}).encode()

    def answer(self) -> Counter[Any]:
        """The result over the rows that do not fail."""
        sound = [row for row in self.amounts.items() if row[1]]
        return expected(sound) if sound else Counter()


@pytest.mark.parametrize("seed", range(4))
def test_changes_among_what_cannot_be_read(broker: Broker, seed: int) -> None:
    draw = Random(seed)
    topic = broker.topic(f"letters_of_changes_{seed}", 2)
    some = [frozenset(draw.sample(range(BATCHES), 2)) for _ in range(2)]
    with own_folder() as folder:
        course = Course((2,), twice=some[0], restart=some[1], seed=seed)
        run = Alternating(registered.load(spec(folder, broker, topic, "debezium")), SMALL, course)
        table, out = Table(broker, topic, draw), Changelog(folder / "out")
        for number in range(BATCHES):
            table.batch()
            run.renew()
            list(run.batches())
            for done in range(number, run.batch):
                out.batch(done, units_apart=False)
            assert out.answer == table.answer(), f"after {number}"
            found = list(letters(folder))
            failing = [one for one in found if one["reason"] == "expression"]
            assert net(failing, "id", "amount") == Counter(r for r in table.amounts.items() if not r[1])
            unreadable = [one for one in found if one["reason"] == "unreadable"]
            assert len(failing) + len(unreadable) == len(found)
            places = [(one["file"], one["partition"], one["at"], one["text"]) for one in unreadable]
            assert sorted(places) == sorted(table.unreadable)
            assert {one["input"] for one in found} <= {"payments"}
        assert run.batch == BATCHES and failing and unreadable
