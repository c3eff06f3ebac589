"""Inputs that the tests of this folder speak of."""

import pyarrow as pa

from joinlib.sql import Table

TIMESTAMP = pa.timestamp("us", "UTC")
ORDERS = pa.schema(
    [
        ("id", pa.int64()),
        ("customer", pa.string()),
        ("amount", pa.decimal128(10, 2)),
        ("at", TIMESTAMP),
        ("place", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
        ("tags", pa.list_(pa.string())),
        ("day", pa.date32()),
    ]
)
SHIPS = pa.schema([("id", pa.int64()), ("order_id", pa.int32()), ("carrier", pa.string()), ("at", TIMESTAMP)])
PAYS = pa.schema([("order_id", pa.int64()), ("sum", pa.float64()), ("at", TIMESTAMP), ("ref", pa.string())])
SCHEMAS = {"orders": ORDERS, "ships": SHIPS, "pays": PAYS}
TABLES = {name: Table(name, schema, "at") for name, schema in SCHEMAS.items()} | {
    "cities": Table("cities", pa.schema([("city", pa.string())]), None, stream=False)
}
