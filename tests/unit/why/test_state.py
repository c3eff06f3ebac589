"""What is stored, asked in SQL: the rows that are there, as an engine that knows nothing of segments would count them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.cli.state import _steady
from joinlib.errors import SpecError, StateError
from tests.laws.product import own_folder
from tests.unit.why import lived as lives
from tests.unit.why.kept import asked
from tests.unit.why.lived import document, lived
from tests.unit.why.test_answers import everything
from tests.unit.why.test_whynot import CHAIN, INNER, LATER, LEFT, ONE, SOON, also, order, payment


@pytest.fixture
def folder() -> Iterator[Path]:
    with own_folder() as own:
        yield own


def test_rows_and_groups(folder: Path) -> None:
    """A list, a condition, an order; groups and a join over two tables."""
    job = document(folder, INNER, also(ONE, payments=(0, payment(4711, paid=20))))
    lived(job, folder)
    assert asked(job, "SELECT order_id, paid FROM payments WHERE paid < 50")[-2:-1] == [["4711", "20"]]
    assert asked(job, "SELECT count(*) AS n, max(order_id) AS most FROM orders")[-2] == ["2", "4711"]
    both = "SELECT o.order_id, p.paid FROM orders o JOIN payments p ON o.order_id = p.order_id ORDER BY o.order_id DESC"
    assert asked(job, both)[-3:-1] == [["4711", "20"], ["1", "50"]]
    assert asked(job, "SELECT order_id FROM orders WHERE order_id < 0") == [
        ["0", "rows,", "after", "batch", "0"]
    ]


def test_rows_that_have_expired_are_gone(folder: Path) -> None:
    """Although their segment may still be there."""
    job = document(folder, SOON, LATER)
    lived(job, folder)
    assert asked(job, "SELECT order_id FROM orders ORDER BY order_id")[1:-1] == [["2"], ["3"]]


def test_which_rows_have_found_a_partner(folder: Path) -> None:
    """Marks are a column."""
    job = document(folder, LEFT, ONE)
    lived(job, folder)
    assert asked(job, "SELECT order_id, matched FROM orders ORDER BY order_id")[1:-1] == [
        ["1", "True"],
        ["4711", "False"],
    ]


def test_deleted_rows_are_gone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever segment they lie in."""
    monkeypatch.setitem(lives.SCHEMAS, "payments", "order_id BIGINT, paid BIGINT, op STRING")
    given = {"orders": [[order(1)]], "payments": [["1,5,I", "4711,5,I"], ["4711,5,D"]]}
    more = {"output": {"mode": "changelog", "files": {"path": "out"}}}
    job = document(folder, INNER, given, more, {"payments": {"changes": {"op": "op"}}})
    lived(job, folder)
    assert asked(job, "SELECT order_id FROM payments")[1:-1] == [["1"]]


@pytest.mark.parametrize("strategy", ["auto", "paths"])
def test_what_there_is(folder: Path, strategy: str) -> None:
    """Without a query the tables are listed; rows of an earlier stage are one, and an input stored twice is two."""
    given = {**ONE, "customers": [["7,1,Ada"]], "regions": [["1,north"]]}
    job = document(folder, CHAIN, given, {"join": {"strategy": strategy}})
    lived(job, folder)
    lines = asked(job, None)
    assert lines[0] == ["state", "after", "batch", "0"]
    names = {line[0] for line in lines if line[0].endswith(":")}
    assert {"orders:", "payments:", "customers:", "regions:"} < names
    assert (names & {"stage0:", "orders_2:"}) == ({"stage0:"} if strategy == "auto" else {"orders_2:"})


def test_what_is_not_kept(folder: Path) -> None:
    """A column that the input has and the state has not, a column that nobody has, and a table."""
    job = document(folder, INNER, ONE)
    lived(job, folder)
    with pytest.raises(SpecError, match=r"column amount of orders is not kept: .* kept are order_id, unit"):
        asked(job, "SELECT amount FROM orders")
    with pytest.raises(SpecError, match="column colour is in no input"):
        asked(job, "SELECT colour FROM orders")
    with pytest.raises(SpecError, match="the state has no table customers"):
        asked(job, "SELECT 1 AS one FROM customers")
    with pytest.raises(SpecError, match=r"^the query reads no table of the state; tables: orders, payments$"):
        asked(job, "SELECT 1 AS one")
    for text in ("SELECT * FROM read_csv('x.csv')", "SELECT * FROM range(3)"):
        with pytest.raises(SpecError, match=r"\) is no table of the state; tables: orders, payments$"):
            asked(job, text)
    with pytest.raises(SpecError, match="write one SELECT"):
        asked(job, "DROP TABLE orders")


def test_without_a_checkpoint(folder: Path) -> None:
    """Nothing is stored yet."""
    with pytest.raises(SpecError, match=r"^checkpoint\.path: no run so far: .* holds no batch that is done$"):
        asked(document(folder, INNER, ONE), None)


def test_nothing_is_written(folder: Path) -> None:
    """Neither beside the checkpoint nor in it."""
    job = document(folder, INNER, ONE)
    lived(job, folder)
    before = everything(folder)
    asked(job, "SELECT count(*) AS n FROM orders")
    assert everything(folder) == before


def test_a_job_that_goes_on_meanwhile(folder: Path) -> None:
    """What it has deleted is not missed: the newer batch is read. Otherwise it is damage."""
    job = document(folder, SOON, LATER)
    lived(job, folder)
    commits = folder / "ck" / "spark" / "commits"
    seen: list[int] = []

    def read(batch: int) -> int:
        seen.append(batch)
        if batch == 2:
            (commits / "3").write_text("v1\n{}")
            raise StateError("a segment is gone")
        return batch

    assert _steady(folder / "ck", read) == (3, 3)
    assert seen == [2, 3]
    (commits / "3").unlink()
    for manifest in (folder / "ck" / "state" / "manifests" / "00000002").iterdir():
        manifest.write_bytes(b"torn")
    with pytest.raises(StateError, match="damaged"):
        asked(job, "SELECT * FROM orders")
