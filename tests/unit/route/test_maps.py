"""Maps over rows, against a loop over Python values."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from joinlib.expr import Expr, ref
from joinlib.expr import types as t
from joinlib.expr.compare import compare
from joinlib.expr.nodes import call, constant
from joinlib.model.inputs import WEIGHT
from joinlib.model.maps import Expand, Map
from joinlib.route.maps import mapped

ITEM = pa.struct([("name", pa.string()), ("n", pa.int32())])
SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("tags", pa.list_(pa.string())),
        ("items", pa.list_(ITEM)),
        ("pairs", pa.map_(pa.string(), pa.int32())),
    ]
)
ROWS = pa.RecordBatch.from_pylist(
    [
        {"id": 9, "tags": ["x"], "items": [], "pairs": []},
        {"id": 1, "tags": ["a", "b"], "items": [{"name": "p", "n": 1}, None], "pairs": [("k", 1)]},
        {"id": 2, "tags": [], "items": None, "pairs": None},
        {"id": 3, "tags": None, "items": [{"name": None, "n": 3}], "pairs": [("l", None), ("m", 2)]},
        {"id": 4, "tags": [None], "items": [], "pairs": []},
        {"id": None, "tags": ["c"], "items": [{"name": "q", "n": None}], "pairs": [("o", 5)]},
    ],
    SCHEMA,
).slice(1)  # with an offset, which lists have too
ID, TAGS, ITEMS, PAIRS = (ref(f.name, f.type) for f in SCHEMA)


def column(expand: Expand) -> tuple[tuple[str, Expr], ...]:
    return tuple((name, ref(name, kind)) for name, kind in expand.added)


def run(step: Map, rows: pa.RecordBatch = ROWS) -> list[tuple]:
    made = mapped(rows, (step,))
    made.validate(full=True)
    assert made.schema.remove_metadata() == (
        step.schema.append(pa.field(WEIGHT, pa.int64())) if WEIGHT in rows.schema.names else step.schema
    )
    return [tuple(row.values()) for row in made.to_pylist()]


def test_columns_and_filter():
    two = call(pc.multiply, (ID, constant(pa.scalar(2, t.INT), "2")), t.INT, "id * 2")
    step = Map(compare(">", ID, constant(pa.scalar(1, t.INT), "1")), (), (("d", two), ("id", ID)))
    assert run(step) == [(4, 2), (6, 3), (8, 4)]  # NULL > 1 is NULL, which is not true


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("position", [False, True])
def test_explode(outer: bool, position: bool):
    expand = Expand(TAGS, ("pos", "tag")[not position :], outer, position)
    expected = []
    for row in ROWS.to_pylist():
        made = list(enumerate(row["tags"] or [])) or ([(None, None)] if outer else [])
        expected += [(row["id"], *pair[not position :]) for pair in made]
    assert run(Map(None, (expand,), (("id", ID), *column(expand)))) == expected


def test_inline_of_a_null_struct_is_a_row_of_nulls():
    expand = Expand(ITEMS, ("name", "n"), False, False)
    assert run(Map(None, (expand,), (("id", ID), *column(expand)))) == [
        (1, "p", 1),
        (1, None, None),
        (3, None, 3),
        (None, "q", None),
    ]


def test_one_name_is_the_struct_itself():
    expand = Expand(ITEMS, ("item",), False, False)
    assert run(Map(None, (expand,), column(expand)))[0] == ({"name": "p", "n": 1},)


@pytest.mark.parametrize("outer", [False, True])
def test_a_map_gives_its_keys_and_values(outer: bool):
    expand = Expand(PAIRS, ("pos", "k", "v"), outer, True)
    none = [(2, None, None, None)] if outer else []
    four = [(4, None, None, None)] if outer else []
    expected = [(1, 0, "k", 1), *none, (3, 0, "l", None), (3, 1, "m", 2), *four, (None, 0, "o", 5)]
    assert run(Map(None, (expand,), (("id", ID), *column(expand)))) == expected


def test_expands_multiply_and_the_later_reads_the_earlier():
    letters = Expand(TAGS, ("tag",), False, False)
    twice = Expand(
        call(pc.list_slice, (TAGS,), pa.list_(pa.string()), "tags[0:1]", 0, 1), ("again",), False, False
    )
    assert run(Map(None, (letters, twice), (*column(letters), *column(twice)))) == [
        ("a", "a"), ("b", "a"), (None, None), ("c", "c"),
    ]  # fmt: skip


@pytest.mark.parametrize("of", ["id", "tag"])
def test_the_filter_sees_what_is_added(of: str):
    tags = Expand(TAGS, ("tag",), True, False)
    condition = (
        compare("=", ID, constant(pa.scalar(1, t.INT), "1"))
        if of == "id"
        else compare("=", ref("tag", t.STRING), constant(pa.scalar("b"), "'b'"))
    )
    expected = [(1, "a"), (1, "b")] if of == "id" else [(1, "b")]
    assert run(Map(condition, (tags,), (("id", ID), *column(tags)))) == expected


def test_a_name_that_is_added_hides_the_list():
    tags = Expand(TAGS, ("tags",), False, False)
    assert run(Map(None, (tags,), (("tags", ref("tags", t.STRING)),))) == [("a",), ("b",), (None,), ("c",)]


def test_weights_stay_with_their_rows():
    rows = ROWS.append_column(WEIGHT, pa.array([1, -1, 2, -3, 4], pa.int64()))
    tags = Expand(TAGS, ("tag",), False, False)
    step = Map(compare("<>", ID, constant(pa.scalar(9, t.INT), "9")), (tags,), column(tags))
    assert run(step, rows) == [("a", 1), ("b", 1), (None, -3)]
    assert run(replace(step, columns=()), rows) == [(1,), (1,), (-3,)]


def test_without_columns_rows_are_counted():
    made = mapped(ROWS, (Map(None, (Expand(TAGS, ("tag",), False, False),), ()),))
    assert made.num_rows == 4


def test_maps_run_one_after_the_other():
    tags = Expand(TAGS, ("tag",), False, False)
    first = Map(None, (tags,), (("x", ref("tag", t.STRING)),))
    second = Map(
        compare("=", ref("x", t.STRING), constant(pa.scalar("c"), "'c'")), (), (("y", ref("x", t.STRING)),)
    )
    assert mapped(ROWS, (first, second)).to_pylist() == [{"y": "c"}]
    assert mapped(ROWS, ()) is ROWS
    assert mapped(ROWS.slice(0, 0), (first, second)).num_rows == 0
