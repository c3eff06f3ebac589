"""What a job makes of tables that change: reads each new slice once, and keeps the table that the changes make.

replica = Replica(tmp_path, {"orders": plan(...)})
replica.follow(); replica.rows("orders") == the table
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from joinlib.model.inputs import UNCHANGED, WEIGHT
from joinlib.source import opened
from joinlib.source.postgres import PostgresLogConfig
from tests import configs
from tests.postgres.database import Database

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("n", pa.decimal128(12, 2))])
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Plan:
    """An input as a query has it."""

    name: str
    config: PostgresLogConfig
    schema: pa.Schema


def plan(
    server: Database, table: str, schema: pa.Schema, slot: str, key: tuple[str, ...] = ("id",), **more: Any
) -> Plan:
    """An input over a table, which is named as it is."""
    publication = more.pop("publication", "p")
    config = configs.table(table, **{**server.fields, "table": table, "patience_us": 20_000_000, **more})
    return Plan(table, PostgresLogConfig(config, slot, publication, key), schema)


def following(logical: Database, table: str, **more: Any) -> Plan:
    """An input over a table of the fixture, by the slot of its name."""
    return plan(logical, table, **{"schema": SCHEMA, "slot": table, "publication": f"p_{table}", **more})


class Replica:
    """Tables that follow those of a database. What it has read is known by the folder and `offsets`."""

    def __init__(self, folder: Path, plans: list[Plan], whole: bool = False) -> None:
        self.plans = {p.name: p for p in plans}
        self.folder, self.whole = folder, whole
        self.offsets = dict.fromkeys(self.plans, 0)
        self.upserts: dict[str, dict[Row, Row]] = {name: {} for name in self.plans}
        self.counts: dict[str, Counter[Row]] = {name: Counter() for name in self.plans}
        self.changes = 0
        self.restart()

    def restart(self) -> None:
        """As if the driver's part was another process from now on."""
        self.inputs = opened(list(self.plans.values()), self.folder, self.whole)

    def step(self, forget: bool = True) -> int:
        """Look once, read what is new; the number of changes."""
        before = self.changes
        for name, known in {n: i.discover() for n, i in self.inputs.items()}.items():
            for batch in self.inputs[name].reader.read_many(
                self.inputs[name].slices(self.offsets[name], known), self.plans[name].schema.names
            ):
                self._apply(name, batch)
            self.offsets[name] = known
            if forget:
                self.inputs[name].forget(known)
        return self.changes - before

    def follow(self, most: int = 1000) -> None:
        """Look until nothing is new."""
        for _ in range(most):
            if not self.step():
                return
        raise AssertionError("there is always something new")

    def rows(self, name: str) -> Counter[Row]:
        """The table, as the changes so far have made it."""
        if self.plans[name].config.upsert:
            return Counter(self.upserts[name].values())
        assert all(n >= 0 for n in self.counts[name].values()), "a row went that had not come"
        return +self.counts[name]

    def _apply(self, name: str, batch: pa.RecordBatch) -> None:
        plan, names = self.plans[name], self.plans[name].schema.names
        self.changes += batch.num_rows
        positions = [names.index(k) for k in plan.config.key]
        masks = batch.column(UNCHANGED).to_pylist() if plan.config.upsert else [0] * batch.num_rows
        values = zip(*(batch.column(n).to_pylist() for n in names), strict=True)
        for row, weight, mask in zip(values, batch.column(WEIGHT).to_pylist(), masks, strict=True):
            if not plan.config.upsert:
                self.counts[name][row] += weight
                continue
            key, rows = tuple(row[i] for i in positions), self.upserts[name]
            if weight < 0:
                rows.pop(key, None)
            else:
                rows[key] = tuple(rows[key][i] if mask >> i & 1 else v for i, v in enumerate(row))


def source(server: Database, plan: Plan) -> Counter[Row]:
    """The table, as the database has it."""
    names = ", ".join(f"{f.name}::text" if f.type == pa.string() else f.name for f in plan.schema)
    found = server.execute(f"SELECT {names} FROM {plan.config.table}")
    assert found is not None
    columns = []
    for column, field in zip(found.columns, plan.schema, strict=True):
        plain = column.combine_chunks()
        plain = plain.storage if isinstance(plain, pa.ExtensionArray) else plain
        columns.append(plain.cast(field.type).to_pylist())
    return Counter(zip(*columns, strict=True))
