"""Small batches among others, by paths, into several outputs, of rows some of which fail: what one task does is what many do.

Every second batch is small. After each, an output holds DuckDB's answer over the rows that do not fail, and the letters are
the others, each once, whatever dies in between.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from joinlib.engine import receipt, small
from joinlib.engine.composer import Offset
from joinlib.inprocess import Told
from joinlib.model.stage import HopStage
from tests.laws.changelog import Changelog
from tests.laws.document import written
from tests.laws.harness import SMALL
from tests.laws.product import Course, Product, own_folder

FULL = 9223372036854775800  # from 8 on, a sum with it overflows
SCHEMAS = {
    "orders": "id BIGINT, q STRING",
    "payments": "id BIGINT, city BIGINT, amount BIGINT",
    "cities": "city BIGINT, level BIGINT",
}
NAMES = {name: [column.split()[0] for column in schema.split(",")] for name, schema in SCHEMAS.items()}
JOINED = """FROM orders o JOIN payments p ON o.id = p.id JOIN cities c ON p.city = c.city
    WHERE CAST(o.q AS BIGINT) < 5 AND 12 / p.amount > 1"""
SQL = {
    "each": f"SELECT o.id, p.amount, {FULL} + c.level AS more {JOINED}",
    "sums": f"SELECT p.city, sum(2520 / c.level) AS n {JOINED} GROUP BY p.city",
}
FAILS = {"each": "c.level >= 8", "sums": "c.level = 0"}  # joined rows for which the list fails
BATCHES = 6
UNREADABLE = (2, 3)  # batches without a single row, of which one is small
Rows = Counter[tuple[Any, ...]]
Place = tuple[str, str, str, int, str]


class World:
    """Files, one of each input for a batch; the rows that do not fail where they are read, and the letters of the others."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.draw = folder, Random(seed)
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in SCHEMAS}
        self.letters: Counter[Place] = Counter()
        for name in SCHEMAS:
            (folder / name).mkdir()

    def batch(self, number: int) -> None:
        """Write the next files."""
        for name in SCHEMAS:
            file, lines = self.folder / name / f"{number}.csv", [",".join(NAMES[name])]
            for at in range(1, 7):
                values = self._drawn(name)
                lines.append(",".join(map(str, values)))
                if number in UNREADABLE or self.draw.random() < 0.1:
                    lines[-1] += ",more"
                    self.letters[name, "unreadable", str(file), at, lines[-1]] += 1
                elif "bad" in values or (name == "payments" and values[2] == 0):
                    row = json.dumps(dict(zip(NAMES[name], values, strict=True)))
                    self.letters[name, "expression", str(file), at, row] += 1
                else:
                    self.rows[name].append(values)
            file.write_text("\n".join([*lines, ""]))

    def _drawn(self, name: str) -> tuple[Any, ...]:
        pick = self.draw.randrange
        match name:
            case "orders":
                return pick(4), self.draw.choice(["1", "2", "7", "bad"])
            case "payments":
                return pick(4), pick(3), pick(5)
        return pick(3), pick(10)

    def answers(self) -> tuple[dict[str, Rows], Counter[str]]:
        """What each output holds, and how many joined rows fail in its list."""
        db = duckdb.connect()
        for name, rows in self.rows.items():
            db.execute(f"CREATE TABLE {name} ({SCHEMAS[name].replace('STRING', 'VARCHAR')})")
            if rows:
                db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        found, failed = dict[str, Rows](), Counter[str]()
        for name, sql in SQL.items():
            found[name] = Counter(db.sql(sql.replace("WHERE", f"WHERE NOT ({FAILS[name]}) AND")).fetchall())
            ((failed[name],),) = db.sql(f"SELECT count(*) {JOINED} AND {FAILS[name]}").fetchall()
        return found, failed


class Alternating(Product):
    """Every second batch is small; whoever runs it in a new process has another limit, and does what the envelope says."""

    def next(self) -> Offset | None:
        self.composer.task = replace(self.composer.task, small_rows=10**6 if self.batch % 2 else -1)
        return super().next()

    def join(self, end: Offset, partitions: int = 1) -> list[Told]:
        if not end["small"]:
            return super().join(end, partitions)
        (part,) = self.composer.parts(self.offset, end)
        assert part.small
        told = small.run(self.plan.source, self.plan.join, part, self.batch, 0)
        return [Told(receipt.decode(text), block) for text, block in receipt.heard(told)]

    @property
    def _partitions(self) -> int:
        return 1 if self.batch % 2 else super()._partitions


def document(folder: Path, targets: Mapping[str, Any]) -> dict[str, Any]:
    """The spec. targets: where outputs go that are not files."""
    inputs = {
        name: {
            "schema": schema,
            "files": {"path": name, "format": "csv", "orderBy": "name", "maxFilesPerBatch": 1},
            "onError": "deadLetter",
        }
        for name, schema in SCHEMAS.items()
    }
    modes: dict[str, Any] = {"each": {}, "sums": {"mode": "changelog"}}
    return {
        "inputs": inputs,
        "outputs": {
            name: {
                "sql": sql,
                **targets.get(name, {"files": {"path": f"out/{name}"}}),
                **modes[name],
                "onError": "deadLetter",
            }
            for name, sql in SQL.items()
        },
        "checkpoint": {"path": "checkpoint", "sync": False},
        "deadLetters": {"path": "dead"},
        "join": {"units": 4, "strategy": "paths"},
    }


def place(one: dict[str, Any]) -> Place:
    """What tells a letter of an input from others."""
    text = one["text"] if one["row"] is None else json.dumps(one["row"])
    return one["input"], one["reason"], one["file"], one["at"], text


def courses(seed: int) -> Course:
    draw = Random(seed)
    some = [frozenset(draw.sample(range(BATCHES), 2)) for _ in range(3)]
    return Course((draw.choice([1, 2]), 1, draw.choice([2, 4])), some[0], some[1], seed, some[2])


def holds(
    folder: Path, job: type[Alternating], seed: int, targets: Mapping[str, Any], each: Callable[[], Rows]
) -> None:
    """All outputs are right after each batch, and the letters at the end. each: what the output of that name holds."""
    world, expected = World(folder, seed), []
    for batch in range(BATCHES):
        world.batch(batch)
        expected.append(world.answers())
    sums = Changelog(folder / "out/sums")
    run = job(written(document(folder, targets), folder), SMALL, courses(seed))
    assert sum(isinstance(stage, HopStage) for stage in run.plan.pipeline.stages) == 2
    for batch in run.batches():
        sums.batch(batch, units_apart=False)
        assert {"each": each(), "sums": Counter(sums.answer)} == expected[batch][0], f"after batch {batch}"
    assert run.batch == BATCHES
    told = letters(folder)
    assert Counter(place(one) for one in told if one["input"]) == world.letters
    assert Counter(one["output"] for one in told if not one["input"]) == expected[-1][1]
    assert run.figures.dead == Counter((one["input"] or one["output"], one["reason"]) for one in told)


@pytest.mark.parametrize("seed", range(3))
def test_what_one_task_does_is_what_many_do(seed: int) -> None:
    with own_folder() as folder:

        def each() -> Rows:
            files = [str(file) for file in (folder / "out/each").glob("batch=*/*.parquet")]
            return Counter(duckdb.read_parquet(files, hive_partitioning=False).fetchall() if files else [])

        holds(folder, Alternating, seed, {}, each)


def letters(folder: Path) -> list[dict[str, Any]]:
    """All that is in the box."""
    files = sorted((folder / "dead").glob("batch=*/*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]
