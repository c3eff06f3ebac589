"""How a writer's schema is resolved to the reader's: names of types, names and aliases of fields, defaults, within other types too."""

import json
from typing import Any

import pytest

from joinlib.errors import InputError
from joinlib.source.avro.schema import parsed
from tests.unit.source.avro.test_rows import reader, record, written

CENTS = {"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]}


@pytest.mark.parametrize(
    ("name", "namespace", "inner", "inner_space", "called"),
    [
        ("Bill", "shop", "Money", None, "Money"),
        ("Bill", "shop", "Money", None, "shop.Money"),
        ("shop.Bill", None, "Money", None, "shop.Money"),
        ("shop.Bill", "other", "Money", None, "shop.Money"),
        ("Bill", "shop", "Money", "bank", "bank.Money"),
        ("Bill", "shop", "bank.Money", None, "bank.Money"),
        ("Bill", "shop", "Money", "", "Money"),
        ("Bill", None, "Money", None, "Money"),
    ],
)
def test_names_of_types(
    name: str, namespace: str | None, inner: str, inner_space: str | None, called: str
) -> None:
    """A name without a dot is one of the namespace around it, or of none."""
    spaces = {"namespace": namespace} if namespace is not None else {}
    money = {**CENTS, "name": inner, **({"namespace": inner_space} if inner_space is not None else {})}
    fields = [{"name": "first", "type": money}, {"name": "second", "type": called}]
    found = parsed([json.dumps({"type": "record", "name": name, **spaces, "fields": fields})])
    assert found.fields[0].type == found.fields[1].type
    fields[1]["type"] = f"{called}2"
    with pytest.raises(InputError, match="is not an Avro schema"):
        parsed([json.dumps({"type": "record", "name": name, **spaces, "fields": fields})])


@pytest.mark.parametrize(
    ("type", "logical"),
    [
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 5}, ""),
        ({"type": "bytes", "logicalType": "decimal", "precision": 0}, ""),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": -1}, ""),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, "decimal"),
        ({"type": "string", "logicalType": "date"}, ""),
        ({"type": "int", "logicalType": "timestamp-millis"}, ""),
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "fixed", "name": "U", "size": 15, "logicalType": "uuid"}, ""),
        ({"type": "string", "logicalType": "nobody's"}, ""),
    ],
)
def test_logical_types_that_do_not_fit_are_ignored(type: Any, logical: str) -> None:
    assert parsed([json.dumps(type)]).logical == logical


def within(kind: str, inner: Any) -> Any:
    """A type that holds another one."""
    match kind:
        case "array":
            return {"type": "array", "items": inner}
        case "map":
            return {"type": "map", "values": inner}
        case "union":
            return ["null", inner]
    return inner


def told(kind: str, value: Any) -> Any:
    return {"array": [value], "map": {"k": value}}.get(kind, value)


@pytest.mark.parametrize("kind", ["record", "union", "array", "map"])
def test_fields_of_inner_records(kind: str) -> None:
    """Aliases and defaults count there as well, and so do the places of fields."""
    old = {"type": "record", "name": "In", "fields": [{"name": "b", "type": "int"}, {"name": "a", "type": "string"}]}  # fmt: skip
    new = {
        "type": "record",
        "name": "In",
        "fields": [
            {"name": "a", "type": "string"},
            {"name": "c", "type": "long", "aliases": ["b"]},
            {"name": "d", "type": "string", "default": "none"},
            {"name": "e", "type": ["null", "int"], "default": None},
        ],
    }
    inner = "STRUCT<a: STRING, c: BIGINT, d: STRING, e: INT>"
    columns = {"array": f"x ARRAY<{inner}>", "map": f"x MAP<STRING, {inner}>"}.get(kind, f"x {inner}")
    rows = written(record(x=within(kind, old)), [{"x": told(kind, {"a": "z", "b": 3})}])
    (found,) = (
        reader(record(x=within(kind, old)), columns, record(x=within(kind, new))).table(rows).to_pylist()
    )
    want = {"a": "z", "c": 3, "d": "none", "e": None}
    assert found["x"] == ([("k", want)] if kind == "map" else told(kind, want))


def test_a_name_counts_before_an_alias() -> None:
    """The old field is there beside the new one, whose alias it is."""
    own = record(new="int")
    own["fields"][0]["aliases"] = ["old"]
    for names in (("old", "new"), ("new", "old")):
        schema = record(**dict.fromkeys(names, "int"))
        rows = written(schema, [{"old": 1, "new": 2}])
        assert reader(schema, "new INT", own).table(rows).to_pylist() == [{"new": 2}]


def test_what_is_in_a_null_is_null() -> None:
    """Columns of a struct that is NULL are filled, too: memory that nobody has written is not read."""
    schema = record(x=["null", record(y="string", z={"type": "array", "items": "int"}) | {"name": "In"}])
    column = reader(schema).table(written(schema, [{"x": None}, {"x": {"y": "a", "z": [1]}}])).column(0)
    struct = column.combine_chunks()
    struct.validate(full=True)
    assert [struct.field(at).to_pylist() for at in (0, 1)] == [[None, "a"], [None, [1]]]


@pytest.mark.parametrize(
    ("type", "default"),
    [
        ({"type": "fixed", "name": "F", "size": 2}, "abc"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"),
        ("int", "1"),
        ("int", True),
        ("long", 2**64),
        ("boolean", 1),
        ("double", True),
        ("string", 1),
        (["null", "int"], "x"),
        (record(a="int"), {}),
        ("null", 0),
    ],
)
def test_defaults_that_are_not_of_their_type(type: Any, default: Any) -> None:
    own = record(x=type)
    own["fields"][0]["default"] = default
    with pytest.raises(InputError, match="the default of field 'x' is not"):
        reader(record(y="int"), "x STRING", own)
