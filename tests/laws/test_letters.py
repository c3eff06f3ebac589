"""Rows that fail become dead letters, each once, and the result is DuckDB's over the others, whatever dies in between.

Rows fail where they are read, in a filter, behind the stage of an upsert and in the select list after the join; some are
deleted later, and must fail again in the same way.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.laws.changelog import Changelog
from tests.laws.document import written
from tests.laws.harness import SMALL
from tests.laws.product import Course, Product, own_folder

FULL = 9223372036854775800  # from 8 on, a sum with it overflows
SQL = f"""
    SELECT o.id, p.amount + {FULL} AS more, c.level FROM orders o
    JOIN payments p ON o.id = p.id
    JOIN customers c ON o.id = c.id
    WHERE CAST(o.q AS BIGINT) < 5 AND 10 / p.rate > 1 AND CAST(c.level AS BIGINT) < 9
"""
SCHEMAS = {
    "orders": "id BIGINT, q STRING",
    "payments": "id BIGINT, amount BIGINT, rate BIGINT, op STRING",
    "customers": "id BIGINT, level STRING",
}
BATCHES = 5


class World:
    """The files, one of each input for a batch; the rows that count, and the letters that there must be."""

    def __init__(self, folder: Path, seed: int, format: str) -> None:
        self.folder, self.draw, self.format = folder, Random(seed), format
        self.orders: list[tuple[int, str]] = []
        self.payments: list[tuple[int, int, int]] = []
        self.customers: dict[int, str] = {}
        self.letters: Counter[tuple[Any, ...]] = Counter()
        for name in SCHEMAS:
            (folder / name).mkdir()

    def batch(self, number: int) -> None:
        """Write the next files."""
        self._orders(number)
        self._payments(number)
        self._customers(number)

    def _orders(self, number: int) -> None:
        file = self.folder / "orders" / f"{number}.{self.format}"
        lines = ["id,q"] if self.format == "csv" else []
        for at in range(1, 9):
            id, q = self.draw.randrange(4), self.draw.choice(["1", "2", "7", "bad", "x"])
            if q == "x":
                lines.append(f"{id},1,2" if self.format == "csv" else f'{{"id": {id}, "q"')
                self.letters["orders", "unreadable", str(file), at, lines[-1]] += 1
                continue
            lines.append(f"{id},{q}" if self.format == "csv" else json.dumps({"id": id, "q": q}))
            if q == "bad":
                self.letters["orders", "expression", str(file), at, f'{{"id":{id},"q":"bad"}}'] += 1
            else:
                self.orders.append((id, q))
        file.write_text("\n".join([*lines, ""]))

    def _payments(self, number: int) -> None:
        rows = []
        for at in range(1, 7):
            if self.payments and self.draw.random() < 0.4:
                row, op = self.payments.pop(self.draw.randrange(len(self.payments))), "delete"
            else:
                row, op = (
                    (self.draw.randrange(4), self.draw.randrange(6, 10), self.draw.choice([0, 1, 2])),
                    "insert",
                )
                self.payments.append(row)
            rows.append((*row, op))
            if row[2] == 0:
                file = str(self.folder / "payments" / f"{number}.parquet")
                text = json.dumps(
                    dict(zip(("id", "amount", "rate", "op"), rows[-1], strict=True)), separators=(",", ":")
                )
                self.letters["payments", "expression", file, at, text] += 1
        names = ("id", "amount", "rate", "op")
        table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})
        pq.write_table(table, self.folder / "payments" / f"{number}.parquet")

    def _customers(self, number: int) -> None:
        rows = [(self.draw.randrange(4), self.draw.choice(["1", "2", "low"])) for _ in range(3)]
        self.customers |= dict(rows)
        (self.folder / "customers" / f"{number}.csv").write_text(
            "\n".join(["id,level", *(f"{id},{level}" for id, level in rows), ""])
        )

    def answers(self) -> tuple[Counter[Any], Counter[Any]]:
        """The result over the rows that do not fail, and the joined rows whose select list fails."""
        db = duckdb.connect()
        tables: Mapping[str, Any] = {
            "orders": (self.orders, "id BIGINT, q VARCHAR"),
            "payments": ([p for p in self.payments if p[2]], "id BIGINT, amount BIGINT, rate BIGINT"),
            "customers": ([c for c in self.customers.items() if c[1] != "low"], "id BIGINT, level VARCHAR"),
        }
        for name, (rows, columns) in tables.items():
            db.execute(f"CREATE TABLE {name} ({columns})")
            if rows:
                db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        base = SQL.partition("FROM orders")[2].replace("10 / p.rate", "10.0 / p.rate")
        found = Counter(
            db.sql(f"SELECT o.id, p.amount + {FULL}, c.level FROM orders{base} AND p.amount < 8").fetchall()
        )
        failed = Counter(db.sql(f"SELECT p.amount, c.level FROM orders{base} AND p.amount >= 8").fetchall())
        return found, failed


def document(folder: Path, format: str) -> dict[str, Any]:
    """The spec."""
    formats = {"orders": format, "payments": "parquet", "customers": "csv"}
    inputs: dict[str, Any] = {
        name: {
            "schema": schema,
            "files": {"path": name, "format": formats[name], "orderBy": "name", "maxFilesPerBatch": 1},
            "onError": "deadLetter",
        }
        for name, schema in SCHEMAS.items()
    }
    inputs["payments"]["changes"] = {"op": "op"}
    inputs["customers"]["upsert"] = {"key": ["id"]}
    return {
        "sql": SQL,
        "inputs": inputs,
        "output": {"files": {"path": "out"}, "mode": "changelog", "onError": "deadLetter"},
        "checkpoint": {"path": "checkpoint", "sync": False},
        "deadLetters": {"path": "dead"},
        "join": {"units": 4},
    }


def letters(folder: Path) -> Iterator[dict[str, Any]]:
    """All that is in the box."""
    for file in sorted((folder / "dead").glob("batch=*/*.jsonl")):
        yield from map(json.loads, file.read_text().splitlines())


def net(found: list[dict[str, Any]], *columns: str) -> Counter[Any]:
    """The rows of letters, those that came less those that went."""
    rows: Counter[Any] = Counter()
    for one in found:
        rows[tuple(one["row"][c] for c in columns)] += -1 if one["change"] == "delete" else 1
    assert all(n >= 0 for n in rows.values()), "a row fails when it goes, and did not when it came"
    return +rows


@pytest.mark.parametrize("seed", range(6))
def test_exactly_the_rows_that_fail(seed: int) -> None:
    draw, format = Random(seed), ["csv", "jsonl"][seed % 2]
    some = [frozenset(draw.sample(range(BATCHES), 2)) for _ in range(3)]
    course = Course((draw.choice([1, 2, 4]), draw.choice([1, 4])), twice=some[0], restart=some[1], seed=seed)
    with own_folder() as folder:
        world, expected = World(folder, seed, format), []
        for batch in range(BATCHES):
            world.batch(batch)
            expected.append(world.answers())
        out = Changelog(folder / "out")
        run = Product(written(document(folder, format), folder), SMALL, course)
        for number in run.batches():
            out.batch(number, units_apart=False)
            assert Counter(out.answer) == expected[number][0], f"after batch {number}"
            told = [one for one in letters(folder) if one["reason"] == "result"]
            assert net(told, "p.amount", "c.level") == expected[number][1], f"letters after batch {number}"
        found = list(letters(folder))
        own = [one for one in found if one["input"] in ("orders", "payments")]
        assert Counter(map(place, own)) == world.letters
        low = net([one for one in found if one["input"] == "customers"], "id", "level")
        assert low == Counter(c for c in world.customers.items() if c[1] == "low")
        assert sum(run.figures.dead.values()) == len(found)


def place(one: dict[str, Any]) -> tuple[Any, ...]:
    """What tells a letter of an input from others."""
    text = one["text"] if one["row"] is None else json.dumps(one["row"], separators=(",", ":"))
    return one["input"], one["reason"], one["file"], one["at"], text
