"""Functions of JSON, one row at a time. Law: Spark's; text that is no JSON gives NULL, or fields that are NULL."""

import base64
import json
import re
from functools import lru_cache
from typing import Any

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr import signatures as s
from joinlib.expr import types as t
from joinlib.expr.formats import written
from joinlib.expr.nodes import Literal
from joinlib.expr.signatures import Signature, row, row_call
from joinlib.expr.text_values import java_float, read_text, write_text
from joinlib.spec import ddl


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


_NONE = object()
_STEP = re.compile(r"\.([^.\[\]*]+)|\.(\*)|\[(\d+)\]|\[(\*)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")


def _parsed(text: str) -> Any:
    """Return the value of a text: numbers as they are written; _NONE for no JSON."""
    try:
        return json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_refused, strict=False)
    except (ValueError, RecursionError):
        return _NONE


def _refused(word: str) -> Any:
    raise ValueError(word)


@lru_cache(maxsize=1000)
def _steps(path: str) -> tuple[str | int | None, ...] | None:
    """Read a path: names, numbers, and None for all; None if it is none."""
    if not path.startswith("$"):
        return None
    found, at = list[str | int | None](), 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        name, every, number, all_, quoted, doubly = step.groups()
        text = next((x for x in (name, quoted, doubly) if x is not None), None)
        found.append(int(number) if number else None if every or all_ else text)
        at = step.end()
    return tuple(found)


def get_json_object(text: str, path: str) -> str | None:
    steps, value = _steps(path), _parsed(text)
    if steps is None or value is _NONE:
        return None
    found = _found(value, steps)
    if not found or (found[0] is None and steps):
        return None
    if None in steps and len(found) > 1:
        return _json(found)
    plain = isinstance(found[0], str) and not isinstance(found[0], _Number) and None not in steps
    return found[0] if plain else _json(found[0])


def _found(value: Any, steps: tuple[str | int | None, ...]) -> list[Any]:
    found = [value]
    for step in steps:
        if step is None:
            found = [x for v in found if isinstance(v, list) for x in v]
        elif isinstance(step, int):
            found = [v[step] for v in found if isinstance(v, list) and step < len(v)]
        else:
            inner = [x for v in found for x in (v if isinstance(v, list) and None in steps else [v])]
            found = [v[step] for v in inner if isinstance(v, dict) and step in v]
    return found


def _json(value: Any) -> str:
    if isinstance(value, _Number):
        return java_float(float(value)) if set(value) & set(".eE") else str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_string(k)}:{_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return _string(value) if isinstance(value, str) else json.dumps(value)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def array_length(text: str) -> int | None:
    value = _parsed(text)
    return len(value) if isinstance(value, list) else None


def object_keys(text: str) -> list[str] | None:
    value = _parsed(text)
    return list(value) if isinstance(value, dict) else None


def from_json(text: str, kind: pa.DataType) -> Any:
    """Read a value of a type; NULL, or a STRUCT of NULLs, for what is none."""
    value = _parsed(text) if text.strip() else _NONE
    if t.is_struct(kind):
        if isinstance(value, list) and value:
            value = value[0] if len(value) == 1 else _NONE
        if text.strip() and not isinstance(value, dict):
            return dict.fromkeys(f.name for f in kind)
        return _fields(value, kind) if isinstance(value, dict) else None
    if pa.types.is_list(kind) and isinstance(value, dict) and t.is_struct(kind.value_type):
        value = [value]
    try:
        return None if value is _NONE else _typed(value, kind)
    except ValueError:
        return None


def _fields(value: dict[str, Any], kind: pa.DataType) -> dict[str, Any]:
    found = {}
    for field in kind:
        try:
            found[field.name] = _typed(value.get(field.name), field.type)
        except ValueError:
            found[field.name] = None
    return found


def _typed(value: Any, kind: pa.DataType) -> Any:
    """Return a value of JSON as a plain value of a type.

    Raises:
        ValueError: if it is of another kind.
    """
    if value is None:
        return None
    if t.is_string(kind):
        return str(value) if isinstance(value, str) and not isinstance(value, _Number) else _json(value)
    if t.is_struct(kind) and isinstance(value, dict):
        return _fields(value, kind)
    if pa.types.is_list(kind) and isinstance(value, list):
        return [_typed(x, kind.value_type) for x in value]
    if pa.types.is_map(kind) and isinstance(value, dict):
        return [(k, _typed(v, kind.item_type)) for k, v in value.items()]
    if t.is_nested(kind) or isinstance(value, dict | list):
        raise ValueError(value)
    return _scalar(value, kind)


def _scalar(value: Any, kind: pa.DataType) -> Any:
    if kind == t.BOOLEAN:
        if isinstance(value, bool):
            return value
        raise ValueError(value)
    if isinstance(value, bool):
        raise ValueError(value)  # noqa: TRY004 - of the text, not of the program
    if kind == t.BINARY:
        return base64.b64decode(value)
    if t.is_number(kind) and not isinstance(value, _Number):
        if not (
            t.is_float(kind) and value in ("NaN", "Infinity", "-Infinity", "+Infinity", "INF", "+INF", "-INF")
        ):
            raise ValueError(value)
        return float(value)
    found = read_text(str(value), kind)
    if found is None:
        raise ValueError(value)
    return found


def to_json(value: Any, kinds: tuple[pa.DataType, ...]) -> str:
    return _text(value, kinds[0])


def _text(value: Any, kind: pa.DataType) -> str:
    if value is None:
        return "null"
    if t.is_struct(kind):
        parts = [
            f"{_string(f.name)}:{_text(value[f.name], f.type)}" for f in kind if value[f.name] is not None
        ]
        return "{" + ",".join(parts) + "}"
    if pa.types.is_map(kind):
        parts = [f"{_string(write_text(k, kind.key_type))}:{_text(v, kind.item_type)}" for k, v in value]
        return "{" + ",".join(parts) + "}"
    if pa.types.is_list(kind):
        return "[" + ",".join(_text(v, kind.value_type) for v in value) + "]"
    if t.is_timestamp(kind):
        return f'"{written(value, _MOMENT if kind == t.TIMESTAMP else _LOCAL)}"'
    if kind == t.BINARY:
        return f'"{base64.b64encode(value).decode()}"'
    if t.is_float(kind):
        text = write_text(value, kind)
        return text if abs(value) < float("inf") else f'"{text}"'
    text = write_text(value, kind)
    return text if t.is_number(kind) or kind == t.BOOLEAN else _string(text)


_MOMENT, _LOCAL = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "yyyy-MM-dd'T'HH:mm:ss.SSS"


def schema(name: str, value: Expr) -> pa.DataType:
    """Read the type that a constant text names: 'a INT, b STRING', or 'ARRAY<INT>'.

    Raises:
        SpecError: if it cannot be read.
    """
    text = value.node.value.as_py() if isinstance(value.node, Literal) else None
    if not isinstance(text, str):
        raise SpecError(
            f"{name} takes the type as constant text, such as 'a INT, b STRING', not {value.excerpt}"
        )
    try:
        if re.match(r"(?i)\s*(array|map|struct)\s*<", text):
            return nullable(ddl.parse(f"value {text}").field(0).type)
        return nullable(pa.struct(list(ddl.parse(text))))
    except ValueError as error:
        raise SpecError(f"{name}: {error}") from error


def nullable(kind: pa.DataType) -> pa.DataType:
    """Return the type with fields that may be NULL."""
    if t.is_struct(kind):
        return pa.struct([pa.field(f.name, nullable(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(nullable(kind.key_type), nullable(kind.item_type))
    return pa.list_(nullable(kind.value_type)) if pa.types.is_list(kind) else kind


def read(value: Expr, kind: Expr) -> Expr:
    """Build from_json(text, type)."""
    found = schema("from_json", kind)
    made = row_call("from_json", from_json, found, [s.STRING("from_json", value)], more=(found,))
    return Expr(f"from_json({value.sql}, {kind.sql})", made.columns, made.type, made.node)


def _nested(name: str, value: Expr) -> Expr:
    if not t.is_nested(value.type):
        raise SpecError(f"{name} takes a STRUCT, MAP or ARRAY, {value.excerpt} is {t.name(value.type)}")
    return value


FUNCTIONS: dict[str, Signature] = {
    "get_json_object": row(get_json_object, t.STRING, s.STRING, s.STRING),
    "json_array_length": row(array_length, t.INT, s.STRING),
    "json_object_keys": row(object_keys, pa.list_(t.STRING), s.STRING),
    "to_json": row(to_json, t.STRING, _nested, kinds=True),
}
