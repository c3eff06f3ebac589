"""Parses a Spark DDL string to an Arrow schema: the one Spark itself would use in a UTC session.

    parse("id BIGINT NOT NULL, at TIMESTAMP, tags ARRAY<STRING>")
        == pa.schema([
            ("id", int64, not null), ("at", timestamp("us", "UTC")), ("tags", list<element: string>)
        ])

Law: parse(to_ddl(schema)) == schema for every schema that `parse` returns.

It is a small recursive descent parser: SQL parsers take an unknown type for a user-defined one and lose the
column at fault, and commands that only read a spec should start at once.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from joinlib.spec.nearest import hint

SIMPLE: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
}
SYNONYMS = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "CHARACTER": "CHAR",
}
NAMES = (*SIMPLE, *SYNONYMS, "DECIMAL", "CHAR", "VARCHAR", "ARRAY", "MAP", "STRUCT")
MAX_PRECISION = 38
DEEPEST = 32  # levels of a type
_TOKEN = re.compile(
    r"\s*(?:(?P<word>\w+)|`(?P<quoted>(?:[^`]|``)+)`|(?P<text>'(?:[^'\\]|\\.)*')|(?P<sign>[<>(),:]))"
)


def parse(ddl: str) -> pa.Schema:
    """Return the Arrow schema of a string such as "a BIGINT, b STRING".

    Raises:
        ValueError: with the column at fault and the nearest type.
    """
    reader = _Reader(list(_tokens(ddl)))
    fields = list(reader.fields(end=""))
    _refuse_doubles([field.name for field in fields])
    return pa.schema(fields)


def to_ddl(schema: pa.Schema) -> str:
    """Return the DDL string of a schema made of Spark's types.

    Raises:
        ValueError: if Spark has no such type.
    """
    return ", ".join(_field_ddl(field, " ") for field in schema)


@dataclass(frozen=True)
class _Token:
    text: str
    kind: str  # a group of _TOKEN, or "end"


_END = _Token("", "end")


def _tokens(ddl: str) -> Iterator[_Token]:
    position, end = 0, len(ddl.rstrip())
    while position < end:
        match = _TOKEN.match(ddl, position)
        if match is None:
            msg = (
                f"cannot read the schema at {ddl[position:].strip()[:20]!r}; write it as name TYPE, name TYPE"
            )
            raise ValueError(msg)
        position = match.end()
        kind = match.lastgroup or ""
        yield _Token(match[kind].replace("``", "`") if kind == "quoted" else match[kind], kind)


@dataclass
class _Reader:
    """A cursor over the tokens. Every method reads one rule of the grammar and advances past it."""

    tokens: list[_Token]
    position: int = 0
    column: str = ""  # the column being read, for errors
    depth: int = 0  # of the type being read

    def fields(self, end: str) -> Iterator[pa.Field]:
        """Read name [:] type [NOT NULL] [COMMENT 'text'], ... up to `end`."""
        while True:
            yield self.field()
            if self.peek().text == end:
                return
            self.expect(",", f"write a comma before {self.peek().text!r}")

    def field(self) -> pa.Field:
        token = self.take()
        if token.kind not in ("word", "quoted"):
            self.fail(
                f"expected a column name, found {token.text or 'the end'!r}; write name TYPE, name TYPE"
            )
        outer, self.column = self.column, f"{self.column}.{token.text}" if self.column else token.text
        self.accept(":")
        type_ = self.type()
        nullable = not self.accept("NOT")
        if not nullable:
            self.expect("NULL", "write NOT NULL")
        if self.accept("COMMENT") and self.take().kind != "text":
            self.fail("write COMMENT 'text'")
        self.column = outer
        return pa.field(token.text, type_, nullable)

    def type(self) -> pa.DataType:
        token = self.take()
        if token.kind != "word":
            self.fail(f"has no type; write {self.column} STRING, for example")
        name = SYNONYMS.get(token.text.upper(), token.text.upper())
        if name in SIMPLE:
            return SIMPLE[name]
        nested: dict[str, Callable[[], pa.DataType]] = {
            "DECIMAL": self.decimal,
            "CHAR": self.text,
            "VARCHAR": self.text,
            "ARRAY": self.array,
            "MAP": self.map,
            "STRUCT": self.struct,
        }
        if name not in nested:
            self.fail(f"unknown type {token.text!r}; {hint(name, NAMES, 'types')}")
        if self.depth == DEEPEST:
            self.fail(f"its type is nested too deeply; write at most {DEEPEST} levels")
        self.depth += 1
        found = nested[name]()
        self.depth -= 1
        return found

    def decimal(self) -> pa.DataType:
        if not self.accept("("):
            return pa.decimal128(10, 0)
        precision = self.number()
        scale = self.number() if self.accept(",") else 0
        self.expect(")", "write DECIMAL(precision, scale)")
        if not 1 <= precision <= MAX_PRECISION or scale > precision:
            self.fail(
                f"DECIMAL({precision}, {scale}): precision is 1 to {MAX_PRECISION} and scale at most"
                " precision"
            )
        return pa.decimal128(precision, scale)

    def text(self) -> pa.DataType:
        self.expect("(", "write the length, such as VARCHAR(20), or STRING")
        self.number()
        self.expect(")", "write the length, such as VARCHAR(20), or STRING")
        return pa.string()

    def array(self) -> pa.DataType:
        self.expect("<", "write ARRAY<TYPE>")
        element = self.type()
        self.expect(">", "write ARRAY<TYPE>")
        return pa.list_(pa.field("element", element))

    def map(self) -> pa.DataType:
        self.expect("<", "write MAP<KEY TYPE, VALUE TYPE>")
        key = self.type()
        self.expect(",", "write MAP<KEY TYPE, VALUE TYPE>")
        value = self.type()
        self.expect(">", "write MAP<KEY TYPE, VALUE TYPE>")
        return pa.map_(key, pa.field("value", value))

    def struct(self) -> pa.DataType:
        self.expect("<", "write STRUCT<name: TYPE, ...>")
        fields = list(self.fields(end=">"))
        self.expect(">", "write STRUCT<name: TYPE, ...>")
        return pa.struct(fields)

    def number(self) -> int:
        token = self.take()
        if not token.text.isdecimal():
            self.fail(f"expected a number, found {token.text or 'the end'!r}")
        return int(token.text)

    def peek(self) -> _Token:
        return self.tokens[self.position] if self.position < len(self.tokens) else _END

    def take(self) -> _Token:
        token = self.peek()
        self.position += 1
        return token

    def accept(self, text: str) -> bool:
        token = self.peek()
        if token.kind not in ("word", "sign") or token.text.upper() != text:
            return False
        self.position += 1
        return True

    def expect(self, text: str, fix: str) -> None:
        if not self.accept(text):
            self.fail(fix)

    def fail(self, message: str) -> NoReturn:
        raise ValueError(f"column {self.column!r}: {message}" if self.column else message)


def _refuse_doubles(names: list[str]) -> None:
    """Reject names that differ only in case, since Spark SQL does not distinguish `a` from `A`."""
    doubles = [name for name, count in Counter(name.lower() for name in names).items() if count > 1]
    if doubles:
        msg = f"column {doubles[0]!r} appears twice (upper and lower case are the same); rename one"
        raise ValueError(msg)


def _field_ddl(field: pa.Field, separator: str) -> str:
    name = (
        field.name
        if re.fullmatch(r"[A-Za-z_]\w*", field.name, re.ASCII)
        else "`" + field.name.replace("`", "``") + "`"
    )
    return f"{name}{separator}{_type_ddl(field.type)}{'' if field.nullable else ' NOT NULL'}"


def _type_ddl(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if pa.types.is_list(type_):
        return f"ARRAY<{_type_ddl(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"MAP<{_type_ddl(type_.key_type)}, {_type_ddl(type_.item_type)}>"
    if pa.types.is_struct(type_):
        return f"STRUCT<{', '.join(_field_ddl(field, ': ') for field in type_)}>"
    for name, simple in SIMPLE.items():
        if simple == type_:
            return name
    msg = f"Spark has no type for Arrow's {type_}; cast the column to one of {', '.join(SIMPLE)}"
    raise ValueError(msg)
