"""What a stage stores as rows of a table: which columns there are, what they are called, how long rows are kept."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa

from joinlib.expr import types as t
from joinlib.model.inputs import InputPlan
from joinlib.spec.duration import text as duration
from joinlib.state.manifest import Manifest

_COLUMN = re.compile(r"[\w$]+\.(\w+)")  # of one input


class Store(Protocol):
    """Rows of one kind that the units of a stage store."""

    @property
    def kept(self) -> str:
        """For how long."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""

    def mapped(self, folder: Path, manifest: Manifest) -> Iterator[pa.RecordBatch]:
        """Map the segments of a unit, all before this returns; give an iterator over their rows.

        A file that is mapped stays readable when a later batch has deleted it.

        Raises:
            StateError: A segment is missing or damaged.
        """


class NamedStore(NamedTuple):
    """A store, what its rows may be called, and the input of the spec that they are of (empty: none)."""

    name: str
    source: str
    store: Store


def names(wanted: Sequence[tuple[str, str]]) -> list[str]:
    """Return a name for each, as SQL tells names apart.

    wanted: of each a short name, and a longer one where another is called so. Those that are alike are numbered.
    """
    short = [name.lower() for name, _ in wanted]
    found: list[str] = []
    for brief, long in wanted:
        name = brief if short.count(brief.lower()) == 1 else long
        taken = {*map(str.lower, found), *(one for one in short if one != brief.lower())}
        numbered = (f"{name}_{number}" for number in count(2))
        found.append(next(one for one in chain([name], numbered) if one.lower() not in taken))
    return found


def column_of(text: str) -> str:
    """Return what a column is called that a text computes: a column of an input as there, else the text."""
    plain = _COLUMN.fullmatch(text)
    return plain[1] if plain else text.lstrip("$")


def readable(kind: pa.DataType) -> pa.DataType:
    """Return the type as which a query reads values of a type: an INTERVAL as its microseconds."""
    if kind in (t.INTERVAL, t.NULL):
        return pa.int64()
    if t.is_struct(kind):
        return pa.struct([field.with_type(readable(field.type)) for field in kind])
    if t.is_map(kind):
        return pa.map_(readable(kind.key_type), readable(kind.item_type))
    return pa.list_(readable(kind.value_type)) if t.is_list(kind) else kind


def name_of(given: InputPlan) -> tuple[str, str]:
    """Return what the rows of an input are called, and the input of the spec that they are of (empty: none)."""
    return (given.source, given.source) if given.upstream is None else (f"stage{given.upstream}", "")


def passed(what: str, behind_us: int) -> str:
    """Say until when what goes by time is kept."""
    behind = f", {duration(behind_us)} behind," if behind_us else ""
    return f"until the watermark{behind} has passed {what}"
