"""Rows of YAML as columns of their declared types. Law: a value is taken exactly, or refused at its line."""

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from joinlib.expr.types import name as type_name
from joinlib.source.parse import timed
from joinlib.spec.cases import CaseFile, CaseRow, CaseRows
from joinlib.spec.document import Place
from joinlib.spec.nearest import hint

Value = Any


def table(rows: CaseRows, schema: pa.Schema, file: CaseFile, at: Place) -> pa.Table:
    """Return the rows as a table of this schema; a column that a row does not name is NULL.

    Raises:
        SpecError: A row names another column, or a value is of another type.
    """
    columns: dict[str, list[Value]] = {name: [] for name in schema.names}
    for number, row in enumerate(rows):
        known = values(row, schema, file, (*at, number))
        for field in schema:
            columns[field.name].append(known.get(field.name))
            if known.get(field.name) is None and not field.nullable:
                raise file.mistake((*at, number), f"{field.name} is declared NOT NULL; give it a value")
    return pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)


def values(row: CaseRow, schema: pa.Schema, file: CaseFile, at: Place) -> Mapping[str, Value]:
    """Return the values of a row as Arrow gives them back.

    Raises:
        SpecError: It names a column that is not in the schema, or a value is of another type.
    """
    found = {}
    for name, value in row.items():
        if name not in schema.names:
            near = hint(str(name), schema.names, "columns")
            raise file.mistake((*at, name), f"there is no such column; {near}")
        kind = schema.field(name).type
        try:
            found[name] = pa.array([_fitted(value, kind)], kind)[0].as_py()
        except (pa.ArrowException, ValueError, TypeError, ArithmeticError):
            example = f", such as {_EXAMPLES[type_name(kind)]}" if type_name(kind) in _EXAMPLES else ""
            said = f"{value!r} is no {type_name(kind)}; write one{example}"
            raise file.mistake((*at, name), said) from None
    return found


def _fitted(value: Value, kind: pa.DataType) -> Value:
    """Return the value as pyarrow takes it, which refuses most of what does not fit: it rounds, and a truth value is 1."""
    if value is None:
        return None
    if isinstance(value, bool) != pt.is_boolean(kind) and not pt.is_nested(kind):
        raise TypeError
    if pt.is_integer(kind):
        return _of(value, int)
    if pt.is_decimal(kind):
        return Decimal(str(value))
    if pt.is_timestamp(kind) or pt.is_date(kind):
        return _time(value, kind)
    if pt.is_list(kind):
        return [_fitted(v, kind.value_type) for v in _of(value, list)]
    if pt.is_map(kind):
        pairs = _of(value, dict).items()
        return [(_fitted(k, kind.key_type), _fitted(v, kind.item_type)) for k, v in pairs]
    if pt.is_struct(kind):
        if set(_of(value, dict)) - {field.name for field in kind}:
            raise TypeError
        return {field.name: _fitted(value.get(field.name), field.type) for field in kind}
    return value


def _of(value: Value, kind: type) -> Value:
    if not isinstance(value, kind):
        raise TypeError
    return value


def _time(value: Value, kind: pa.DataType) -> Value:
    """Return a time: YAML reads times that are not in quotes; texts are read as those of files are."""
    if isinstance(value, str):
        return timed(pa.chunked_array([[value]], pa.string()), kind)[0].as_py()
    if pt.is_date(kind) and isinstance(value, dt.datetime):
        raise TypeError
    if pt.is_timestamp(kind) and not isinstance(value, dt.datetime):
        value = dt.datetime.combine(_of(value, dt.date), dt.time())
    if pt.is_timestamp(kind) and kind.tz is None and value.tzinfo is not None:
        raise TypeError  # TIMESTAMP_NTZ has no zone
    return value


_EXAMPLES = {
    "BIGINT": "42",
    "INT": "42",
    "DOUBLE": "1.5",
    "STRING": "'text' in quotes",
    "BOOLEAN": "true",
    "DATE": "2026-01-31",
    "TIMESTAMP": "2026-01-31T10:00:00Z",
    "TIMESTAMP_NTZ": "2026-01-31T10:00:00",
    "ARRAY": "[1, 2]",
}


def named(rows: CaseRows, schema: pa.Schema, file: CaseFile, at: Place) -> tuple[str, ...]:
    """Return the columns that expected rows name: these are compared, so that each row names all of them.

    Raises:
        SpecError: One leaves out what another names.
    """
    first: Sequence[str] = tuple(rows[0]) if rows else schema.names
    for number, row in enumerate(rows):
        if missing := [name for name in first if name not in row]:
            said = (
                f"leaves out {missing[0]}, which the first row names; write {missing[0]}: null, or what it is"
            )
            raise file.mistake((*at, number), said)
        if more := [name for name in row if name not in first]:
            said = f"names {more[0]}, which the first row does not; add it there, or remove it here"
            raise file.mistake((*at, number), said)
    return tuple(first)
