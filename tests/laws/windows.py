"""Random window functions over random rows, for this product and for DuckDB, which shares no code with it."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

MINUTE = timedelta(minutes=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("v", pa.int64()),
        ("x", pa.float64()),
        ("m", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("b", pa.bool_()),
    ]
)
Row = tuple[Any, ...]
_VALUES = ("v", "x", "m", "s", "b", "t")


@dataclass(frozen=True)
class Case:
    """A query over `s` in both dialects."""

    ours: str
    duck: str


def row(dice: random.Random, nulls: bool = True, time: int | None = None) -> Row:
    """Return a row with many equals. `time`: minutes from the start, else there are few."""
    some = [None] if nulls else []
    minutes = dice.choice([*some, *range(6)]) if time is None else time
    return (
        dice.choice(["a", "b", None]),
        None if minutes is None else START + minutes * MINUTE,
        dice.choice([None, 0, 1, 2, -7, 2**40]),
        dice.choice([None, 0.0, 0.5, -2.25, 7.0]),
        dice.choice([None, Decimal("0.01"), Decimal("-99.99"), Decimal("1.00")]),
        dice.choice([None, "", "ä", "zz"]),
        dice.choice([None, True, False]),
    )


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Return rows as a batch."""
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def case(dice: random.Random, settling: bool = False) -> Case:
    """Return a query with a few functions. `settling`: ordered by t first, and looking back only."""
    partition = dice.choice(["PARTITION BY k", "PARTITION BY k, b", "PARTITION BY x", ""])
    ours, duck, ranks = [], [], []
    for at in range(dice.randint(1, 3)):
        keys = ["t ASC"] if settling else []
        names = dice.sample(["v", "x", "m", "s", "b", *([] if settling else ["t"])], dice.randint(0, 2))
        keys += [f"{name} {dice.choice(['ASC', 'DESC'])}" for name in names]
        # DuckDB's default differs
        keys = [f"{key} NULLS {dice.choice(['FIRST', 'LAST'])}" for key in keys]
        both, rank = _function(dice, partition, keys, settling)
        ours.append(f"{both[0]} AS f{at}")
        duck.append(f"{both[1]} AS f{at}")
        if rank:
            ranks.append(f"f{at}")
    every = ", ".join(SCHEMA.names)
    tail = ""
    if ranks and dice.random() < 0.6:
        tail = f" QUALIFY {dice.choice(ranks)} {dice.choice(['<= 1', '<= 2', '= 2', '< 4', '> 1'])}"
    return Case(
        f"SELECT {every}, {', '.join(ours)} FROM s{tail}", f"SELECT {every}, {', '.join(duck)} FROM s{tail}"
    )


def _function(
    dice: random.Random, partition: str, keys: list[str], settling: bool
) -> tuple[tuple[str, str], bool]:
    """Return a function as both write it, and whether it is a rank."""
    every = [f"{name} ASC NULLS FIRST" for name in SCHEMA.names]
    by, total = ", ".join(keys), ", ".join([*keys, *every])
    over = f"({partition} ORDER BY {by})" if by else f"({partition})"
    kinds = ["rank", "shift", "frame", "value"] if by else ["frame"]
    kind = dice.choice(kinds)
    if kind == "rank":
        some = ["row_number", "row_number", "rank", "dense_rank"]
        name = dice.choice(some if settling else [*some, "percent_rank", "cume_dist", "ntile"])
        argument = dice.choice("123") if name == "ntile" else ""
        theirs = f"({partition} ORDER BY {total})" if name in ("row_number", "ntile") else over
        rank = name in ("row_number", "rank", "dense_rank")
        return (f"{name}({argument}) OVER {over}", f"{name}({argument}) OVER {theirs}"), rank
    if kind == "shift":
        name, value = "lag" if settling else dice.choice(["lag", "lead"]), dice.choice(_VALUES)
        nulls = dice.choice(["", " IGNORE NULLS"])
        more = dice.choice(["", ", 2", ", 1, v"]) if value == "v" else dice.choice(["", ", 2"])
        return (
            f"{name}({value}{more}){nulls} OVER {over}",
            f"{name}({value}{more}{nulls}) OVER ({partition} ORDER BY {total})",
        ), False
    frame, rows = _frame(dice, keys, settling)
    if kind == "value":
        name = dice.choice(["first_value", "last_value", "nth_value"])
        value, nulls = dice.choice(_VALUES), dice.choice(["", " IGNORE NULLS"])
        more = f", {dice.choice('12')}" if name == "nth_value" else ""
        return _framed(
            f"{name}({value}{more}){nulls}",
            f"{name}({value}{more} ORDER BY {total}{nulls})",
            partition,
            by,
            total,
            frame,
            rows,
        ), False
    name = dice.choice(["count", "sum", "min", "max", "avg", "count(*)", "stddev_samp", "var_pop"])
    pick = {"sum": "vxm", "avg": "vx", "stddev_samp": "x", "var_pop": "x"}.get(name)
    value = dice.choice(pick or [*_VALUES])
    text = name if name == "count(*)" else f"{name}({value})"
    filter = f"{text} FILTER (WHERE b)" if dice.random() < 0.2 else text
    theirs = "CAST({} AS BIGINT)" if text == "sum(v)" else "{}"
    mine, other = _framed(filter, filter, partition, by, total, frame, rows)
    return (mine, theirs.format(other)), False


def _framed(
    ours: str, duck: str, partition: str, by: str, total: str, frame: str, rows: bool
) -> tuple[str, str]:
    order = f" ORDER BY {by}" if by else ""
    theirs = f" ORDER BY {total}" if rows else order
    return f"{ours} OVER ({partition}{order} {frame})", f"{duck} OVER ({partition}{theirs} {frame})"


def _frame(dice: random.Random, keys: list[str], settling: bool) -> tuple[str, bool]:
    """Return a frame, and whether it counts rows."""
    if not keys:
        return "", False
    if dice.random() < 0.25:
        return "", False
    back = ["UNBOUNDED PRECEDING", "UNBOUNDED PRECEDING", "{} PRECEDING", "CURRENT ROW"]
    unit = dice.choice(["ROWS", "GROUPS", "RANGE"])
    key = keys[0].split()[0]
    far = {
        "ROWS": "12",
        "GROUPS": "12",
        "RANGE": ["INTERVAL 1 MINUTE", "INTERVAL 2 MINUTES"] if key == "t" else "12",
    }[unit]
    if unit == "RANGE" and (len(keys) > 1 or key not in "tvxm"):
        return "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", False
    ends = ["CURRENT ROW"] if settling else ["CURRENT ROW", "{} FOLLOWING", "UNBOUNDED FOLLOWING"]
    low, high = dice.choice(back), dice.choice(ends)
    if low.startswith("{}") and settling and dice.random() < 0.2:
        low, high = f"{far[1]} PRECEDING", f"{far[0]} PRECEDING"
    return (
        f"{unit} BETWEEN {low.format(dice.choice(far))} AND {high.format(dice.choice(far))}",
        unit == "ROWS",
    )


def told(case: Case, rows: Sequence[Row]) -> Counter[Row]:
    """Return what DuckDB answers."""
    with duckdb.connect() as base:
        base.execute("SET TimeZone = 'UTC'")
        base.register("s", pa.Table.from_batches([batch(rows)]))
        return counted(base.sql(case.duck).to_arrow_table().to_batches())


def counted(batches: Sequence[pa.RecordBatch]) -> Counter[Row]:
    """Return the rows, each with how often it is there; those that end with a weight by that."""
    found: Counter[Row] = Counter()
    for one in batches:
        weights = one.column("$weight").to_pylist() if "$weight" in one.schema.names else [1] * one.num_rows
        columns = [
            c.to_pylist() for n, c in zip(one.schema.names, one.columns, strict=True) if n != "$weight"
        ]
        for values, weight in zip(zip(*columns, strict=True), weights, strict=True):
            found[tuple(_plain(v) for v in values)] += weight
    return Counter({row: n for row, n in found.items() if n})


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6) + 0.0 if value == value else "nan"
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return value
