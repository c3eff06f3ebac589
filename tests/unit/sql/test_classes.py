"""The classes of a join say what its equalities say; what they do not say is left."""

import pyarrow as pa
import pytest

from joinlib.plan.build import Request
from joinlib.plan.options import JoinOptions
from joinlib.plan.source import SourceInput
from joinlib.spec import ddl
from joinlib.sql.blocks import blocks
from joinlib.sql.classes import KeyClasses, key_classes
from joinlib.sql.graph import Joined, Table
from joinlib.sql.parse import parse
from joinlib.sql.push import push
from joinlib.sql.tree import Builder
from tests.queries.corpus import query, schemas

COLUMNS = "x INT, y INT, z BIGINT, d DOUBLE, v STRING"
TABLES = {name: Table(name, ddl.parse(COLUMNS), None) for name in "abcd"}


def classes(where: str, inputs: str = "a, b, c") -> KeyClasses:
    tree, _ = Builder("", TABLES).select(parse(f"SELECT 1 FROM {inputs} WHERE {where}"))
    melted = push(tree, [], [])
    assert isinstance(melted, Joined)
    return key_classes(melted)


def members(found: KeyClasses) -> list[list[str]]:
    return [[value.sql for value in each.members.values()] for each in found.classes]


def rest(found: KeyClasses) -> list[str]:
    return [clause.value.sql for clause in found.rest]


def test_a_chain_has_two() -> None:
    found = classes("a.x = b.x AND b.y = c.y AND a.v < c.v")

    assert members(found) == [["a.x", "b.x"], ["b.y", "c.y"]]
    assert found.graph.classes == (frozenset([0, 1]), frozenset([1, 2]))
    assert rest(found) == ["(a.v < c.v)"]


def test_equal_to_one_is_equal_to_the_other() -> None:
    """In the order of the inputs, whichever equality came first."""
    found = classes("c.x = b.x AND a.y = b.x")

    assert members(found) == [["a.y", "b.x", "c.x"]]
    assert rest(found) == []


def test_a_class_names_an_input_once() -> None:
    """a.x = b.x AND a.y = b.x: that a.x = a.y too is left to be decided."""
    found = classes("a.x = b.x AND a.y = b.x AND b.z = c.z")

    assert members(found) == [["a.x", "b.x"], ["b.z", "c.z"]]
    assert rest(found) == ["(a.y = b.x)"]


def test_what_a_type_loses_is_left() -> None:
    """As DOUBLE, two BIGINTs may be equal that are not; as BIGINT two INTs are what they were."""
    found = classes("a.z = b.z AND b.z = c.d")
    assert [each.type for each in found.classes] == [pa.float64()]
    assert rest(found) == ["(a.z = b.z)"]

    wide = classes("a.x = b.x AND b.x = c.z")
    assert [each.type for each in wide.classes] == [pa.int64()]
    assert rest(wide) == []


def test_cycles_are_classes_too() -> None:
    found = classes("a.x = b.x AND b.y = c.y AND c.z = a.z")

    assert found.graph.classes == (frozenset([0, 1]), frozenset([1, 2]), frozenset([0, 2]))
    assert rest(found) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("q3", [{"customer", "orders"}, {"orders", "lineitem"}]),
        (
            "q9",
            [
                {"supplier", "lineitem", "partsupp"},
                {"part", "lineitem", "partsupp"},
                {"lineitem", "orders"},
                {"supplier", "nation"},
            ],
        ),
    ],
)
def test_queries_of_tpch(name: str, expected: list[set[str]]) -> None:
    inputs = {
        table: SourceInput(ddl.parse(", ".join(" ".join(column) for column in columns)))
        for table, columns in schemas("tpch").items()
    }
    tables = Request(inputs, JoinOptions()).tables
    first = blocks(query(f"tpch-{name}").streamed, tables)[0]
    tree, _ = Builder("", tables).select(first.query)
    melted = push(tree, [], [])
    assert isinstance(melted, Joined)
    found = key_classes(melted)

    assert [set(each.members) for each in found.classes] == expected
    assert found.graph.connected
