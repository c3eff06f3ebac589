"""How many messages in Protobuf does one core make into columns, beside the official runtime? No broker: they are in memory.

    PYTHONPATH=. .venv/bin/python bench/kafka/protobuf.py [--messages 400000] [--repetitions 5]

The rows are those of avro.py, framed as a registry's, 8 192 at a time, seven columns or two of them. `runtime` makes
message objects, and no columns; `runtime, fields` also reads each field of them into a tuple.
"""

import argparse
import io
from collections.abc import Callable
from statistics import median
from typing import Any

import fastavro
import pyarrow as pa
from google.protobuf.message_factory import GetMessageClass

from bench.kafka import avro
from joinlib.source.payloads import Payloads
from joinlib.source.protobuf.columns import ProtobufRows
from joinlib.source.protobuf.program import tables
from joinlib.source.protobuf.protoc import ProtoFile, compiled_files
from joinlib.source.protobuf.schema import ProtoSchema
from joinlib.source.protobuf.types import columns_of

SCHEMA = """
syntax = "proto3";
message Order {
  int64 id = 1;
  string customer = 2;
  int32 quantity = 3;
  double price = 4;
  int64 at = 5;
  optional string note = 6;
  bool paid = 7;
}
"""
HEAD = b"\0\0\0\0\1\0"
AT_ONCE = avro.AT_ONCE
ORDER = ProtoSchema(compiled_files([ProtoFile("", SCHEMA)])).named(None)
MESSAGE = GetMessageClass(ORDER)
NAMES = [f.name for f in ORDER.fields]


def messages(count: int) -> list[bytes]:
    """The rows of Avro's bench."""
    schema, found = fastavro.parse_schema(avro.SCHEMA), []
    for value in avro.messages(count):
        row: Any = fastavro.schemaless_reader(io.BytesIO(value[len(avro.HEAD) :]), schema, None)
        row["at"] = round(row["at"].timestamp() * 1e6)
        found.append(HEAD + MESSAGE(**row).SerializeToString())
    return found


def columns(*names: str) -> Callable[[avro.Values], None]:
    want = pa.schema([f for f in columns_of(ORDER) if not names or f.name in names])
    rows = ProtobufRows(tables(ORDER, want, ORDER), want.names)

    def run(values: avro.Values) -> None:
        for start in range(0, len(values), AT_ONCE):
            rows.table(values[start : start + AT_ONCE], len(HEAD))

    return run


def objects(values: avro.Values) -> None:
    for value in values:
        MESSAGE.FromString(value[len(HEAD) :])


def fields(values: avro.Values) -> None:
    for value in values:
        found = MESSAGE.FromString(value[len(HEAD) :])
        _ = (found.id, found.customer, found.quantity, found.price, found.at, found.note, found.paid)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--messages", type=int, default=400_000)
    arguments.add_argument("--repetitions", type=int, default=5)
    given = arguments.parse_args()
    proto = messages(given.messages)
    ours, other = Payloads.of(proto), Payloads.of(avro.messages(given.messages))
    ways: dict[str, tuple[Callable[[avro.Values], None], avro.Values]] = {
        "columns, all seven": (columns(), ours),
        "columns, two": (columns("id", "customer"), ours),
        "runtime": (objects, proto),
        "runtime, fields": (fields, proto),
        "Avro, all seven": (avro.columns(), other),
        "Avro, two": (avro.columns("id", "customer"), other),
    }
    for run, values in ways.values():
        run(values[:AT_ONCE])  # compiled, warm
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(given.repetitions):  # in turns
        for name, (run, values) in ways.items():
            rates[name].append(avro.rate(run, values))
    print(f"{given.messages} messages, {sum(map(len, proto)) / len(proto):.0f} bytes each")
    for name, found in rates.items():
        low, high = min(found) / 1e6, max(found) / 1e6
        print(f"{name:20} {median(found) / 1e6:.2f} M messages/s ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
