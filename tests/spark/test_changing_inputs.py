"""Inputs that change, through Spark: from the words in files to the changes that come out."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pyarrow.csv as pc
import pytest

from joinlib.errors import InputError
from tests.spark.trial import Trial, plain

pytestmark = pytest.mark.spark

BASE = datetime(2026, 1, 1)  # noqa: DTZ001 - as in most files, no zone
PEOPLE = "id BIGINT, name STRING, at TIMESTAMP, op STRING"
ORDERS = "id BIGINT, who BIGINT, at TIMESTAMP, op STRING"
SQL = (
    "SELECT o.id AS id, p.name AS name FROM orders o JOIN people p ON o.who = p.id"
    " AND p.at BETWEEN o.at - INTERVAL 1 HOUR AND o.at + INTERVAL 1 HOUR"
)


def minute(n: int) -> datetime:
    return BASE + timedelta(minutes=n)


def changing(trial: Trial, format: str = "jsonl") -> None:
    """Orders that an operation deletes, and people whose last row counts; one file a batch."""
    timed = {"eventTime": {"column": "at", "delay": "2h"}, "maxFilesPerBatch": 1, "orderBy": "name"}
    trial.input("orders", ORDERS, format, **timed, changes={"op": "op"})
    trial.input("people", PEOPLE, format, **timed, upsert={"key": ["id"]}, changes={"op": "op"})


def total(trial: Trial) -> Counter[Any]:
    """What the changes that came out add up to."""
    found: Counter[Any] = Counter()
    for file in sorted(trial.out.glob("batch=*/*.csv")):
        for row in pc.read_csv(file).to_pylist():
            weight = 1 if row["_change_type"] in ("insert", "update_postimage") else -1
            found[row["id"], row["name"]] += weight
    assert all(n >= 0 for n in found.values())
    return +found


def test_a_deletion_without_anything_but_its_key(trial: Trial) -> None:
    """Not even an event time: its row goes all the same, also in a later batch, and may come again."""
    changing(trial)
    trial.write("orders", "0", [(n, n % 3, minute(n), "insert") for n in range(9)])
    trial.write("orders", "1", [(n, n % 3, minute(n), "delete") for n in (0, 4)])
    trial.write("people", "0", [(k, f"n{k}", minute(k), "I") for k in range(3)])
    trial.write(
        "people", "1", [(1, None, None, "D"), (2, "n2", minute(2), "U-"), (2, "new", minute(5), "U+")]
    )
    run: dict[str, Any] = {"output": {"mode": "changelog", "files": {"path": "out", "format": "csv"}}}
    trial.run(SQL, **run)
    names = {0: "n0", 2: "new"}
    assert total(trial) == Counter((n, names[n % 3]) for n in range(9) if n % 3 != 1 and n not in (0, 4))


def test_what_is_no_operation_stops_the_job(trial: Trial) -> None:
    """With the input, the file and the words."""
    changing(trial)
    trial.write("orders", "0", [(1, 1, minute(0), "insert"), (1, 1, minute(0), "remove")])
    trial.write("people", "0", [(1, "n", minute(0), "I")])
    with pytest.raises(InputError) as error:
        trial.run(SQL, output={"mode": "changelog", "noop": {}})
    said = plain(error.value)
    assert (
        "orders/0.jsonl, rows from byte 0: column 'op' holds 'remove', which is no operation (row 1" in said
    )
    assert "write one of insert, update_postimage, I, " in said
