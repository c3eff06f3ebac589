"""Parses an Avro schema: JSON becomes types. Names are resolved, defaults stay JSON.

A type that holds itself has no columns; it is kept by its name, and refused where it is needed. Types that are
named again and again are counted wherever they stand: twenty records, each with two of the one before it, would be
a million columns.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from joinlib.errors import InputError

PRIMITIVE = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NONE = object()  # the default of a field that has none
_RECURSIVE = "recursive"
_MOST_TYPES, _MOST_DEEP = 100_000, 100


@dataclass(frozen=True)
class AvroField:
    """A field of a record."""

    name: str
    type: "AvroType"
    aliases: tuple[str, ...] = ()
    default: Any = NONE  # as in JSON


@dataclass(frozen=True)
class AvroType:
    """A type. `kind` is the word of the specification, or recursive."""

    kind: str
    logical: str = ""
    name: str = ""
    fields: tuple[AvroField, ...] = ()  # of a record
    symbols: tuple[str, ...] = ()  # of an enum
    branches: tuple["AvroType", ...] = ()  # of a union
    of: "AvroType | None" = None  # the items of an array, the values of a map
    size: int = 0  # of a fixed
    precision: int = 0  # of a decimal
    scale: int = 0

    @property
    def nullable(self) -> bool:
        """Whether a value may be null."""
        return self.kind == "null" or any(b.kind == "null" for b in self.branches)

    @cached_property
    def types(self) -> int:
        """How many types it is made of, itself among them, each counted wherever it stands."""
        return 1 + sum(t.types for t in self._inner)

    @cached_property
    def depth(self) -> int:
        """How many types are within each other."""
        return 1 + max((t.depth for t in self._inner), default=0)

    @property
    def _inner(self) -> list["AvroType"]:
        return [*(f.type for f in self.fields), *self.branches, *([self.of] if self.of else ())]

    @property
    def words(self) -> str:
        """The type in a few words, for errors."""
        if self.branches:
            return f"a union of {' and '.join(b.words for b in self.branches)}"
        return " ".join(filter(None, (self.logical or self.kind, self.name)))


def parsed(texts: Sequence[str]) -> AvroType:
    """Return the type of the last of several schemas, each of which may name types of those before it.

    Raises:
        InputError: One is not a schema, or is too large.
    """
    reader = _SchemaReader()
    found = AvroType("null")
    try:
        for text in texts:
            found = _bounded(reader.type(json.loads(text), ""))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError("is not an Avro schema; have it registered anew by its producer") from None
    return found


def _bounded(type: AvroType) -> AvroType:
    if type.types > _MOST_TYPES or type.depth > _MOST_DEEP:
        raise InputError(
            f"has more than {_MOST_TYPES} fields where all its records are written out, or more than {_MOST_DEEP}"
            " types within each other; flatten the schema, or refer to fewer records"
        )
    return type


@dataclass
class _SchemaReader:
    """The types that have a name so far; None: is being read."""

    named: dict[str, AvroType | None] = field(default_factory=dict)

    def type(self, node: Any, space: str) -> AvroType:
        if isinstance(node, list):
            return AvroType("union", branches=tuple(self.type(n, space) for n in node))
        if isinstance(node, str):
            return AvroType(node) if node in PRIMITIVE else self._known(node, space)
        kind = node["type"]
        if isinstance(kind, (dict, list)):
            return self.type(kind, space)
        if kind in ("record", "error", "enum", "fixed"):
            return self._define(node, kind, space)
        if kind == "array":
            return AvroType("array", of=self.type(node["items"], space))
        if kind == "map":
            return AvroType("map", of=self.type(node["values"], space))
        return _logical(node, self.type(kind, space))

    def _known(self, name: str, space: str) -> AvroType:
        full = name if "." in name or not space else f"{space}.{name}"
        full = full if full in self.named else name
        return self.named[full] or AvroType(_RECURSIVE, name=full)

    def _define(self, node: Mapping[str, Any], kind: str, space: str) -> AvroType:
        name = str(node["name"])
        if "." not in name:
            space = str(node.get("namespace", space))
            name = f"{space}.{name}" if space else name
        space = name.rpartition(".")[0]
        self.named[name] = None
        found = AvroType(
            "record" if kind == "error" else kind,
            name=name,
            fields=tuple(self._field(f, space) for f in node.get("fields", ())),
            symbols=tuple(map(str, node.get("symbols", ()))),
            size=int(node.get("size", 0)),
        )
        self.named[name] = _logical(node, found)
        return self.named[name] or found

    def _field(self, node: Mapping[str, Any], space: str) -> AvroField:
        aliases = tuple(map(str, node.get("aliases", ())))
        return AvroField(
            str(node["name"]), self.type(node["type"], space), aliases, node.get("default", NONE)
        )


_LOGICAL = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
}


def _logical(node: Mapping[str, Any], type: AvroType) -> AvroType:
    """Return a type with its logical type. One that is unknown or does not fit is ignored, as Avro has it."""
    logical = node.get("logicalType", "")
    if logical == "decimal" and type.kind in ("bytes", "fixed"):
        precision, scale = node.get("precision", 0), node.get("scale", 0)
        fits = 0 <= scale <= precision > 0
        return replace(type, logical=logical, precision=precision, scale=scale) if fits else type
    uuid = type.kind == "string" or (type.kind == "fixed" and type.size == 16)
    return (
        replace(type, logical=logical)
        if (uuid if logical == "uuid" else _LOGICAL.get(logical) == type.kind)
        else type
    )
