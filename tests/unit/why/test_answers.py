"""What `why` and `whynot` say of rows that are there, of what is not kept, and of questions that cannot be answered."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.cli.summary import near
from jobs.cli.why import why, whynot
from joinlib.errors import SpecError
from joinlib.spec import telling_of
from joinlib.spec.model import StreamJoin
from joinlib.why import scan
from tests.laws.product import own_folder
from tests.unit.why import lived as lives
from tests.unit.why.lived import document, lived
from tests.unit.why.test_whynot import CAUSES, INNER, LATER, LEFT, ONE, SOON, THREE, also, order, payment

BOTH = also(ONE, payments=(0, payment(4711)))


@pytest.fixture
def folder() -> Iterator[Path]:
    with own_folder() as own:
        yield own


def test_a_row_of_the_result(folder: Path) -> None:
    """It is said to be there, with what it was made of; `why` gives the same."""
    job = document(folder, THREE, {**BOTH, "customers": [["7,1,Ada"]]})
    lived(job, folder)
    answer = whynot(job, "o.order_id = 4711")
    assert "is in the result" in answer
    assert "payments p: has no column o.order_id, so it is only asked for partners" in answer
    lines = why(job, "order_id = 4711").splitlines()
    assert lines[0] == "order_id = 4711, paid = 50, name = Ada"
    places = {("orders", 2), ("payments", 2), ("customers", 1)}
    assert {line.strip() for line in lines[1:]} == {
        f"from {name} {name[0]}: {near(folder / name)}/0.csv, row {row}, batch 0" for name, row in places
    }


def test_a_column_of_the_output(folder: Path) -> None:
    """A name that the output gives to a column of an input is that column."""
    job = document(folder, INNER.replace("o.order_id,", "o.order_id AS number,"), BOTH)
    lived(job, folder)
    assert why(job, "number = 4711").startswith("number = 4711, paid = 50\n  from orders o: ")
    assert why(job, "number = 4711 AND paid = 51").startswith("no row of the result meets the condition")
    assert "payments p: 2 of 2 rows meet `p.paid = 50`" in whynot(job, "number = 4711 AND p.paid = 50")


TWICE = "SELECT o.order_id, o.amount * 2 AS twice, p.paid FROM orders o JOIN payments p ON o.order_id = p.order_id"
DEEP = (
    "SELECT s.order_id, s.less + 70 AS twice, p.paid FROM (SELECT order_id, amount * 2 - 70 AS less FROM orders) s "
    "JOIN payments p ON s.order_id = p.order_id"
)


@pytest.mark.parametrize("sql", [TWICE, DEEP, f"SELECT t.* FROM ({TWICE}) t WHERE t.twice > 0"])
def test_a_value_that_the_query_computes_of_one_input(folder: Path, sql: str) -> None:
    """It is computed for all rows of the input, as the query does, through views."""
    orders = [[order(1, amount=25), order(2, amount=35), order(3, amount=35)]]
    job = document(folder, sql, {"orders": orders, "payments": [[payment(1), payment(2)]]})
    lived(job, folder)
    answer = whynot(job, "twice = 70")
    assert re.findall(r"row (\d), batch 0\n    (.*?)[,( ]", answer) == [("2", "is"), ("3", "no")]
    assert "2 of 3 rows meet the condition" in answer
    assert why(job, "twice = 70").startswith("order_id = 2, twice = 70, paid = 50\n  from orders")
    with pytest.raises(SpecError, match="no input has its columns"):
        whynot(job, "thrice = 70")


def test_a_value_that_fails_for_rows_which_the_query_leaves_out(folder: Path) -> None:
    """They do not meet the condition; one that fails itself is an error."""
    sql = "SELECT o.order_id, 100 DIV o.amount AS part FROM orders o WHERE o.amount <> 0"
    job = document(folder, sql, {"orders": [[order(1, amount=0), order(2, amount=50), order(3, amount=0)]]})
    lived(job, folder)
    assert "1 of 3 rows meets" in (answer := whynot(job, "part = 2"))
    assert "row 2, batch 0\n    is in the result" in answer
    assert "none of 3 rows meet the condition" in whynot(job, "part = 0")
    with pytest.raises(SpecError, match="zero"):
        whynot(job, "100 DIV amount = 2")


def test_a_value_that_outputs_compute_differently(folder: Path) -> None:
    """It is no value of an input that both read as one."""
    views = {"pairs": INNER.replace("p.paid", "o.amount")}
    outputs = {
        name: {"sql": f"SELECT order_id, amount * {by} AS more FROM pairs", "files": {"path": name}}
        for name, by in (("twice", 2), ("thrice", 3))
    }
    given = {**ONE, "orders": [[order(1, amount=30)]]}
    job = document(folder, "", given, {"sql": None, "output": None, "views": views, "outputs": outputs})
    lived(job, folder)
    with pytest.raises(SpecError, match=r"no input has its columns \(more\)"):
        whynot(job, "more = 60")
    assert why(job, "more = 60").startswith("twice: order_id = 1, more = 60")


@pytest.mark.parametrize("asked", ["paid IS NULL", "got = 0", "paid IS NULL AND got < 1"])
def test_rows_of_the_result_that_lack_a_partner(folder: Path, asked: str) -> None:
    """They are found by the other input, of which all rows are asked."""
    sql = LEFT.replace("p.paid", "p.paid, coalesce(p.paid, 0) AS got")
    job = document(folder, sql, LATER)
    lived(job, folder)
    assert why(job, asked).splitlines()[0] == "order_id = 4711, paid = NULL, got = 0"
    assert why(job, "got = 50").splitlines()[0] == "order_id = 1, paid = 50, got = 50"
    assert "note: rows of the result without a row of that input are not looked at; name" in why(
        job, "p.paid IS NULL"
    )


def test_groups_by_a_key_that_is_computed(folder: Path) -> None:
    """Only rows of the group that is asked for are looked at."""
    job = document(
        folder, MINUTES, {"orders": [[order(1), order(2, "12:01:00"), order(3, "12:01:30")]]}, CHANGELOG
    )
    lived(job, folder)
    assert "2 of 3 rows meet the condition" in whynot(job, "m = TIMESTAMP '2026-01-01T12:01:00Z'")
    lines = why(job, "m = TIMESTAMP '2026-01-01T12:01:00Z'").splitlines()
    assert sum("from orders" in line for line in lines) == 2


def test_not_read_yet(folder: Path) -> None:
    """Rows of files that are known, behind the last batch that is done; as partners, too."""
    job = document(
        folder, INNER, {"orders": [[order(1)], [order(4711)]], "payments": [[payment(4711)], [payment(1)]]}
    )
    lived(job, folder, last=0)
    answer = whynot(job, "order_id = 4711")
    assert "orders/1.csv, row 1\n    not read yet" in answer
    assert (
        "payments/0.csv, row 1, batch 0\n    no partner in orders with o.order_id = 4711 that counts"
        in answer
    )


@pytest.mark.parametrize(
    ("clock", "expected"), [("12:59:52", ""), ("12:59:48", "perhaps late: by at most 2s")]
)
def test_a_batch_that_is_not_kept(folder: Path, clock: str, expected: str) -> None:
    """A row in the order of its input was in time, whenever it was read; of another it is said what is not known."""
    job = document(folder, SOON, also(LATER, orders=(2, order(4711, clock))))
    lived(job, folder)
    for kind in ("offsets", "commits"):
        for batch in (0, 1):
            (folder / "ck" / "spark" / kind / str(batch)).unlink()
    for batch in (0, 1):
        shutil.rmtree(folder / "ck" / "state" / "manifests" / f"{batch:08d}")
    answer = whynot(job, "order_id = 4711 AND amount = 50 AND at > TIMESTAMP '2026-01-01T12:30:00Z'")
    assert "batch 2 or earlier" in answer
    assert ("late" in answer) == bool(expected) and expected in answer
    assert "no partner in payments" in answer


def test_columns_that_no_input_has(folder: Path) -> None:
    """They are named, and so are those that there are."""
    job = document(folder, INNER, BOTH)
    lived(job, folder)
    with pytest.raises(
        SpecError,
        match=r"^CONDITION: no input has its columns \(colour\)(.|\n)*orders: order_id, customer, amount, at",
    ):
        whynot(job, "colour = 'red'")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "order_id =",
        "order_id",
        "SELECT 1",
        "order_id = 1; amount = 2",
        "order_id = 'x' + 1",
        "f(order_id)",
    ],
)
def test_what_is_no_condition(folder: Path, text: str) -> None:
    """A mistake in the question, not an answer."""
    job = document(folder, INNER, BOTH)
    lived(job, folder)
    (folder / "job.yaml").write_text("a: 1\n")
    with (
        pytest.raises(SpecError, match=r"^CONDITION: .*(condition|order_id|empty|malformed|function f)"),
        telling_of(folder / "job.yaml"),
    ):
        whynot(job, text)


def test_without_a_checkpoint(folder: Path) -> None:
    """Nothing has run."""
    with pytest.raises(SpecError, match=r"^checkpoint\.path: no run so far"):
        whynot(document(folder, INNER, BOTH), "order_id = 4711")


def test_of_another_query(folder: Path) -> None:
    """Its plan would not fit what the checkpoint holds."""
    lived(document(folder, INNER, BOTH), folder)
    (folder / "other").mkdir()
    other = document(folder / "other", LEFT, BOTH)
    moved = other.spec.checkpoint.model_copy(update={"path": folder / "ck"})
    spec = other.spec.model_copy(update={"checkpoint": moved})
    with pytest.raises(SpecError, match="is of another query"):
        whynot(other.model_copy(update={"spec": spec}), "order_id = 4711")


def test_nothing_is_written(folder: Path) -> None:
    """Not even the end of a log is mended, which another process may be writing."""
    job = document(folder, CAUSES["late"][0], CAUSES["late"][1])
    lived(job, folder)
    with (folder / "ck" / "sources" / "orders.jsonl").open("a") as log:
        log.write('["0000')
    before = everything(folder)
    whynot(job, "order_id = 4711")
    why(job, "order_id = 1")
    assert everything(folder) == before


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_deleted_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deletion is named."""
    monkeypatch.setitem(lives.SCHEMAS, "payments", "order_id BIGINT, paid BIGINT, op STRING")
    given = {"orders": [[order(1), order(4711)]], "payments": [["1,5,I", "4711,5,I"], ["4711,5,D"]]}
    job = document(
        folder,
        INNER,
        given,
        {"output": {"mode": "changelog", "files": {"path": "out"}}},
        {"payments": {"changes": {"op": "op"}}},
    )
    lived(job, folder)
    answer = whynot(job, "p.order_id = 4711")
    assert "payments/0.csv, row 2, batch 0\n    deleted by payments p at" in answer
    assert "payments/1.csv, row 1, batch 1\n    a deletion" in answer
    assert "that counts" in whynot(job, "o.order_id = 4711")


@pytest.mark.parametrize(
    ("op", "expected"),
    [("I", "replaced by payments p at"), ("D", "deleted by payments p at")],
)
def test_events_of_an_upsert(folder: Path, monkeypatch: pytest.MonkeyPatch, op: str, expected: str) -> None:
    """The event that has replaced a row is named."""
    monkeypatch.setitem(lives.SCHEMAS, "payments", "order_id BIGINT, paid BIGINT, op STRING")
    given = {"orders": [[order(4711)]], "payments": [["1,5,I", "4711,5,I"], [f"4711,6,{op}"]]}
    upsert = {"upsert": {"key": ["order_id"]}, "changes": {"op": "op"}}
    job = document(folder, INNER, given, CHANGELOG, {"payments": upsert})
    lived(job, folder)
    assert f"payments/0.csv, row 2, batch 0\n    {expected}" in whynot(job, "p.order_id = 4711")


CHANGELOG = {"output": {"mode": "changelog", "files": {"path": "out"}}}
GROUPED = "SELECT o.customer, count(*) AS n FROM orders o JOIN payments p ON o.order_id = p.order_id GROUP BY o.customer"
MINUTES = "SELECT date_trunc('minute', o.at) AS m, count(*) AS n FROM orders o GROUP BY 1"


@pytest.mark.parametrize(
    ("sql", "more", "expected"),
    [
        (GROUPED, CHANGELOG, "counts in the group o.customer = 7\n    is in the result"),
        (
            f"{GROUPED} HAVING count(*) > 5",
            CHANGELOG,
            "in the group o.customer = 7\n    left out by `count(*) > 5`",
        ),
        (GROUPED, {}, "counts in the group o.customer = 7, which comes out when the inputs end"),
        ("SELECT count(*) AS n FROM orders o", {}, "counts in the only group"),
        (
            "SELECT DISTINCT array(o.customer, 1) AS a FROM orders o",
            {},
            "the group array(o.customer, 1) = [7, 1]\n    is in the result",
        ),
        ("SELECT DISTINCT o.customer FROM orders o", {}, "the group o.customer = 7\n    is in the result"),
        (
            MINUTES,
            {},
            (
                "2026-01-01 12:00, which comes out when the watermark has passed it; the watermark is"
                " 2026-01-01 11:59:50, held back by orders"
            ),
        ),
    ],
)
def test_the_group_in_which_a_row_counts(
    folder: Path, sql: str, more: dict[str, object], expected: str
) -> None:
    """And when it comes out."""
    given = {name: files for name, files in BOTH.items() if f" {name} " in sql}
    job = document(folder, sql, given, more)
    lived(job, folder)
    assert expected in whynot(job, "o.order_id = 4711")


OF_CUSTOMERS = "SELECT o.customer, count(*) AS n, sum(o.amount) AS s FROM orders o GROUP BY o.customer"
SEVEN = "the group o.customer = 7 has 2 rows"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"{OF_CUSTOMERS} HAVING count(*) > 5", f"left out by `count(*) > 5`: {SEVEN}, count(*) is 2"),
        (  # as in the engine, the first that is not true decides
            f"{OF_CUSTOMERS} HAVING count(*) > 1 AND sum(o.amount) < 90 AND max(o.amount) > 99",
            f"left out by `sum(o.amount) < 90`: {SEVEN}, sum(o.amount) is 100",
        ),
        (  # what the select list would compute fails, and is not computed
            "SELECT o.customer, 1 / (sum(o.amount) - 100) AS x FROM orders o GROUP BY o.customer HAVING sum(o.amount) <> 100",
            f"{SEVEN}, sum(o.amount) is 100",
        ),
        (
            f"{OF_CUSTOMERS} HAVING max(o.amount) - min(o.amount) > count(DISTINCT o.order_id)",
            f"{SEVEN}, max(o.amount) is 50, min(o.amount) is 50, count(DISTINCT o.order_id) is 2",
        ),
        (f"{OF_CUSTOMERS} HAVING o.customer > 9", f"left out by `o.customer > 9`: {SEVEN}\n"),
        (
            "SELECT count(*) AS n FROM orders o HAVING count(*) > 5",
            "the only group has 2 rows, count(*) is 2",
        ),
        ("SELECT 1 AS one FROM orders o HAVING count(*) > 5", "the only group has 2 rows, count(*) is 2"),
        ("SELECT count(*) AS n FROM orders o HAVING 1 > 2", "the only group has 2 rows\n"),
        (
            f"SELECT g.n FROM ({OF_CUSTOMERS}) g WHERE g.n > 5",
            f"left out by `n > 5`: {SEVEN}, count(*) is 2",
        ),
        (
            f"SELECT h.n, count(*) AS m FROM ({OF_CUSTOMERS} HAVING count(*) > 5) h GROUP BY h.n HAVING count(*) > 3",
            f"left out by `count(*) > 5`: {SEVEN}, count(*) is 2",
        ),
        (
            f"SELECT h.n, count(*) AS m FROM ({OF_CUSTOMERS}) h GROUP BY h.n HAVING count(*) > 3",
            "left out by `count(*) > 3`: the group h.n = 2 has 1 row, count(*) is 1",
        ),
        (  # a filter between two stages
            f"SELECT g.n FROM ({OF_CUSTOMERS}) g WHERE g.n > 5 UNION ALL SELECT g.n FROM ({OF_CUSTOMERS}) g WHERE g.s < 9",
            "left out by `n > 5`: n is 2",
        ),
        (
            f"WITH g AS ({OF_CUSTOMERS}) SELECT g.n FROM g WHERE g.n > 5 UNION ALL SELECT -g.n FROM g WHERE g.s < 9",
            "left out by `n > 5`: n is 2\n    left out by `s < 9`: s is 100",
        ),
        (
            f"SELECT p.paid FROM payments p LEFT JOIN ({OF_CUSTOMERS}) g ON p.order_id = g.customer AND g.n * 2 > 5 WHERE p.paid < g.s",
            "> 5`: g.n is 2",
        ),
        (
            f"SELECT p.paid FROM ({OF_CUSTOMERS}) g JOIN payments p ON p.order_id = g.customer WHERE g.n + p.paid > 99",
            "> 99` is not true with its partner, payments p at",
        ),
        (
            f"SELECT p.paid FROM ({OF_CUSTOMERS}) g JOIN payments p ON p.order_id = g.customer WHERE g.n + p.paid > 99",
            "payments/0.csv, row 1, batch 0: g.n is 2",
        ),
        (
            "SELECT o.order_id FROM orders o WHERE o.amount > (SELECT avg(p.paid) + 1 FROM payments p)",
            "payments/0.csv, row 1, batch 0: avg(p.paid) is 50",
        ),
    ],
)
def test_a_group_that_a_condition_leaves_out(folder: Path, sql: str, expected: str) -> None:
    """The condition is named, with how many rows the group has and what the condition reads of it."""
    given = {"orders": BOTH["orders"], "payments": [[payment(7)]]}
    given = {name: files for name, files in given.items() if f" {name} " in sql}
    lived(job := document(folder, sql, given, CHANGELOG), folder)
    said = whynot(job, "o.order_id = 4711")
    assert expected in f"{said}\n", said
    assert "no row of the result" in why(job, "o.order_id = 4711")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("n > 2", [7]),
        ("n >= 2", [7, 9]),
        ("n >= 2 AND customer > 8", [9]),
        ("n > 2 OR customer = 9", [7, 9]),
        ("n = 1", []),
        ("s = 150", [7]),
    ],
)
def test_groups_by_what_is_computed_of_them(folder: Path, asked: str, expected: list[int]) -> None:
    """`why` takes columns of the result that no input has, too."""
    orders = [order(n, customer=customer) for n, customer in enumerate([7, 7, 7, 8, 9, 9])]
    job = document(folder, f"{OF_CUSTOMERS} HAVING count(*) > 1", {"orders": [orders]}, CHANGELOG)
    lived(job, folder)
    lines = why(job, asked).splitlines()
    assert [int(line.split(",")[0][11:]) for line in lines if line.startswith("customer")] == expected
    assert sum("from orders" in line for line in lines) == sum({7: 3, 9: 2}[one] for one in expected)


def test_a_condition_that_neither_inputs_nor_the_result_have(folder: Path) -> None:
    """Of a column that is computed within the query, or compared wrongly."""
    job = document(folder, f"{OF_CUSTOMERS} HAVING min(o.amount) > 1", {"orders": BOTH["orders"]}, CHANGELOG)
    lived(job, folder)
    with pytest.raises(SpecError, match=r"no input has its columns \(least\)"):
        why(job, "least > 1")
    with pytest.raises(SpecError, match="'n' is BIGINT, not a condition"):
        why(job, "n")


def test_groups_that_are_too_many_to_be_asked_by_what_is_computed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not known which of them meet the condition."""
    job = document(folder, OF_CUSTOMERS, {"orders": BOTH["orders"]}, CHANGELOG)
    lived(job, folder)
    monkeypatch.setattr("joinlib.why.remade.MOST_GROUPS", 0)
    lines = why(job, "n > 9").splitlines()
    assert lines[0].startswith("no row of the result meets")
    assert lines[1].startswith("note: the groups are more, or have more rows, than are looked at; name keys")


def test_a_group_that_has_come_out(folder: Path) -> None:
    """It takes no more rows."""
    later = [order(2, "13:00:00")]
    job = document(folder, MINUTES, {"orders": [[order(4711)], later, later, [order(4712)]]})
    lived(job, folder)
    assert "12:00\n    is in the result" in whynot(job, "o.order_id = 4711")
    assert "12:00 had come out when it came, and takes no more rows" in whynot(job, "o.order_id = 4712")


LAST = "SELECT o.order_id FROM orders o QUALIFY row_number() OVER (PARTITION BY o.customer ORDER BY o.at DESC) = 1"
NUMBERED = "SELECT o.order_id, row_number() OVER (PARTITION BY o.customer ORDER BY o.at) AS n FROM orders o"


@pytest.mark.parametrize(
    ("sql", "more", "files", "expected"),
    [
        (
            LAST,
            CHANGELOG,
            [[order(4711)], [order(2, "13:00:00")]],
            "row_number() OVER (PARTITION BY customer ORDER BY at DESC) = 1`: it is 2; first is orders o at",
        ),
        (LAST, CHANGELOG, [[order(2)], [order(4711, "13:00:00")]], "is in the result"),
        (NUMBERED, {}, [[order(4711)], [order(2, "13:00:00")]], "is in the result"),
        (
            NUMBERED,
            {},
            [[order(4711)]],
            (
                "comes out when the watermark has passed it, as rows before it may still come;"
                " the watermark is 2026-01-01 11:59:50, held back by orders"
            ),
        ),
        (NUMBERED, {}, [[order(2, "13:00:00")], [order(4711)]], "late by 59m50s behind the watermark"),
        (  # the watermark has passed its row, and its session may still grow
            (
                "SELECT session_window.start AS s, count(*) AS n FROM orders o"
                " GROUP BY session_window(o.at, '1 hour'), o.order_id"
            ),
            {},
            [[order(4711)], [order(2, "12:30:00")]],
            "comes out when the watermark has passed it, as rows before it may still come",
        ),
        (
            (
                "SELECT q.order_id FROM (SELECT o.order_id, o.at, o.customer FROM orders o"
                " QUALIFY row_number() OVER (PARTITION BY o.customer ORDER BY o.at) <= 1) q"
                " JOIN payments p ON p.order_id = q.order_id AND p.at BETWEEN q.at AND q.at + INTERVAL 1 HOUR"
            ),
            {},
            [[order(2, "11:00:00"), order(4711)], [order(3, "13:00:00")]],
            "left out by `row_number() OVER (PARTITION BY customer ORDER BY at) <= 1`: it is 2; first is orders o at",
        ),
    ],
)
def test_a_row_with_window_functions(
    folder: Path, sql: str, more: dict[str, object], files: list[list[str]], expected: str
) -> None:
    """Its place in its partition, and when it comes out."""
    given = {"orders": files} | ({"payments": BOTH["payments"]} if " payments " in sql else {})
    lived(job := document(folder, sql, given, more), folder)
    assert expected in whynot(job, "o.order_id = 4711")


def test_a_group_below_window_functions(folder: Path) -> None:
    """What is said of a row is said once, though its group is made again for its partition."""
    sql = f"SELECT g.customer, g.n FROM ({GROUPED}) g QUALIFY row_number() OVER (ORDER BY g.n DESC) <= 2"
    lived(job := document(folder, sql, BOTH, CHANGELOG), folder)
    said = whynot(job, "o.order_id = 4711")
    assert "counts in the group o.customer = 7\n    is in the result" in said
    assert said.count("counts in the group") == 1


def test_what_a_group_was_made_of(folder: Path) -> None:
    """All of its rows, with their partners."""
    job = document(folder, GROUPED, BOTH, CHANGELOG)
    lived(job, folder)
    lines = why(job, "o.order_id = 4711").splitlines()
    assert lines[0] == "customer = 7, n = 2"
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["from orders o"] * 2 + [
        "from payments p"
    ] * 2


@pytest.mark.parametrize(
    ("limit", "most"), [("joinlib.why.scan.MOST", 1), ("joinlib.why.remade.MOST_GROUPS", 0)]
)
def test_more_rows_or_groups_than_are_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    """The group is named, with the rows that meet the condition."""
    job = document(folder, f"{GROUPED} HAVING count(*) > 1", BOTH, CHANGELOG)
    lived(job, folder)
    monkeypatch.setattr(limit, most)
    said = "counts in the group o.customer = 7, which is in the result, if `count(*) > 1`"
    assert said in whynot(job, "o.order_id = 4711")
    lines = why(job, "o.order_id = 4711").splitlines()
    assert lines[0] == "the group o.customer = 7"
    assert [line.split(":")[0].strip() for line in lines[1:3]] == ["from orders o", "from payments p"]
    assert lines[-1].startswith("note: groups are shown with the rows that meet the condition")


def test_files_that_are_gone(folder: Path) -> None:
    """What cannot be read again is said, and the rest is looked at."""
    job = document(folder, INNER, {"orders": [[order(1)], [order(4711)]], "payments": [[payment(1)]]})
    lived(job, folder)
    (folder / "orders" / "0.csv").unlink()
    answer = whynot(job, "o.order_id = 4711")
    assert "note: orders: not looked at: " in answer and "0.csv: gone" in answer
    assert "no partner in payments" in answer


def test_files_that_were_archived(folder: Path) -> None:
    """They are read where they were moved to."""
    archive = {"files": {"path": "orders", "format": "csv", "done": "archive", "archive": "read"}}
    job = document(folder, INNER, BOTH, of_inputs={"orders": archive})
    lived(job, folder)
    (folder / "read").mkdir(exist_ok=True)
    (folder / "orders" / "0.csv").rename(folder / "read" / "0.csv")
    assert why(job, "o.order_id = 4711").startswith("order_id = 4711, paid = 50")


TABLE = "SELECT o.order_id, c.name FROM orders o {} JOIN customers c ON o.customer = c.id"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (TABLE.format(""), "no row with c.id = 8 in table customers that matches, as of version 1"),
        (
            TABLE.format("") + " AND c.region = o.amount",
            "no row with c.id = 7, c.region = 50 in table customers",
        ),
        (TABLE.format("LEFT") + " WHERE c.name IS NOT NULL OR o.amount < 10", "c.name IS NOT NULL"),
        (TABLE.format("LEFT"), "is in the result"),
        (TABLE.format("ANTI").replace(", c.name", ""), "is in the result"),
        (TABLE.format("SEMI").replace(", c.name", ""), "no row with c.id = 8 in table customers"),
    ],
)
def test_a_table_that_is_looked_up(folder: Path, sql: str, expected: str) -> None:
    """As it was for the last batch."""
    customer = 7 if "region" in sql else 8
    given = {"orders": [[order(1), order(4711, customer=customer)]], "customers": [["7,1,Ada"]]}
    job = document(
        folder,
        sql,
        given,
        None,
        {"customers": {"role": "table", "files": {"path": "customers", "format": "csv"}}},
    )
    lived(job, folder)
    assert expected in whynot(job, "order_id = 4711")
    assert why(job, "order_id = 4711").startswith("order_id = 4711") == (expected == "is in the result")


def test_what_is_not_followed_is_a_note(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not an answer that there is no such row."""
    sql = f"SELECT g.n FROM ({GROUPED}) g ORDER BY g.n LIMIT 3"
    job = document(folder, sql, BOTH, CHANGELOG)
    lived(job, folder)
    monkeypatch.setattr(scan, "MOST", 1)
    said = "its row is made of more rows than are looked at"
    assert f"note: rows of orders are not followed where {said}" in why(job, "o.order_id = 4711")
    assert f"{said}: from here on" in whynot(job, "o.order_id = 4711")


def test_partners_that_are_groups(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are made again, if they have no more rows than are looked at."""
    sql = (
        "SELECT o.order_id, g.n FROM orders o"
        " JOIN (SELECT order_id, count(*) AS n FROM payments GROUP BY order_id) g ON o.order_id = g.order_id"
    )
    given = {"orders": [[order(1), order(4711)]], "payments": [[payment(4711), payment(4711)]]}
    job = document(folder, sql, given, {"output": {"mode": "changelog", "files": {"path": "out"}}})
    lived(job, folder)
    assert why(job, "o.order_id = 4711").startswith("order_id = 4711, n = 2\n  from payments: ")
    monkeypatch.setattr(scan, "MOST", 1)
    assert "its partners are made of more rows than are looked at: from here on" in whynot(
        job, "o.order_id = 4711"
    )


def test_names_of_the_text(folder: Path) -> None:
    """Where a rewrite has given an input another name, that of the text is meant; parameters are values."""
    sql = "SELECT o.order_id FROM orders o WHERE o.order_id NOT IN (SELECT p.order_id FROM payments p) AND o.amount > ${least}"
    job = document(folder, sql, BOTH, {"parameters": {"least": {"type": "INT", "value": 10}}})
    lived(job, folder)
    assert whynot(job, "o.order_id = 4711").count("payments") == 3
    single = document_of_one(folder / "single")
    assert "left out by `amount > 60`" in whynot(single, "o.order_id = 4711")


def document_of_one(folder: Path) -> StreamJoin:
    """A job that joins nothing."""
    folder.mkdir()
    job = document(folder, "SELECT o.order_id FROM orders o WHERE o.amount > 60", {"orders": BOTH["orders"]})
    lived(job, folder)
    return job
