"""Late rows and failing ones as letters, by the kind of stage that leaves them out; and what cannot be kept."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from joinlib.engine.edge import Way
from joinlib.engine.letters import InputLetters, netted
from joinlib.engine.sources import SourcePlan
from joinlib.errors import SpecError
from joinlib.model.letters import LETTER
from joinlib.plan import pipeline_of
from joinlib.source import CsvFormat, FilesConfig, make, reader
from joinlib.spec import ddl
from joinlib.spec.model import StreamJoin
from tests.laws.document import written
from tests.laws.harness import SMALL
from tests.laws.product import Course, Product, own_folder

PAIRS = "SELECT a.k FROM a JOIN b ON a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 1 MINUTE"
PATHS = (
    "SELECT /*+ PATHS(a, b, c) */ a.k FROM a JOIN b ON a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 1 MINUTE"
    " JOIN c ON b.v = c.v AND c.at BETWEEN b.at AND b.at + INTERVAL 1 MINUTE"
)
SCHEMA = "k BIGINT, v BIGINT, at TIMESTAMP"
OVER = "SELECT k, row_number() OVER (PARTITION BY k ORDER BY at) AS n FROM a"
QUERIES = {
    "join": (PAIRS, {}),
    "left join": (PAIRS.replace("JOIN", "LEFT JOIN"), {}),
    "upsert": (PAIRS, {"upsert": {"key": ["k"]}}),
    "paths": (PATHS, {}),
    "self-join": (PAIRS.replace("JOIN b", "JOIN a b"), {}),
    "biclique": (PAIRS.replace("a.k = b.k", "a.k <> b.k"), {}),
    "window function": (OVER, {}),
}


@pytest.fixture
def folder() -> Iterator[Path]:
    with own_folder() as made:
        yield made


def document(
    folder: Path, sql: str | None, of_a: dict[str, Any], of_c: dict[str, Any] | None = None, **more: Any
) -> StreamJoin:
    """Inputs of a batch each: in the second one of a row is 50 s behind the watermark, and one is not."""
    names = [name for name in "abc" if f" {name} " in f" {sql or 'a b'} ".replace("\n", " ")]
    for name in names:
        (folder / name).mkdir(exist_ok=True)
        for number, times in enumerate((["12:00:00", "12:01:00"], ["12:00:10", "12:01:01"])):
            lines = (f"{at},{number},2026-01-01T{clock}Z" for at, clock in enumerate(times))
            (folder / name / f"{number}.csv").write_text("\n".join(["k,v,at", *lines, ""]))
    inputs: dict[str, Any] = {
        name: {
            "schema": SCHEMA,
            "files": {"path": name, "format": "csv", "orderBy": "name", "maxFilesPerBatch": 1},
            "eventTime": {"column": "at"},
        }
        for name in names
    }
    inputs["a"] |= of_a
    if of_c is not None:
        inputs["c"] |= of_c
    mode = {"mode": "changelog"} if "upsert" in of_a else {}
    spec = {
        "sql": sql,
        "inputs": inputs,
        "output": {"files": {"path": "out"}, **mode},
        "checkpoint": {"path": "checkpoint", "sync": False},
        "deadLetters": {"path": "dead"},
        "join": {"units": 4},
        **more,
    }
    return written({name: value for name, value in spec.items() if value is not None}, folder)


def letters(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for f in sorted(folder.glob("dead/batch=*/*.jsonl"))
        for line in f.read_text().splitlines()
    ]


@pytest.mark.parametrize("name", QUERIES)
def test_late_rows(folder: Path, name: str) -> None:
    """Each is kept once, with what it was and by how much it was late, wherever it would have gone."""
    sql, of_a = QUERIES[name]
    run = Product(
        document(folder, sql, {**of_a, "onLate": "deadLetter"}), SMALL, Course((2,), frozenset({1}))
    )
    run.composer.bounded = False
    for _ in run.batches():
        pass
    found = letters(folder)
    times = 2 if name == "self-join" else 1  # it is left out where each of the two reads it
    assert [(one["input"], one["reason"], one["batch"]) for one in found] == [("a", "late", 1)] * times, found
    assert {one["error"] for one in found} == {"late by 50s"}
    assert all(one["row"]["k"] == 0 and one["row"]["at"] == "2026-01-01T12:00:10.000000Z" for one in found)
    named = [n for n, plan in enumerate(run.plan.pipeline.inputs) if plan.source == "a"]
    assert sum(run.figures.late[n] for n in named) == times
    assert run.figures.dead == Counter({("a", "late"): times})


def test_late_rows_of_groups_cannot_be_kept(folder: Path) -> None:
    """They are sums by then; behind a join that drops them first, they can."""
    sql = "SELECT window.start, count(*) AS n FROM a GROUP BY window(at, '1 minute')"
    with pytest.raises(
        SpecError, match=r"inputs\.a\.onLate: is deadLetter, but rows of a go straight into groups"
    ):
        pipeline_of(document(folder, sql, {"onLate": "deadLetter"}))
    kept = (
        "SELECT window.start, count(*) AS n FROM ("
        + PAIRS.replace("a.k", "a.at", 1)
        + ") GROUP BY window(at, '1 minute')"
    )
    assert pipeline_of(document(folder, kept, {"onLate": "deadLetter"}))


UNITED = (
    "SELECT u.k FROM (SELECT k, at FROM a UNION ALL SELECT k, at FROM c WHERE v >= 0) u"
    " JOIN b ON u.k = b.k AND b.at BETWEEN u.at AND u.at + INTERVAL 1 MINUTE"
)
KEPT = {"onLate": "deadLetter"}


def test_late_rows_of_united_inputs(folder: Path) -> None:
    """Nobody knows any more which of the two a row is of, so it is called by both: all are kept, and told apart from
    those of other inputs.
    """
    run = Product(document(folder, UNITED, KEPT, KEPT), SMALL, Course((2,)))
    run.composer.bounded = False
    for _ in run.batches():
        pass
    found = letters(folder)
    assert [(one["input"], one["reason"]) for one in found] == [("a, c", "late")] * 2
    assert run.figures.dead == Counter({("a, c", "late"): 2})


@pytest.mark.parametrize(("keeps", "other"), ["ac", "ca"])
def test_late_rows_of_one_of_united_inputs_cannot_be_kept(folder: Path, keeps: str, other: str) -> None:
    """Those of the other would be kept as well, as rows of the first; or none at all."""
    of_a, of_c = (KEPT, {}) if keeps == "a" else ({}, KEPT)
    with pytest.raises(SpecError, match=rf"inputs\.{keeps}\.onLate: .*united with those of {other} before"):
        pipeline_of(document(folder, UNITED, of_a, of_c))


KEEPS: dict[str, Any] = {"files": {"path": "out"}, "onError": "deadLetter"}


def test_a_result_without_a_join_or_groups_keeps_none(folder: Path) -> None:
    """What fails there is a row of an input."""
    with pytest.raises(SpecError, match=r"output\.onError: is deadLetter, but nothing is joined or grouped"):
        pipeline_of(document(folder, "SELECT k, 10 / v AS s FROM a", {}, output=KEEPS))


BOTH = "a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 1 MINUTE"
CONDITIONS = {
    "LEFT JOIN": f"SELECT a.k, b.v FROM a LEFT JOIN b ON {BOTH} AND COND",
    "FULL JOIN": f"SELECT a.k, b.v FROM a FULL JOIN b ON {BOTH} AND COND",
    "SEMI JOIN": f"SELECT a.k FROM a LEFT SEMI JOIN b ON {BOTH} AND COND",
    "ANTI JOIN": f"SELECT a.k FROM a LEFT ANTI JOIN b ON {BOTH} AND COND",
    "LEFT JOIN with b": "SELECT a.k, b.v FROM a LEFT JOIN b ON a.k = b.k AND COND",
}


@pytest.mark.parametrize("kind", CONDITIONS)
def test_what_nobody_can_tell_a_match_is_refused(folder: Path, kind: str) -> None:
    """A pair that is no match would give a row that the query does not have, or take one; with TRY it is said what it is."""

    def planned(condition: str) -> None:
        job = document(folder, CONDITIONS[kind].replace("COND", condition), {}, output=KEEPS)
        if kind.endswith("b"):  # a table
            b = {"schema": SCHEMA, "role": "table", "files": {"path": "b", "format": "csv"}}
            inputs = {**job.spec.inputs, "b": type(job.spec.inputs["b"]).model_validate(b)}
            job = job.model_copy(update={"spec": job.spec.model_copy(update={"inputs": inputs})})
        pipeline_of(job)

    with pytest.raises(
        SpecError, match=rf"output\.onError: is deadLetter, but .*, a condition of an? {kind}, may fail"
    ):
        planned("b.v / a.v < 3")
    for condition in ("try_divide(b.v, a.v) < 3", "a.v < b.v", "lower(TRY_CAST(a.v AS STRING)) LIKE '1%'"):
        planned(condition)


def test_conditions_of_a_join_by_paths_are_refused(folder: Path) -> None:
    """How many letters there were would depend on the order of probes."""
    fails = PATHS + " AND c.v / a.v < 3"
    with pytest.raises(
        SpecError, match=r"may fail for a pair of rows, which a join by paths sees more than once"
    ):
        pipeline_of(document(folder, fails, {}, output=KEEPS))
    assert pipeline_of(document(folder, fails.replace("PATHS(", "STAGES("), {}, output=KEEPS))


def test_sums_over_windows_of_many_digits_are_refused(folder: Path) -> None:
    """Rows that come later would be summed on from one that is not there."""
    sql = "SELECT k, sum(CAST(v AS DECIMAL(38, 2))) OVER (PARTITION BY k ORDER BY at) AS s FROM a"
    with pytest.raises(
        SpecError, match=r"may have more than 38 digits.*CAST its argument to DECIMAL\(28, 2\)"
    ):
        pipeline_of(document(folder, sql, {}, output=KEEPS))
    assert pipeline_of(document(folder, sql.replace("38, 2", "28, 2"), {}, output=KEEPS))


LOOKED_UP = {
    "condition": ("SELECT a.k, b.v AS w FROM a JOIN b ON a.k = b.k AND b.v / a.v < 3", {"a.v", "b.v"}),
    "WHERE": (
        "SELECT a.k, b.v AS w FROM a LEFT JOIN b ON a.k = b.k WHERE coalesce(b.v, 7) / a.v < 3",
        {"a.v", "b.v"},
    ),
    "key": (
        "SELECT a.k, b.v AS w FROM a JOIN c ON a.k = c.k LEFT JOIN b ON (c.k + 7) / a.v = b.k",
        {"a.v", "c.k"},
    ),
}


@pytest.mark.parametrize("place", LOOKED_UP)
def test_rows_that_fail_where_a_table_is_looked_up(folder: Path, place: str) -> None:
    """They are left out, also of a LEFT JOIN, where the row has not failed to match."""
    sql, told = LOOKED_UP[place]
    job = document(folder, sql, {}, output=KEEPS)
    b = {"schema": SCHEMA, "role": "table", "files": {"path": "b", "format": "csv"}}
    inputs = {**job.spec.inputs, "b": type(job.spec.inputs["b"]).model_validate(b)}
    inputs["b"] = inputs["b"].model_copy(update={"files": job.spec.inputs["b"].files})
    job = job.model_copy(update={"spec": job.spec.model_copy(update={"inputs": inputs})})
    list(Product(job, SMALL, Course()).batches())
    found = letters(folder)
    assert found and all(one["row"]["a.v"] == 0 and told <= one["row"].keys() for one in found)
    assert all(one["error"].count(", in the condition ") == 1 for one in found)
    came = [pq.read_table(f, columns=["k"]).num_rows for f in (folder / "out").glob("batch=*/*.parquet")]
    assert sum(came) > 0, "those of the second batch, whose v is 1"


def test_a_sum_over_a_window_that_is_too_large_and_then_none(folder: Path) -> None:
    """Both are NULL where values are compared; only the second is a result."""
    sql = "SELECT v, sum(v) OVER (PARTITION BY k) AS s FROM a"
    more = {"output": {**KEEPS, "mode": "changelog"}}
    job = document(folder, sql, {"changes": {"op": "op"}, "schema": f"{SCHEMA}, op STRING"}, **more)
    for number, op in enumerate(("insert", "delete")):
        rows = [f"1,{2**63 - 1},,{op}", f"1,{2**63 - 2},,{op}", *["1,,,insert"][number:]]
        (folder / "a" / f"{number}.csv").write_text("\n".join(["k,v,at,op", *rows, ""]))
    inputs = {"a": job.spec.inputs["a"].model_copy(update={"event_time": None})}
    job = job.model_copy(update={"spec": job.spec.model_copy(update={"inputs": inputs})})
    list(Product(job, SMALL, Course()).batches())
    found = [(one["batch"], one["change"], one["row"]["v"]) for one in letters(folder)]
    assert Counter(found[:3]) == Counter((0, "insert", v) for v in (None, 2**63 - 1, 2**63 - 2))
    assert Counter(found[3:]) == Counter((1, "delete", v) for v in (None, 2**63 - 1, 2**63 - 2))
    assert [pq.read_table(f).num_rows for f in sorted((folder / "out").glob("batch=1/*.parquet"))] == [1]


def test_letters_of_rows_that_come_and_go_in_a_batch_are_none() -> None:
    """Of equal letters the sum is left, each as often as it came or went."""

    def made(*rows: tuple[str, str]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([{"row": row, "change": change} for row, change in rows], LETTER)

    came = made(("a", "insert"), ("b", "insert"), ("b", "insert"), ("c", "delete"))
    left = netted([came, made(("a", "delete"), ("b", "delete"), ("c", "delete"))])
    rows = [row for batch in left for row in batch.to_pylist()]
    assert [(row["row"], row["change"]) for row in rows] == [
        ("b", "insert"),
        ("c", "delete"),
        ("c", "delete"),
    ]
    assert netted([made(("a", "insert")), made(("a", "delete"))]) == []


def test_without_it_an_error_stops_the_job(folder: Path) -> None:
    """As it always was."""
    job = document(folder, f"{PAIRS} WHERE 1 / a.v > 0", {"onLate": "deadLetter"})
    with pytest.raises(SpecError, match="division by zero"):
        list(Product(job, SMALL, Course()).batches())


@pytest.mark.parametrize("others", ["deadLetter", "fail"])
def test_outputs_that_share_a_join_fail_apart(folder: Path, others: str) -> None:
    """A row that fails for one of them is left out of that one, and the letter names it; the others have it."""
    outputs = {
        "sums": ("SELECT k, sum(10 / v) AS s FROM joined GROUP BY k", "deadLetter"),
        "counts": ("SELECT k, count(*) AS n FROM joined GROUP BY k", others),
    }
    more: dict[str, Any] = {
        "output": None,
        "views": {"joined": "SELECT a.k, a.v FROM a JOIN b ON a.k = b.k AND a.v = b.v"},
        "outputs": {
            name: {"sql": sql, "files": {"path": f"out/{name}"}, "mode": "changelog", "onError": kept}
            for name, (sql, kept) in outputs.items()
        },
    }
    list(Product(document(folder, None, {}, **more), SMALL, Course()).batches())
    assert [(one["output"], one["row"]["k"]) for one in letters(folder)] == [("sums", k) for k in (0, 1)]
    found = {
        name: pq.read_table(folder / "out" / name, columns=["k"]).column("k").to_pylist() for name in outputs
    }
    assert sorted(found["sums"]) == [0, 1], "those of the second batch"
    assert set(found["counts"]) == {0, 1} and len(found["counts"]) > 2, "those of both"


def test_an_output_that_keeps_nothing_stops_the_job(folder: Path) -> None:
    """Whatever an output beside it keeps."""
    sql = "SELECT k, sum(10 / v) AS s FROM joined GROUP BY k"
    more: dict[str, Any] = {
        "output": None,
        "views": {"joined": "SELECT a.k, a.v FROM a JOIN b ON a.k = b.k AND a.v = b.v"},
        "outputs": {
            name: {"sql": sql.replace("AS s", f"AS {name}"), "noop": {}, "mode": "changelog", "onError": kept}
            for name, kept in (("kept", "deadLetter"), ("strict", "fail"))
        },
    }
    with pytest.raises(SpecError, match="division by zero"):
        list(Product(document(folder, None, {}, **more), SMALL, Course()).batches())


def test_rows_for_groups_that_fail(folder: Path) -> None:
    """They are left out of sums; a self-join leaves a row out of both."""
    sql = "SELECT k, sum(10 / v) AS s FROM a GROUP BY k"
    more = {"output": {"files": {"path": "out"}, "mode": "changelog"}}
    list(Product(document(folder, sql, {"onError": "deadLetter"}, **more), SMALL, Course()).batches())
    found = letters(folder)
    assert [(one["at"], one["file"], one["row"]["v"]) for one in found] == [
        (n, str(folder / "a/0.csv"), 0) for n in (1, 2)
    ]
    assert {one["error"] for one in found} == {
        "(10 / a.v) cannot be computed for some row: division by zero; use NULLIF on the divisor"
    }


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_places_behind_other_rows_of_a_task(folder: Path, format: str) -> None:
    """A task that reads several files, of several row groups, names each row by its place, once, with all its columns."""
    sql = "SELECT k, sum(10 / v) AS s FROM a GROUP BY k"
    more = {"output": {"files": {"path": "out"}, "mode": "changelog"}}
    files = {"files": {"path": "a", "format": format, "orderBy": "name"}}
    job = document(folder, sql, {"onError": "deadLetter", **files}, **more)
    for file in (folder / "a").iterdir():
        file.unlink()
    values = [[7, 0, 7, 7, 7, 0, 0], [7, 7], [0, 7, 7, 0], [7, 0, 7]]
    for number, own in enumerate(values):
        rows = pa.table({"k": range(len(own)), "v": own, "at": pa.nulls(len(own), pa.timestamp("us", "UTC"))})
        path = folder / "a" / f"{number}.{format}"
        if format == "csv":
            pcsv.write_csv(rows, path)
        else:
            pq.write_table(rows, path, row_group_size=2)
    run = Product(job, SMALL, Course())
    list(run.batches())
    assert run.batch == 1
    assert [(one["file"], one["at"], one["row"]["k"]) for one in letters(folder)] == [
        (str(folder / f"a/{number}.{format}"), at + 1, at)
        for number, own in enumerate(values)
        for at, value in enumerate(own)
        if value == 0
    ]


class Dividing:
    """A way on which rows fail."""

    def prepared(self, sequence: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        if 0 in rows.column("v").to_pylist():
            raise SpecError("division by zero")
        return rows


def test_rows_that_are_gone_have_no_place(tmp_path: Path) -> None:
    """Of those that can be read again all columns are kept, of the others what was read; none is kept twice."""
    for name, lines in (("0", "1,7\n2,0"), ("1", "3,0\n4,0")):
        (tmp_path / f"{name}.csv").write_text(f"k,v\n{lines}\n")
    config = FilesConfig(tmp_path, "csv", "name", "fail", CsvFormat(True, ",", '"', ""), "keep", None, None)
    source = SourcePlan("a", config, ddl.parse("k BIGINT, v BIGINT"), None, None, True)
    input = make("a", config, source.schema, tmp_path / "log")
    slices = input.slices(0, input.discover())
    found = InputLetters(source, [cast(Way, Dividing())], slices, ["v"])
    for at, rows in enumerate(reader(config, source.schema, found.refused).read_many(slices, ["v"])):
        found.prepared(at, rows)
    (tmp_path / "1.csv").unlink()
    kept = [row for block in found.blocks() for row in block.to_pylist()]
    first, *others = ((one["file"], one["at"], json.loads(one["row"])) for one in kept)
    assert first == (str(tmp_path / "0.csv"), 2, {"k": 2, "v": 0})
    assert others == [(None, None, {"v": 0})] * 2


def test_a_late_row_of_two_keys_is_one_letter(folder: Path) -> None:
    """Of a join by paths, it comes to a unit for each key."""
    job = document(folder, PATHS, {"onError": "deadLetter"})
    b = job.spec.inputs["b"].model_copy(update={"on_late": "deadLetter"})
    spec = job.spec.model_copy(update={"inputs": {**job.spec.inputs, "b": b}})
    run = Product(job.model_copy(update={"spec": spec}), SMALL, Course())
    run.composer.bounded = False
    list(run.batches())
    assert [(one["input"], one["row"]["k"]) for one in letters(folder)] == [("b", 0)]
