"""Cases of a spec: what passes, what the first difference is, and how a file that asks for the impossible is refused."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from jobs.cli.cases.differ import difference
from jobs.cli.cases.report import Verdict, judged
from jobs.cli.commands import app
from joinlib.errors import SpecError
from joinlib.spec import load
from joinlib.spec.cases import cases_beside, load_cases

AT = "2026-01-01T10:0"
KAFKA = {"bootstrapServers": "nowhere:9092"}
ORDERS = {
    "schema": "id BIGINT NOT NULL, amount DECIMAL(10, 2), at TIMESTAMP",
    "eventTime": {"column": "at", "idle": "1m"},
    "kafka": {"topic": "orders", **KAFKA},
}
PAYMENTS = {
    "schema": "id BIGINT, share DOUBLE, at TIMESTAMP",
    "eventTime": {"column": "at", "idle": "1m"},
    "kafka": {"topic": "payments", **KAFKA},
}
CUSTOMERS = {
    "schema": "id BIGINT, tags ARRAY<STRING>",
    "postgres": {"host": "nowhere", "database": "d", "table": "c", "user": "u", "passwordEnv": "D_PASSWORD"},
}
LEFT = """
SELECT o.id, o.amount, p.share
FROM orders o LEFT JOIN payments p ON o.id = p.id AND p.at BETWEEN o.at AND o.at + INTERVAL 5 MINUTES
"""
SPEC: dict[str, Any] = {
    "sql": LEFT,
    "inputs": {"orders": ORDERS, "payments": PAYMENTS},
    "output": {"kafka": {"topic": "out", **KAFKA}},
    "checkpoint": {"path": "checkpoint"},
}
ORDER = {"id": 1, "amount": 9.5, "at": f"{AT}0:00"}
PAID = {"id": 1, "share": 0.3, "at": f"{AT}1:00"}


def verdict(folder: Path, batches: Any, expect: Any = None, **spec: Any) -> Verdict:
    """What becomes of one case."""
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "shop"}}
    given = {k: v for k, v in {**SPEC, **spec}.items() if v is not None}
    (folder / "shop.yaml").write_text(yaml.safe_dump({**head, "spec": given}))
    case = {"name": "one", "batches": batches} | ({} if expect is None else {"expect": expect})
    (folder / "shop.test.yaml").write_text(yaml.safe_dump({"cases": [case]}, sort_keys=False))
    document, cases = load(folder / "shop.yaml"), load_cases(cases_beside(folder / "shop.yaml"))
    (found,) = judged(document, cases, (), lambda: 0.0)
    return found


def batch(expect: Any = None, at: str | None = None, **rows: Any) -> dict[str, Any]:
    more = {"at": at} if at else {}
    return {**more, "rows": rows, **({} if expect is None else {"expect": expect})}


CHANGING = {
    "sql": "SELECT o.id, sum(p.share) AS paid FROM orders o JOIN payments p ON o.id = p.id GROUP BY o.id",
    "inputs": {"orders": {**ORDERS, "upsert": {"key": ["id"]}}, "payments": PAYMENTS},
    "output": {"mode": "upsert", "key": ["id"], "kafka": {"topic": "out", **KAFKA}},
}
TOTAL = "SELECT count(*) AS n, sum(p.share) AS paid FROM orders o JOIN payments p ON o.id = p.id"
TABLE = {
    "sql": "SELECT o.id, c.tags FROM orders o LEFT JOIN customers c ON o.id = c.id",
    "inputs": {"orders": ORDERS, "customers": CUSTOMERS},
}
SEVERAL = {
    "sql": None,
    "output": None,
    "inputs": {"orders": ORDERS, "payments": PAYMENTS},
    "outputs": {
        "small": {"sql": "SELECT id FROM orders WHERE amount < 5", "noop": {}},
        "large": {"sql": "SELECT id FROM orders WHERE amount >= 5", "noop": {}},
    },
}
PASSING: dict[str, tuple[Any, ...]] = {
    "in any order, by the columns that are named": (
        [
            batch(
                [{"id": 2}, {"id": 1}], orders=[ORDER, {**ORDER, "id": 2}], payments=[PAID, {**PAID, "id": 2}]
            )
        ],
        None,
        {},
    ),
    "a sum of doubles, a rounding away": (
        [batch([{"paid": 0.3}], orders=[ORDER], payments=[{**PAID, "share": 0.1}, {**PAID, "share": 0.2}])],
        None,
        CHANGING,
    ),
    "nothing until the inputs end": ([batch([], orders=[ORDER])], [{"id": 1, "share": None}], {}),
    "an input that is silent, by the times of the case": (
        [
            batch([], orders=[ORDER], payments=[{**PAID, "id": 9}]),
            batch([], at="30s", orders=[{**ORDER, "id": 2, "at": f"{AT}9:00"}]),
            batch([{"id": 1}], at="2m", orders=[{**ORDER, "id": 3, "at": f"{AT}9:30"}]),
        ],
        None,
        {},
    ),
    "a row that goes": (
        [
            batch([{"id": 1, "paid": 0.3}], orders=[ORDER], payments=[PAID]),
            batch([], orders=[{"id": 1, "_change_type": "delete"}]),
        ],
        None,
        CHANGING,
    ),
    "a table of a database": (
        [batch(orders=[ORDER, {**ORDER, "id": 2}], customers=[{"id": 1, "tags": ["a", None]}])],
        [{"id": 1, "tags": ["a", None]}, {"id": 2, "tags": None}],
        TABLE,
    ),
    "the group of all rows, without any": ([batch()], [{"n": 0, "paid": None}], {"sql": TOTAL}),
    "the group of all rows, without any, of a result that changes": (
        [batch()],
        [{"n": 0, "paid": None}],
        {"sql": TOTAL, "output": {"mode": "changelog", "kafka": {"topic": "out", **KAFKA}}},
    ),
    "several outputs": ([batch(orders=[ORDER])], {"small": [], "large": [{"id": 1}]}, SEVERAL),
}
SAME_KEY = {
    "sql": "SELECT o.id, p.share FROM orders o JOIN payments p ON o.id = p.id",
    "output": {"mode": "upsert", "key": ["id"], "noop": {}},
}
FAILING: dict[str, tuple[Any, ...]] = {
    "case 'one', after batch 1: row 1, column amount: expected 9.40, got 9.50": (
        [batch([{"id": 1, "amount": 9.4}], orders=[ORDER], payments=[PAID])],
        None,
        {},
    ),
    "at the end: row 2 has not come: {id: 3}": ([batch(orders=[ORDER])], [{"id": 1}, {"id": 3}], {}),
    "a row more than expected: {id: 1, amount: 9.50, share: null}": ([batch(orders=[ORDER])], [], {}),
    "late and left out: 1 row of orders": (
        [
            batch(orders=[{**ORDER, "at": f"{AT}9:00"}], payments=[{**PAID, "at": f"{AT}9:00"}]),
            batch([{"id": 1}] * 3, orders=[ORDER], payments=[{**PAID, "at": f"{AT}9:30"}]),
        ],
        None,
        {},
    ),
    "case 'one' stops: output.key: the result has several rows with the same id": (
        [batch([], orders=[ORDER], payments=[PAID, {**PAID, "share": 1}])],
        None,
        SAME_KEY,
    ),
    "case 'one' stops: (1 / (id - 1)) cannot be computed for some row: division by zero": (
        [batch(orders=[ORDER])],
        [],
        {"sql": "SELECT 1 / (id - 1) AS x FROM orders", "inputs": {"orders": ORDERS}},
    ),
}
REFUSED: dict[str, tuple[Any, ...]] = {
    "6: cases.0.batches.0.rows.orders.0.idd: there is no such column; did you mean 'id'?": (
        [batch([], orders=[{"idd": 1}])],
        None,
        {},
    ),
    "rows.order: there is no such input; did you mean 'orders'?": ([batch([], order=[])], None, {}),
    "orders.0.amount: 'much' is no DECIMAL(10,2); write one": (
        [batch([], orders=[{**ORDER, "amount": "much"}])],
        None,
        {},
    ),
    "orders.0.id: True is no BIGINT; write one, such as 42": ([batch([], orders=[{"id": True}])], None, {}),
    "orders.0.id: 1.5 is no BIGINT": ([batch([], orders=[{"id": 1.5}])], None, {}),
    "orders.0.at: 'noon' is no TIMESTAMP": ([batch([], orders=[{"id": 1, "at": "noon"}])], None, {}),
    "orders.0: id is declared NOT NULL; give it a value": ([batch([], orders=[{"amount": 1}])], None, {}),
    "expect.0.shares: there is no such column; did you mean 'share'?": (
        [batch([{"shares": 1}], orders=[ORDER])],
        None,
        {},
    ),
    "expect.1: leaves out amount, which the first row names": (
        [batch([{"id": 1, "amount": 1}, {"id": 2}])],
        None,
        {},
    ),
    "expect.1: names amount, which the first row does not": (
        [batch([{"id": 1}, {"id": 2, "amount": 1}])],
        None,
        {},
    ),
    "cases.0.batches.0.expct: unknown field; did you mean 'expect'?": ([{"expct": []}], [], {}),
    "cases.0: expects nothing": ([batch(orders=[ORDER])], None, {}),
    "expect: is no list of rows": ([batch("nothing")], None, {}),
    "cases.0.batches: arrive in another order": ([batch([], at="2s"), batch(at="1s")], None, {}),
    "customers: is a table, which is there from the beginning": (
        [batch([]), batch(customers=[])],
        None,
        TABLE,
    ),
    "there are several outputs; write rows for each: large, small": ([batch([])], None, SEVERAL),
    "there is no output smal; did you mean 'small'?": ([batch({"smal": []})], None, SEVERAL),
    "there is one output, which has no name": ([batch({"out": []})], None, {}),
}


@pytest.mark.parametrize("name", PASSING)
def test_a_case_that_passes(name: str, tmp_path: Path) -> None:
    """Kafka, a database and Spark are nowhere."""
    batches, expect, spec = PASSING[name]
    assert verdict(tmp_path, batches, expect, **spec).failure == ""
    assert {f.name for f in tmp_path.iterdir()} == {"shop.yaml", "shop.test.yaml"}


@pytest.mark.parametrize("message", FAILING)
def test_a_case_that_fails(message: str, tmp_path: Path) -> None:
    """The first difference is named, at its line."""
    batches, expect, spec = FAILING[message]
    found = verdict(tmp_path, batches, expect, **spec).failure
    assert message in found
    assert found.startswith(f"{tmp_path}/shop.test.yaml:")


@pytest.mark.parametrize("message", REFUSED)
def test_a_case_that_asks_for_what_there_is_not(message: str, tmp_path: Path) -> None:
    """At its line, with the fix."""
    batches, expect, spec = REFUSED[message]
    with pytest.raises(SpecError) as error:
        verdict(tmp_path, batches, expect, **spec)
    assert message in str(error.value)
    assert str(error.value).startswith(f"{tmp_path}/shop.test.yaml:")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "- name: a\n  batches:\n  - row: {o: []}\n    expect: []\n",
            ["4: cases.0.batches.0.row: unknown field; did you mean 'rows'?"],
        ),
        (
            "- name: a\n  batches:\n  - rows: {o: [5]}\n- name: b\n  batches: []\n",
            [
                "4: cases.0.batches.0.rows.o: is no list of rows; write [{column: value, ...}, ...], or [] for none",
                "6: cases.1.batches: is empty; it needs at least one (What arrives, batch after batch)",
            ],
        ),
        ("  []", ["1: cases: is empty; it needs at least one (The cases, each of which is run by itself)"]),
        ("  5", ["1: cases: should be a list (The cases, each of which is run by itself); write [...]"]),
        ("- 7", ["2: cases.0: needs fields below it; write {name: ..., batches: ...}"]),
    ],
)
def test_only_what_is_wrong_is_told(text: str, said: list[str], tmp_path: Path) -> None:
    """Not of a list that it is empty, because each of its entries has a mistake."""
    (file := tmp_path / "shop.test.yaml").write_text(f"cases:\n{text}")
    with pytest.raises(SpecError) as error:
        load_cases(file)
    assert str(error.value).splitlines() == [f"{file}:{line}" for line in said]


def test_the_example() -> None:
    """It is what users copy from."""
    example = Path(__file__).parents[3] / "manifests" / "examples" / "cases" / "paid-orders.yaml"
    ran = CliRunner().invoke(app, ["test", str(example)])
    assert ran.exit_code == 0, ran.output
    assert "3 cases, 0 failed" in ran.stdout


def test_the_command(tmp_path: Path) -> None:
    """Exit code 2 and JUnit XML if a case fails; cases are chosen by name, and a name that is wrong is told."""
    verdict(tmp_path, [batch([{"id": 2}], orders=[ORDER], payments=[PAID])])
    cases = tmp_path / "shop.test.yaml"
    text = cases.read_text()
    good = text.split("cases:\n")[1].replace("name: one", "name: two").replace("id: 2", "id: 1")
    cases.rename(tmp_path / "other.yaml").write_text(text + good)
    call = ["test", str(tmp_path / "shop.yaml"), "--cases", str(tmp_path / "other.yaml")]
    ran = CliRunner().invoke(app, [*call, "--junit", str(tmp_path / "made" / "junit.xml")])
    assert ran.exit_code == 2
    assert [line.split()[:2] for line in ran.stdout.splitlines()[:2]] == [
        ["FAILED", "one"],
        ["passed", "two"],
    ]
    assert ran.stdout.endswith("2 cases, 1 failed\n")
    suite = ET.parse(tmp_path / "made" / "junit.xml").getroot()[0]
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("shop", "2", "1")
    assert "row 1" in str(suite[0][0].get("message"))
    assert CliRunner().invoke(app, [*call, "--case", "two"]).exit_code == 0
    wrong = CliRunner().invoke(app, [*call, "--case", "too"])
    assert "did you mean 'two'?" in str(wrong.exception)


def test_no_case_is_run_if_one_has_a_mistake(tmp_path: Path) -> None:
    """Whichever it is: nothing is printed of those before it, and it is named with its row and column."""
    good = verdict(tmp_path, [batch([{"id": 1}], orders=[ORDER], payments=[PAID])])
    assert good.failure == ""
    file = tmp_path / "shop.test.yaml"
    text = file.read_text()
    second = text.split("cases:\n")[1].replace("name: one", "name: two")
    missing = second.replace("      - id: 1\n        amount", "      - amount", 1)
    assert missing != second
    for wrong, said in (
        (missing, "cases.1.batches.0.rows.orders.0: id is declared NOT NULL; give it a value"),
        (second.replace("- id: 1", "- idd: 1", 1), "cases.1.batches.0."),
    ):
        file.write_text(text + wrong)
        ran = CliRunner().invoke(app, ["test", str(tmp_path / "shop.yaml")])
        assert ran.stdout == ""
        assert said in str(ran.exception)


def test_the_nearest_row_and_what_is_alike() -> None:
    """NaN is NaN, NULL is NULL; rows are as often there as expected; the difference is from the nearest row."""
    nan, columns = float("nan"), ("a", "b", "c")
    assert difference(columns, [(1, nan, None), (1, nan, None)], [(1, nan, None)] * 2) is None
    found = difference(columns, [(1, 2, 3), (1, 2, 3)], [(9, 9, 9), (1, 2, 3), (1, 2, 4)])
    assert found is not None
    assert found.text == "row 2, column c: expected 3, got 4"
    assert found.lines == ["- {a: 1, b: 2, c: 3}", "+ {a: 9, b: 9, c: 9}", "+ {a: 1, b: 2, c: 4}"]
