"""Writes the tables of TPC-H or TPC-DS as parquet files: `python generate.py FOLDER h|ds SCALE`.

Run by the version of DuckDB that has the generators within (`data.py`): later ones load them over the network.
"""

import sys
from pathlib import Path

import duckdb

FUNCTIONS = {"h": "dbgen", "ds": "dsdgen"}


def main(folder: str, benchmark: str, scale: str, *tables: str) -> None:
    """`tables`: only these."""
    db = duckdb.connect()
    db.execute(f"CALL {FUNCTIONS[benchmark]}(sf={float(scale)})")
    for (name,) in db.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        if not tables or name in tables:
            db.table(name).write_parquet(str(Path(folder) / f"{name}.parquet"))


if __name__ == "__main__":
    main(*sys.argv[1:])
