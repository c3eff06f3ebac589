"""How many messages in Avro does one core make into columns, beside fastavro? No broker: the messages are in memory.

    PYTHONPATH=. .venv/bin/python bench/kafka/avro.py [--messages 400000] [--repetitions 5]

`columns` reads messages of mean 37 bytes, framed as a registry's, as the reader of topics has them: one
behind the other, 8 192 at a time, seven columns or two of them. `fastavro` makes dicts of them, and no columns.
"""

import argparse
import io
import json
import random
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import fastavro
import pyarrow as pa

from joinlib.source.avro.columns import AvroRows
from joinlib.source.avro.program import compiled
from joinlib.source.avro.schema import parsed
from joinlib.source.avro.types import columns_of
from joinlib.source.payloads import Payloads

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "quantity", "type": "int"},
        {"name": "price", "type": "double"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "paid", "type": "boolean"},
    ],
}
HEAD = b"\0\0\0\0\1"
Values = Sequence[Any]
AT_ONCE = 8_192


def messages(count: int) -> list[bytes]:
    draw, schema, found = random.Random(1), fastavro.parse_schema(SCHEMA), []
    for i in range(count):
        row = {
            "id": i,
            "customer": f"c{draw.randrange(10_000)}",
            "quantity": draw.randrange(100),
            "price": draw.random() * 100,
            "at": 1_700_000_000_000_000 + i,
            "note": None if i % 3 else f"note {i}",
            "paid": i % 2 == 0,
        }
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, row)
        found.append(HEAD + out.getvalue())
    return found


def columns(*names: str) -> Callable[[Values], None]:
    schema = parsed([json.dumps(SCHEMA)])
    want = pa.schema([f for f in columns_of(schema) if not names or f.name in names])
    rows = AvroRows(compiled(schema, want, schema), want.names)

    def run(values: Values) -> None:
        for start in range(0, len(values), AT_ONCE):
            rows.table(values[start : start + AT_ONCE], len(HEAD))

    return run


def dicts(values: Values) -> None:
    schema = fastavro.parse_schema(SCHEMA)
    for value in values:
        body = io.BytesIO(value)
        body.seek(len(HEAD))
        fastavro.schemaless_reader(body, schema, None)


def rate(run: Callable[[Values], None], values: Values) -> float:
    begun = time.perf_counter()
    run(values)
    return len(values) / (time.perf_counter() - begun)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--messages", type=int, default=400_000)
    arguments.add_argument("--repetitions", type=int, default=5)
    given = arguments.parse_args()
    values = messages(given.messages)
    ours = Payloads.of(values)
    ways: dict[str, tuple[Callable[[Values], None], Values]] = {
        "columns, all seven": (columns(), ours),
        "columns, two": (columns("id", "customer"), ours),
        "fastavro": (dicts, values),
    }
    for run, some in ways.values():
        run(some[:AT_ONCE])  # compiled, warm
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(given.repetitions):  # in turns
        for name, (run, some) in ways.items():
            rates[name].append(rate(run, some))
    print(f"{given.messages} messages, {sum(map(len, values)) / len(values):.0f} bytes each")
    for name, found in rates.items():
        print(
            f"{name:20} {median(found) / 1e6:.2f} M messages/s ({min(found) / 1e6:.2f} to {max(found) / 1e6:.2f})"
        )


if __name__ == "__main__":
    main()
