"""Joins on any predicate through Spark: DuckDB's answer over the same files, in many batches."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from joinlib.model.tuning import Tuning
from joinlib.route.biclique import decode
from tests.spark.trial import Trial

pytestmark = pytest.mark.spark

START = datetime(2026, 1, 1)  # noqa: DTZ001 - as in most files, no zone
SMALL = Tuning(seal_rows=64, merge_segments=2, max_segments=12, max_runs=2, frame_rows=50, probe_pairs=64)
Made = list[tuple[Any, ...]]


def lines(rows: int, seed: int) -> Made:
    """LINEITEM, as the Band query reads it: a few lines of each order."""
    draw = random.Random(seed)
    ship, instruct = ["TRUCK", "MAIL", "AIR"], ["NONE", "COLLECT COD", "TAKE BACK RETURN"]
    return [
        (
            draw.randrange(rows // 3),
            draw.randrange(10),
            draw.choice(ship),
            draw.choice(instruct),
            draw.randrange(1, 51),
        )
        for _ in range(rows)
    ]


def suppliers(rows: int, seed: int) -> Made:
    """The other side of the cores of Q5 and Q7, joined with the nation."""
    draw = random.Random(seed)
    nations = ["FRANCE", "GERMANY", "CHINA"]
    return [(draw.randrange(10), draw.randrange(rows), draw.choice(nations)) for _ in range(rows)]


def power(rows: int, seed: int) -> Made:
    """Power and cooling of a data centre (Q1)."""
    draw = random.Random(seed)
    return [(at, round(draw.uniform(0, 100), 1), round(draw.uniform(0, 50), 1)) for at in range(rows)]


def taxis(rows: int, seed: int) -> Made:
    """Trips that begin at few places, so that there are ties (Q2, Q3)."""
    draw = random.Random(seed)
    return [
        (
            at,
            round(-74 + draw.randrange(40) / 100, 2),
            round(40.7 + draw.randrange(40) / 100, 2),
            round(draw.uniform(1, 30), 1),
            round(draw.uniform(3, 90), 1),
            START + timedelta(minutes=at, seconds=draw.randrange(-300, 300)),
        )
        for at in range(rows)
    ]


LINE = "orderkey BIGINT, suppkey BIGINT, shipmode STRING, shipinstruct STRING, quantity BIGINT"
TAXI = "trip BIGINT, lon DOUBLE, lat DOUBLE, distance DOUBLE, fare DOUBLE, at TIMESTAMP"
CASES: dict[str, tuple[dict[str, tuple[str, Callable[[int, int], Made]]], str, dict[str, Any]]] = {
    "TPC-H Band": (
        {"lineitem": (LINE, lines)},
        ("SELECT l.orderkey AS a, r.orderkey AS b, l.quantity AS q FROM lineitem l JOIN lineitem r"
        " ON ABS(l.orderkey - r.orderkey) <= 1 AND l.shipmode = 'TRUCK' AND r.shipinstruct = 'NONE' AND l.quantity > 24"),
        {},
    ),
    "the core of TPC-H Q5, hot keys over several units": (
        {"lineitem": (LINE, lines), "supplier": ("suppkey BIGINT, id BIGINT, nation STRING", suppliers)},
        ("SELECT l.orderkey AS o, s.id AS s, s.nation AS n FROM lineitem l JOIN supplier s ON l.suppkey = s.suppkey"
        " WHERE s.nation <> 'CHINA' AND l.quantity > 30"),
        {"strategy": "biclique", "subgroups": 2},
    ),
    "the core of TPC-H Q7, an expression over both": (
        {"lineitem": (LINE, lines), "supplier": ("suppkey BIGINT, id BIGINT, nation STRING", suppliers)},
        ("SELECT l.orderkey AS o, s.id AS s FROM lineitem l JOIN supplier s ON (l.suppkey + s.suppkey) % 10 = 3"
        " AND (s.nation = 'FRANCE' OR l.shipmode = 'AIR' AND s.nation = 'GERMANY')"),
        {},
    ),
    "SPO Q1, two streams": (
        {"r": ("id BIGINT, power DOUBLE, cool DOUBLE", power), "s": ("id BIGINT, power DOUBLE, cool DOUBLE", power)},
        "SELECT r.id AS r, s.id AS s FROM r JOIN s ON r.power < s.power AND r.cool > s.cool",
        {},
    ),
    "SPO Q2, a band in two dimensions and in time": (
        {"taxi": (TAXI, taxis)},
        ("SELECT a.trip AS a, b.trip AS b FROM taxi a JOIN taxi b ON ABS(a.lon - b.lon) < 0.03 AND ABS(a.lat - b.lat) < 0.03"
        " AND b.at BETWEEN a.at - INTERVAL 30 MINUTES AND a.at + INTERVAL 30 MINUTES"),
        {},
    ),
    "SPO Q3, one stream": (
        {"taxi": (TAXI, taxis)},
        "SELECT a.trip AS a, b.trip AS b FROM taxi a JOIN taxi b ON a.distance > b.distance AND a.fare < b.fare",
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_duckdb_agrees(trial: Trial, case: str) -> None:
    """The same SQL over the same files gives the same multiset of rows."""
    inputs, sql, join = CASES[case]
    for seed, (name, (schema, make)) in enumerate(inputs.items()):
        timed = {"eventTime": {"column": "at", "delay": "11m"}} if "at TIMESTAMP" in schema else {}
        trial.input(name, schema, orderBy="name", maxFilesPerBatch=1, **timed)
        trial.fill(name, make(150, seed), 3)
    ran = trial.run(sql, tuning=SMALL, join={"units": 4, **join})
    expected = trial.expected(sql)

    assert trial.output(sql) == expected
    assert expected.total() > 50
    assert ran.rows_out == expected.total()
    assert sum(ran.late) == 0


def test_windows_of_rows(trial: Trial) -> None:
    """Rows are numbered over files and batches, in the order in which they are read; trips have just these numbers."""
    trial.input("taxi", TAXI, orderBy="name", maxFilesPerBatch=1)
    trial.fill("taxi", taxis(150, 0), 5)
    sql = "SELECT a.trip AS a, b.trip AS b FROM taxi a JOIN taxi b ON a.distance > b.distance AND a.fare < b.fare"
    ran = trial.run(sql, tuning=SMALL, join={"units": 4, "window": {"rows": 20}})

    assert trial.output(sql) == trial.expected(sql + " AND ABS(a.trip - b.trip) < 20")
    assert sum(r.state_rows for r in ran.reports[-1].receipts) < 2 * 150


def test_hot_keys_are_split_while_it_runs(trial: Trial) -> None:
    """Half of the rows have one key: after the first batch they lie over several units, and still find all partners."""
    draw = random.Random(5)
    for name in ("a", "b"):
        trial.input(name, "k BIGINT, v BIGINT", orderBy="name", maxFilesPerBatch=1)
        rows = [
            (0 if name == "a" and draw.random() < 0.5 else draw.randrange(1_000), v) for v in range(6_000)
        ]
        trial.fill(name, rows, 3)
    sql = "SELECT a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k"
    ran = trial.run(sql, join={"units": 4, "strategy": "biclique"})
    held = {r.unit: r.state_rows for r in ran.reports[-1].receipts}
    offsets = sorted(
        (trial.folder / "checkpoint" / "spark" / "offsets").glob("[0-9]*"), key=lambda p: int(p.name)
    )
    said = _envelope(offsets[-1].read_text())
    rules = decode(said["route"])

    assert trial.output(sql) == trial.expected(sql)
    assert len(rules.probe[0]) == 1 and not rules.probe[1]
    assert said["hot"] == {"a": pytest.approx(0.5, abs=0.05), "b": 0.0}
    assert max(held.values()) < 2 * min(held.values())


def _envelope(text: str) -> Any:
    """The source's offset in a file of Spark's log: the last line."""
    import json

    found = json.loads(text.strip().splitlines()[-1])
    return json.loads(found) if isinstance(found, str) else found
