"""The prompt without Spark: what is typed becomes statements, files become inputs, changes become contents."""

import io
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from jobs.cli.shell import tables
from jobs.cli.shell.catalog import Catalog, of_inputs
from jobs.cli.shell.complete import words
from jobs.cli.shell.contents import Contents
from jobs.cli.shell.loop import Prompt, piped, private, told
from jobs.cli.shell.order import order_of
from jobs.cli.shell.query import added
from jobs.cli.shell.start import prompt
from jobs.cli.shell.statements import Statement, complete, cut, read
from joinlib.errors import InputError, SpecError, SqlError
from joinlib.spec import ddl

COLUMNS = {"orders": ["id", "item"], "payments": ["id", "how"]}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT 1; SELECT 2", (["SELECT 1"], " SELECT 2")),
        ("SELECT ';' -- ;\n;", (["SELECT ';' -- ;"], "")),
        ("SELECT 'open ;", ([], "SELECT 'open ;")),
        (" ;; ", ([], " ")),
        ("SHOW TABLES\nSELECT 1;", (["SHOW TABLES", "SELECT 1"], "")),
        ("help\n\ndesc o -- what\r\n SELECT 'x\nhelp\n'", (["help", "desc o"], " SELECT 'x\nhelp\n'")),
        ("SELECT 1;\nDROP VIEW v\nSHOW VIEWS ;", (["SELECT 1", "DROP VIEW v", "SHOW VIEWS"], "")),
        ("EXPLAIN\nSELECT 1", ([], "EXPLAIN\nSELECT 1")),
        ("SHOW TABLES", ([], "SHOW TABLES")),
    ],
)
def test_a_semicolon_or_the_line_of_a_command_ends_a_statement(
    text: str, found: tuple[list[str], str]
) -> None:
    """Not one in quotes or in a comment; no statement is lost behind a command of one line."""
    assert cut(text) == found


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("SELECT 1", Statement("query", "SELECT 1")),
        ("explain SELECT 1", Statement("explain", "SELECT 1")),
        ("WATCH SELECT 1", Statement("watch", "SELECT 1")),
        ("create or replace view v as\nSELECT 1", Statement("view", "SELECT 1", "v")),
        ("CREATE VIEW `v` AS SELECT 1", Statement("view", "SELECT 1", "v")),
        ("drop view v", Statement("drop", "", "v")),
        ("SHOW TABLES", Statement("show")),
        ("desc orders", Statement("describe", "", "orders")),
        ("helpful", Statement("query", "helpful")),
        ("quit", Statement("exit")),
    ],
)
def test_what_a_statement_wants(text: str, statement: Statement) -> None:
    """By its first words, in any case."""
    assert read(text) == statement


@pytest.mark.parametrize(
    ("text", "is_complete"),
    [
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("help", True),
        ("DESCRIBE t", True),
        ("", True),
        ("a; b", False),
    ],
)
def test_enter_runs_what_is_complete(text: str, is_complete: bool) -> None:
    """Everything else goes on in the next line."""
    assert complete(text) is is_complete


@pytest.mark.parametrize(
    ("text", "begun", "first"),
    [
        ("SELECT * FROM o", "o", ["orders"]),
        ("DESCRIBE p", "p", ["payments"]),
        ("SELECT 1 FROM orders o WHERE o.i", "i", ["id", "item"]),
        ("SELECT 1 FROM orders WHERE orders.", "", ["id", "item"]),
        ("SELECT 1 FROM orders JOIN payments AS p ON p.h", "h", ["how"]),
        ("SELECT 1 FROM orders WHERE it", "it", ["item"]),
        ("SELECT cou", "cou", ["count"]),
        ("SELECT 1 FROM orders ", "", []),
        ("SELECT x.i", "i", []),
    ],
)
def test_what_could_come_next(text: str, begun: str, first: list[str]) -> None:
    """Tables behind FROM, columns behind a dot, then everything that begins so."""
    found, candidates = words(text, COLUMNS)
    assert (found, candidates[: len(first)]) == (begun, first)
    assert first or not candidates


ROW = st.tuples(st.sampled_from([1, 2, None]), st.sampled_from(["a", None]))


@given(st.lists(st.lists(st.tuples(ROW, st.sampled_from(["insert", "delete"])), max_size=6), max_size=4))
def test_contents_are_the_sum_of_changes(batches: list[list[tuple[tuple[object, ...], str]]]) -> None:
    """NULLs are equal; columns may be named like those of the shell."""
    contents, expected = Contents(), Counter[tuple[object, ...]]()
    for batch in batches:
        rows = pa.table(
            {
                "0": pa.array([row[0] for row, _ in batch], pa.int64()),
                "times": pa.array([row[1] for row, _ in batch], pa.string()),
                "_change_type": pa.array([word for _, word in batch], pa.string()),
                "_batch": pa.array([0] * len(batch), pa.int64()),
            }
        )
        contents = contents.after(rows)
        for row, word in batch:
            expected[row] += 1 if word == "insert" else -1
    assert contents.count == sum(expected.values())
    if min(expected.values(), default=0) >= 0:
        shown = contents.first(100).to_pylist()
        assert Counter(tuple(row.values()) for row in shown) == Counter(expected.elements())


def test_final_rows_are_added() -> None:
    """Results without the columns of a changelog, and lists, which cannot be grouped."""
    rows = pa.table({"x": [[1], [1]]})
    contents = Contents().after(rows).after(rows)
    assert (contents.count, contents.first(3).num_rows) == (4, 3)


def test_what_two_contents_have_alone() -> None:
    """As often as they have it more; a row that went from one of them is one that the other has."""
    came = [pa.table({"k": rows}) for rows in ([1, 1, 2, 4], [1, 2, 3])]
    one, other = (Contents().after(rows) for rows in came)
    gone = Contents().after(pa.table({"k": [5], "_change_type": ["delete"], "_batch": [0]}))
    assert [side.plain(9) for side in one.minus(other)] == [[(1,), (4,)], [(3,)]]
    assert [side.plain(9) for side in Contents().minus(other)] == [[], [(1,), (2,), (3,)]]
    assert [side.plain(9) for side in gone.minus(Contents())] == [[], [(5,)]]
    assert [side.plain(9) for side in Contents().minus(gone)] == [[(5,)], []]
    assert [side.plain(9) for side in Contents().minus(Contents())] == [[], []]


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.list_(pa.float64()), [1.0, float("nan"), None], []),
        (pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]), {"x": 1, "y": ["a"]}, None),
        (pa.map_(pa.string(), pa.int64()), [("a", 1), ("b", None)], [("a", 1)]),
    ],
)
def test_rows_with_nested_values_are_taken_back(kind: pa.DataType, one: object, other: object) -> None:
    """As all others are, in the batch in which they came and in a later one."""

    def changes(*rows: tuple[object, str]) -> pa.Table:
        values, types = zip(*rows, strict=True)
        return pa.table(
            {
                "id": [1] * len(rows),
                "x": pa.array(values, kind),
                "_change_type": types,
                "_batch": [0] * len(rows),
            }
        )

    contents = Contents().after(
        changes((one, "insert"), (one, "insert"), (other, "insert"), (other, "delete"))
    )
    assert contents.count == 2
    contents = contents.after(changes((one, "delete"), (other, "insert")))
    assert contents.count == 2
    assert contents.first(9)["x"].to_pylist()[1] == other
    assert contents.after(changes((one, "delete"), (other, "delete"))).first(9).num_rows == 0


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SELECT a, b FROM t", [(2, "x"), (None, "y"), (1, "x")]),
        ("SELECT a, b FROM t ORDER BY a", [(None, "y"), (1, "x"), (2, "x")]),
        ("SELECT a, b FROM t ORDER BY 2 DESC, A", [(None, "y"), (1, "x"), (2, "x")]),
        ("SELECT a, b FROM t ORDER BY b, a DESC LIMIT 2", [(2, "x"), (1, "x"), (None, "y")]),
        ("SELECT a, b FROM t ORDER BY a + 1, gone", [(2, "x"), (None, "y"), (1, "x")]),
        ("SELECT (", [(2, "x"), (None, "y"), (1, "x")]),
    ],
)
def test_a_result_is_shown_in_its_order(sql: str, shown: list[tuple[object, ...]]) -> None:
    """As far as ORDER BY names its columns."""
    contents = Contents().after(pa.table({"a": [2, None, 1], "b": ["x", "y", "x"]}))
    found = contents.first(9, order_of(sql)).to_pylist()
    assert [tuple(row.values()) for row in found] == shown


def test_batches_are_read_once_in_order(tmp_path: Path) -> None:
    """By their numbers; a column of a result may be named as the folders are."""
    seen = set[str]()
    for number in (10, 9):
        (tmp_path / f"batch={number}").mkdir()
        pq.write_table(pa.table({"batch": [number]}), tmp_path / f"batch={number}" / "part.parquet")
    contents = added(Contents(), tmp_path, seen)
    assert contents.first(9).to_pydict() == {"batch": [9, 10]}
    assert added(contents, tmp_path, seen) is contents


def test_files_are_inputs(tmp_path: Path) -> None:
    """With the columns that they have, as Spark would have them."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.csv").write_text("id,at,x\n1,2026-01-01 00:00:00,0.5\n")
    (tmp_path / "b.jsonl").write_text('{"id": 1, "tags": ["x"], "of": {"y": 2}}\n')
    wide = pa.table({"u": pa.array([1], pa.uint32()), "t": pa.array([1], pa.timestamp("ns"))})
    pq.write_table(wide, tmp_path / "c.parquet")

    def schema(text: str, times: list[str]) -> tuple[str, object]:
        _, found = tables.given(text, times)
        assert of_inputs({"x": found}).spec.inputs["x"].files is not None
        return found["schema"], found.get("eventTime")

    assert schema(f"a={tmp_path}/a", ["a.at"]) == ("id BIGINT, at TIMESTAMP, x DOUBLE", {"column": "at"})
    assert schema(f"b={tmp_path}/b.jsonl", ["a.at"]) == (
        "id BIGINT, tags ARRAY<STRING>, of STRUCT<y: BIGINT>",
        None,
    )
    assert schema(f"c={tmp_path}/c.parquet", []) == ("u BIGINT, t TIMESTAMP", None)
    assert tables.given(f"b={tmp_path}/b.jsonl", [])[1]["files"]["path"] == f"{tmp_path}/b.jsonl"


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("item", "--time a.item: the column is STRING in the files, and no TIMESTAMP"),
        ("items", "--time a.items: there is no such column; did you mean 'item'?"),
    ],
)
def test_an_event_time_that_is_none(column: str, said: str, tmp_path: Path) -> None:
    """It is told as it was asked for, not as a field of a spec."""
    (tmp_path / "1.csv").write_text("item,at\nx,2026-01-01 00:00:00\n")
    with pytest.raises(SpecError) as error:
        tables.given(f"a={tmp_path}", [f"a.{column}"])
    assert str(error.value) == said


def test_a_mistake_in_an_input_is_told_in_the_words_of_a_spec() -> None:
    """Not in those of a library."""
    given = {"schema": "id BIGINT", "files": {"path": "x", "format": "cvs"}}
    with pytest.raises(SpecError) as error:
        of_inputs({"o": given})
    assert str(error.value).startswith("inputs.o.files.format: 'cvs' is not one of ")
    assert "pydantic" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("orders", "write NAME=PATH, such as orders=data/orders"),
        ("a b=x", "write NAME=PATH"),
        ("a=nowhere", "there is no nowhere"),
        ("a=FOLDER", "no file ends in .parquet"),
    ],
)
def test_what_is_no_input(text: str, said: str, tmp_path: Path) -> None:
    """It is named as it was written."""
    with pytest.raises(SpecError, match=f"--input .*{said}"):
        tables.given(text.replace("FOLDER", str(tmp_path)), [])


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Is named, with the reason."""
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(InputError, match=r"x\.parquet: cannot be read as parquet"):
        tables.given(f"x={tmp_path}/x.parquet", [])


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    inputs = {
        name: {"schema": ", ".join(f"{c} BIGINT" for c in columns), "files": {"path": str(tmp_path / name)}}
        for name, columns in COLUMNS.items()
    }
    return Catalog(of_inputs(inputs), tmp_path)


def said(catalog: Catalog, text: str) -> str:
    """What the prompt prints for statements that run nothing."""
    out = io.StringIO()

    def spark() -> object:
        raise AssertionError("no query is run")

    prompt = Prompt(catalog, Console(file=out, width=100), spark, Path("log"))  # type: ignore[arg-type]
    prompt.run(piped(io.StringIO(text)))
    return out.getvalue()


def test_the_prompt_says_what_there_is(catalog: Catalog) -> None:
    """Inputs and their columns; EXIT ends it."""
    assert said(catalog, "SHOW TABLES; EXIT; SHOW TABLES").split() == [
        "orders",
        "stream",
        "payments",
        "stream",
    ]
    assert said(catalog, "DESCRIBE Payments").split() == ["id", "BIGINT", "how", "BIGINT"]
    assert "WATCH" in said(catalog, "help")


def test_a_mistake_is_told_below_its_line_and_the_prompt_goes_on(catalog: Catalog) -> None:
    """With a mark at the column."""
    found = said(catalog, "SELECT o.id\n FROM orders o JOIN payments p ON o.id = p.idd; DESCRIBE order")
    line, mark, reason, other = found.splitlines()
    assert line[mark.index("^") :].startswith("p.idd")
    assert "p has no column idd" in reason
    assert other == "there is no input or view order; did you mean 'orders'?"


def test_any_error_ends_its_statement_alone(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that no check foresaw too; the prompt remembers that one statement failed."""
    out = io.StringIO()
    prompt = Prompt(catalog, Console(file=out, width=200), lambda: 1 / 0, Path("log"))  # type: ignore[arg-type,return-value]
    monkeypatch.setattr(Catalog, "described", lambda *_: {}["gone"])
    prompt.run(["DESCRIBE orders", "SHOW TABLES"])
    assert out.getvalue().splitlines()[0] == "KeyError: 'gone'; the traceback is in log"
    assert "payments" in out.getvalue()
    assert prompt.failed


@pytest.mark.parametrize(
    ("time", "said"),
    [
        ("order.at", "--time order.at: there is no --input order; did you mean 'orders'?"),
        ("at", "--time at: write NAME.COLUMN, such as orders.ordered_at"),
        ("orders.", "--time orders.: write NAME.COLUMN"),
    ],
)
def test_an_event_time_of_no_input(time: str, said: str) -> None:
    """Is refused before anything starts: it would be left out, and nothing would ever be late."""
    with pytest.raises(SpecError) as error:
        prompt(None, ["orders=nowhere"], [time], [])
    assert str(error.value).startswith(said)


def test_nobody_else_reads_what_was_typed(tmp_path: Path) -> None:
    """Nor what was typed before."""
    file = tmp_path / "state" / "history"
    private(file)
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("SELECT 1")
    file.chmod(0o644)
    private(file)
    assert (file.stat().st_mode & 0o777, file.read_text()) == (0o600, "SELECT 1")


def test_explain_shows_the_plan(catalog: Catalog) -> None:
    """As `streamjoin plan` does."""
    assert "INNER JOIN of o, p" in said(
        catalog, "EXPLAIN SELECT o.id FROM orders o JOIN payments p ON o.id = p.id"
    )


def test_views_of_the_prompt(catalog: Catalog) -> None:
    """They need names of their own, and are gone when they are dropped."""
    assert "orders is an input; give the view another name" in said(catalog, "CREATE VIEW orders AS SELECT 1")
    assert "there is no view v of this prompt" in said(catalog, "DROP VIEW v")


def test_a_mistake_without_a_place() -> None:
    """Is told as it is; so is one in a view, whose text was not typed here."""
    assert told(SpecError("no"), "SELECT 1") == "no"
    assert told(SqlError("no", 1, 1, "v"), "SELECT 1") == "view v, line 1, column 1: no"
    both = SqlError("no a", 1, 8, more=(SqlError("no b", 2, 1),))
    assert told(both, "SELECT a,\nb") == "SELECT a,\n       ^\nno a\nb\n^\nno b"


def test_columns_of_files_are_types_of_a_spec() -> None:
    """Whatever Arrow finds, the spec can say."""
    kinds = [
        pa.uint8(),
        pa.uint64(),
        pa.large_string(),
        pa.date64(),
        pa.null(),
        pa.dictionary(pa.int8(), pa.string()),
    ]
    found = pa.schema([pa.field(f"c{n}", tables._type(kind)) for n, kind in enumerate(kinds)])
    assert ddl.parse(ddl.to_ddl(found)) == found


TOUCHING: dict[str, dict[str, object]] = {
    "gone": {"files": {"path": "/in/gone", "done": "delete"}},
    "moved": {"files": {"path": "/in/moved", "done": "archive", "archive": "/in/old"}},
    "topic": {
        "kafka": {
            "bootstrapServers": "b:1",
            "topic": "t",
            "onBadMessage": "deadLetter",
            "deadLetters": {"path": "/in/bad"},
        }
    },
    "log": {
        "postgres": {
            "host": "h",
            "database": "d",
            "user": "u",
            "table": "t",
            "changes": {"slot": "s", "publication": "p"},
        },
        "upsert": {"key": ["id"]},
    },
}


def test_a_query_leaves_the_inputs_as_they_are(tmp_path: Path) -> None:
    """No file is deleted or moved, no bad message is written, and no replication slot is made."""
    catalog = Catalog(
        of_inputs({name: {"schema": "id BIGINT", **given} for name, given in TOUCHING.items()}), tmp_path
    )
    inputs = catalog.to_run("SELECT id FROM gone").spec.inputs
    for name in ("gone", "moved"):
        files = inputs[name].files
        assert files is not None and (files.done, files.archive) == ("keep", None)
    kafka = inputs["topic"].kafka
    assert kafka is not None and (kafka.on_bad_message, kafka.dead_letters) == ("skip", None)
    with pytest.raises(
        SpecError, match=r"^inputs\.log\.postgres\.changes: the prompt makes no replication slot"
    ):
        catalog.to_run("SELECT g.id FROM gone g JOIN log l ON g.id = l.id")


def test_an_input_that_is_there_twice() -> None:
    """Is refused: one of both would be left out without a word."""
    with pytest.raises(SpecError) as error:
        prompt(None, ["a=one", "b=two", "a=three"], [], [])
    assert str(error.value) == "--input a=: it is there twice; give each input a name of its own"
