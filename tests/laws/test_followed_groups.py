"""Law: groups whose query is changed go on from what is stored, dropped aggregates and all.

    changelog   what comes out after the change is what the new query's answer has changed since then: with its answer over the rows
                before, it is its answer over all. Where columns were only dropped, that is what came out before, without them
    append      a group comes out once, when it is final: by the query that runs then

DuckDB answers after each batch. Aggregates go, come back and change places; some batches run twice, some in new processes.
"""

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.checkpoint.identity import identify
from joinlib.checkpoint.planned import in_units
from joinlib.spec import StreamJoin
from tests.laws.changelog import WEIGHTS, Changelog, bare
from tests.laws.document import written
from tests.laws.harness import SMALL
from tests.laws.product import Course, Product, own_folder

OP = "_change_type"
BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SCHEMA = pa.schema(
    {
        "k": pa.int32(),
        "v": pa.int64(),
        "x": pa.float64(),
        "m": pa.decimal128(9, 2),
        "s": pa.string(),
        "ts": pa.timestamp("us", "UTC"),
    }
)
COLUMNS = "k INT, v BIGINT, x DOUBLE, m DECIMAL(9,2), s STRING, ts TIMESTAMP"
CALLS = (  # of both dialects
    "count(*)", "count({}v)", "sum({}v)", "avg({}v)", "min({}v)", "max({}s)", "sum({}x)", "avg({}x)", "min({}x)", "sum({}m)", "max({}ts)",
    "count(DISTINCT {}v)", "sum(DISTINCT {}v)", "median({}v)", "var_pop({}v)", "sum({}v + {}k)", "bool_or({}v > 1)",
    "count(*) FILTER (WHERE {}v > 0)", "max({}s) FILTER (WHERE {}x < 1)", "sum(CASE WHEN {}s = 'x' THEN {}v ELSE 1 END)",
)  # fmt: skip
SOURCES = {  # what is grouped, by what, and how its columns are called
    "one": ("a", "k", ""),
    "all": ("a", "", ""),
    "join": ("a JOIN b ON a.k = b.k AND a.v <> b.v", "a.k", "b."),
    "left": ("a LEFT JOIN b ON a.k = b.k", "a.k", "b."),
    "deleted": ("a", "k", ""),
    "union": ("(SELECT * FROM a UNION ALL SELECT * FROM b) u", "k", ""),
    "groups": (
        "(SELECT k, s, count(*) AS v, max(v) AS x, sum(m) AS m, max(ts) AS ts FROM a GROUP BY k, s) g",
        "k",
        "",
    ),
}
FILES = 6
CUTS = (2, 4)  # behind which batches the query is changed
TABLE = "t"
Row = tuple[object, ...]


@dataclass(frozen=True)
class Asked:
    """A query over groups. `columns`: its aggregates, by the names of their columns."""

    source: str
    by: str
    columns: tuple[tuple[str, str], ...]
    having: str = ""

    @property
    def sql(self) -> str:
        items = [*([f"{self.by} AS k"] if self.by else []), *(f"{call} AS {n}" for n, call in self.columns)]
        group = f" GROUP BY {self.by}" if self.by else ""
        return f"SELECT {', '.join(items)} FROM {self.source}{group}{self.having}"

    @property
    def names(self) -> list[str]:
        return [*(["k"] if self.by else []), *(name for name, _ in self.columns)]


def drawn(draw: Random, name: str) -> list[Asked]:
    """A query, one that drops some of its aggregates and has the others in another order, and the first one again."""
    source, by, of = SOURCES[name]
    calls = draw.sample(CALLS, draw.randint(2, 6))
    columns = [(f"c{at}", call.replace("{}", of)) for at, call in enumerate(calls)]
    having = draw.choice(["", " HAVING count(*) > 1", f" HAVING sum({of}v) <> 3"]) if by else ""
    whole = Asked(source, by, tuple(columns), having)
    fewer = Asked(source, by, tuple(draw.sample(columns, draw.randint(1, len(columns) - 1))), having)
    return [whole, fewer, whole]


def rows(draw: Random, number: int) -> list[Row]:
    """Of a minute and the next; none is late."""
    at = BEGIN + dt.timedelta(minutes=number)
    return [
        (
            draw.choice([1, 2, 3, None]),
            draw.choice([0, 1, 2, 3, None]),
            draw.choice([0.5, -2.25, 7.0, None]),
            draw.choice([1, -2, None]),
            draw.choice(["", "x", "yy", None]),
            at + dt.timedelta(seconds=draw.randrange(120)),
        )
        for _ in range(8)
    ]


def document(
    folder: Path,
    asked: str | Mapping[str, Any],
    mode: str,
    deleted: bool,
    more: Mapping[str, Any] | None = None,
) -> StreamJoin:
    changes = {"changes": {"op": OP}} if deleted else {"eventTime": {"column": "ts", "delay": "60s"}}
    inputs = {
        name: {
            "schema": f"{COLUMNS}, {OP} STRING" if deleted else COLUMNS,
            "files": {"path": name, "maxFilesPerBatch": 1, "orderBy": "name"},
            **changes,
        }
        for name in "abc"
        if (folder / name).exists()
    }
    if (folder / TABLE).exists():
        inputs[TABLE] = {"schema": COLUMNS, "role": "table", "files": {"path": TABLE}}
    spec = {
        "inputs": inputs,
        **(
            {"sql": asked, "output": {"mode": mode, "files": {"path": "out"}}}
            if isinstance(asked, str)
            else asked
        ),
        "checkpoint": {"path": "ck", "sync": False},
        "join": {"units": 2},
        **(more or {}),
    }
    return written(spec, folder)


class World:
    """Files of which each is a batch, and what is there after each; of the table it is there from the first."""

    def __init__(self, folder: Path, draw: Random, inputs: Sequence[str], deleted: bool) -> None:
        self.there: list[dict[str, list[Row]]] = []
        for name in inputs:
            (folder / name).mkdir()
        held = {TABLE: rows(draw, 0)} if TABLE in inputs else {}
        for name, there in held.items():
            pq.write_table(table(there), folder / name / "0.parquet")
        known: dict[str, list[Row]] = {name: [] for name in inputs if name not in held}
        for number in range(FILES):
            for name, now in known.items():
                come, gone = rows(draw, number), draw.sample(now, len(now) // 4) if deleted else []
                made = table([*gone, *come])
                if deleted:
                    kinds = ["delete"] * len(gone) + ["insert"] * len(come)
                    made = made.append_column(OP, pa.array(kinds))
                pq.write_table(made, folder / name / f"{number}.parquet")
                for row in gone:
                    now.remove(row)
                now += come
            self.there.append({name: list(now) for name, now in known.items()} | held)

    def answer(self, sql: str, batch: int) -> Counter[Row]:
        """What DuckDB answers over all rows after a batch."""
        with duckdb.connect() as base:
            base.execute("SET TimeZone = 'UTC'")
            for name, there in self.there[batch].items():
                base.register(name, table(there))
            return Counter(tuple(map(value, row)) for row in base.sql(sql).fetchall())


def table(given: Sequence[Row]) -> pa.Table:
    columns = list(zip(*given, strict=True)) or [()] * len(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def value(one: object) -> object:
    found = bare(one)
    return round(float(found), 6) + 0.0 if isinstance(found, float) or hasattr(found, "quantize") else found


def runs(
    folder: Path,
    asked: Sequence[str | Mapping[str, Any]],
    mode: str,
    deleted: bool,
    seed: int,
    more: Mapping[str, Any] | None = None,
) -> Iterator[tuple[int, int]]:
    """Runs a query up to a cut, then the next one from the checkpoint; gives which it is, and each batch.

    asked: texts of queries, or fields of specs with several outputs.
    """
    course = Course((2, 1), frozenset({1, 3}), frozenset({3, 5}), seed)
    before: Product | None = None
    for at, sql in enumerate(asked):
        run = Product(document(folder, sql, mode, deleted, more), SMALL, course)
        (folder / "ck").mkdir(exist_ok=True)
        identify(folder / "ck", "law", run.plan.pipeline)
        if before is not None:
            run.offset, run.batch = before.offset, before.batch
        for batch in run.batches():
            yield at, batch
            if batch in CUTS[at : at + 1]:
                break
        before = run


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SOURCES)
def test_changes_of_groups(name: str, seed: int) -> None:
    draw = Random(f"{name} {seed}")
    goes_on(name, draw, drawn(draw, name), seed)


OTHERS = {  # what is stored, and what is asked for then: other aggregates that are computed from the same
    "a mean": ("sum({}v), count({}v)", "avg({}v)"),
    "a mean beside": ("min({}v), count({}v), sum({}v)", "avg({}v) + 1, min({}v), sum({}v)"),
    "of a mean": ("avg({}v)", "sum({}v), count({}v), count(*)"),
    "of decimals": ("sum({}m), count({}m)", "avg({}m), count(*)"),
    "of a mean of decimals": ("max({}s), avg({}m)", "count({}m), sum({}m)"),
    "of doubles": ("sum({}x), count({}x)", "avg({}x)"),
    "of some": (
        "sum({}v) FILTER (WHERE {}x < 1), count({}v) FILTER (WHERE {}x < 1)",
        "avg({}v) FILTER (WHERE {}x < 1), count(*)",
    ),
    "of different ones": ("avg(DISTINCT {}v), avg({}v)", "sum(DISTINCT {}v), count(DISTINCT {}v), sum({}v)"),
    "percentiles": ("median({}v), var_pop({}v)", "stddev_pop({}v), count(*), median({}v)"),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("others", OTHERS)
def test_others_are_computed_from_what_is_kept(name: str, others: str) -> None:
    """They go on, and come back."""
    source, by, of = SOURCES[name]
    first, then = (
        Asked(
            source,
            by,
            tuple((f"c{at}", c.replace("{}", of)) for at, c in enumerate(re.split(", (?=[a-z])", calls))),
        )
        for calls in OTHERS[others]
    )
    goes_on(name, Random(f"{name} {others}"), [first, then, first], 0)


@pytest.mark.parametrize("column", ["v", "m"])
def test_sums_over_rows_that_may_be_deleted_know_their_count(column: str) -> None:
    """So that they are NULL when the last value has gone."""
    source, by, _ = SOURCES["deleted"]
    first, then = (
        Asked(source, by, tuple((f"c{at}", f"{call}({column})") for at, call in enumerate(calls)))
        for calls in (["sum"], ["avg", "count"])
    )
    goes_on("deleted", Random(column), [first, then, first], 0)


def goes_on(name: str, draw: Random, asked: Sequence[Asked], seed: int) -> None:
    """Queries over one source follow each other, and each gives what it must."""
    deleted = name == "deleted"
    with own_folder() as folder:
        world = World(folder, draw, "ab" if name in ("join", "left", "union") else "a", deleted)
        told, last = Counter[Row](), 0
        for at, batch in runs(folder, [one.sql for one in asked], "changelog", deleted, seed):
            if at != last:
                since = world.answer(asked[at].sql, CUTS[last])
                if set(asked[at].columns) < set(asked[last].columns):
                    assert dropped(told, asked[last], asked[at]) == since
                told, last = since, at
            answers(told, folder, batch, world, asked[at].sql)
        assert last == len(CUTS)


def dropped(answer: Counter[Row], before: Asked, after: Asked) -> Counter[Row]:
    """An answer without the columns that the query after has not."""
    places = [before.names.index(name) for name in after.names]
    found: Counter[Row] = Counter()
    for row, count in answer.items():
        found[tuple(row[at] for at in places)] += count
    return found


MINUTE = "date_trunc('minute', ts)"
WINDOWS = {  # for the product and for DuckDB, each with where a window begins; and how many minutes it has
    "date_trunc": ("a", MINUTE, "a", MINUTE, 1),
    "TUMBLE": ("TUMBLE(a, ts, INTERVAL '1' MINUTE)", "window_start", "a", MINUTE, 1),
    "HOP": (
        "HOP(a, ts, INTERVAL '1' MINUTE, INTERVAL '2' MINUTES)",
        "window_start",
        f"(SELECT *, {MINUTE} - i * INTERVAL 1 MINUTE AS begin FROM a, (VALUES (0), (1)) AS slides(i))",
        "begin",
        2,
    ),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_come_out_by_the_query_that_runs_when_they_are_final(name: str, seed: int) -> None:
    """Here HAVING and the select list over the same aggregates change too."""
    draw = Random(f"{name} {seed}")
    calls = [call.replace("{}", "") for call in draw.sample(CALLS, draw.randint(2, 6))]
    some = draw.sample(calls, draw.randint(1, len(calls) - 1))
    lists = [calls, [*some, f"coalesce(CAST({some[0]} AS STRING), 'none')"], calls[::-1]]
    having = draw.sample(["", f" HAVING {calls[0]} IS NOT NULL", f" HAVING {some[0]} IS NULL OR k = 1"], 3)
    having = [
        text if calls[0] in one or "k = 1" in text else "" for one, text in zip(lists, having, strict=True)
    ]
    come_out(name, draw, lists, having, seed)


COMPUTED = {
    "of sums": (["sum(v)", "count(v)", "sum(x)"], ["avg(v)", "sum(x)"], " HAVING avg(v) > 1"),
    "of means": (
        ["avg(x)", "avg(m)"],
        ["sum(x)", "count(x)", "count(m)"],
        " HAVING sum(m) <> 1 AND count(*) > 1",
    ),
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("computed", COMPUTED)
def test_windows_come_out_with_what_is_computed_from_others(name: str, computed: str) -> None:
    first, then, having = COMPUTED[computed]
    come_out(name, Random(f"{name} {computed}"), [first, then, first], ["", having, ""], 1)


def come_out(
    name: str, draw: Random, lists: Sequence[Sequence[str]], having: Sequence[str], seed: int
) -> None:
    """Queries over the same windows follow each other; each window comes out by that which runs when it is final."""
    source, start, theirs, begin, size = WINDOWS[name]

    def query(at: int, source: str, start: str) -> str:
        items = ", ".join(f"{call} AS c{n}" for n, call in enumerate(lists[at]))
        return f"SELECT {start} AS t, k, {items} FROM {source} GROUP BY k, {start}{having[at]}"

    with own_folder() as folder:
        world = World(folder, draw, "a", deleted=False)
        final = -size  # windows that begin before this minute are out
        expected: Counter[Row] = Counter()
        for at, batch in runs(folder, [query(n, source, start) for n in range(3)], "append", False, seed):
            out = Counter(row for row, _ in sent(folder, batch))
            duck = query(at, theirs, begin).replace("STRING", "VARCHAR")
            now = minutes(world, batch) - size + 1
            whole = world.answer(duck, FILES - 1)
            new = Counter({row: n for row, n in whole.items() if final <= minute(row[0]) < now})
            assert out == new, (duck, batch)
            final, expected = now, expected + new
        assert len({row[:2] for row in expected}) == sum(expected.values()) > 0


def answers(told: Counter[Row], folder: Path, batch: int, world: World, sql: str) -> None:
    """Adds what came out of a batch to what came before: together it is DuckDB's answer."""
    for row, weight in sent(folder, batch):
        told[row] += weight
    assert all(count >= 0 for count in told.values()), "rows are taken back that were not there"
    assert +told == world.answer(sql, min(batch, FILES - 1)), (sql, batch)


def sent(folder: Path, batch: int) -> Iterator[tuple[Row, int]]:
    """What came out of a batch: rows and their weights."""
    for file in (folder / "out" / f"batch={batch}").glob("*.parquet"):
        for row in pq.read_table(file, partitioning=None).to_pylist():
            weight = WEIGHTS[row.get("_change_type", "insert")]
            yield tuple(value(one) for name, one in row.items() if not name.startswith("_")), weight


def minutes(world: World, batch: int) -> int:
    """How many minutes from the beginning are final after a batch: all, once the inputs are closed."""
    if batch >= FILES:
        return 10**6
    latest = max(row[5] for row in world.there[batch]["a"])
    return minute(latest - dt.timedelta(seconds=60))


def minute(at: object) -> int:
    assert isinstance(at, dt.datetime)
    return int((at.replace(tzinfo=None) - BEGIN.replace(tzinfo=None)).total_seconds() // 60)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM a GROUP BY k",
        "SELECT k, s, count(*) AS n FROM a GROUP BY GROUPING SETS ((k), (s), (k, s))",
        "SELECT k, s, count(*) AS n FROM a GROUP BY k, s",
    ],
)
def test_nothing_comes_and_goes_in_one_batch(sql: str) -> None:
    """Where the result does not tell groups apart, a row that one of them takes back may be what another adds."""
    with own_folder() as folder:
        world = World(folder, Random(5), "a", deleted=False)
        made = in_units(document(folder, sql, "changelog", False), 1)
        seen = Changelog(folder / "out")
        for batch in Product(made, SMALL, Course()).batches():
            seen.batch(batch, units_apart=True)
            answer = world.answer(sql, min(batch, FILES - 1))
            assert Counter(tuple(map(value, row)) for row in seen.answer.elements()) == answer
