"""Parses bytes of whole lines to a table of the wanted columns.

Raises pyarrow's errors, or UnicodeDecodeError.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.json as pjson
import pyarrow.types as pt

from joinlib.apart import failing
from joinlib.source.places import has_decimal, refused

PARSE_ERRORS = (pa.ArrowException, UnicodeDecodeError)
Parse = Callable[[bytes, pa.Schema], pa.Table]


@dataclass(frozen=True)
class CsvFormat:
    """How CSV lines become values, as the spec says it."""

    header: bool  # the first line names the columns; if False they are in the schema's order
    delimiter: str
    quote: str
    null: str  # the text that means NULL if it is not quoted


_OPEN = "a quote is open at the end of the line"
_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)$"  # after a time of day; a bare date ends in -dd too
_ZONED = r":\d\d(\.\d+)?\s*" + _ZONE


def csv_table(text: bytes, want: pa.Schema, names: Sequence[str], format: CsvFormat) -> pa.Table:
    """Parse CSV lines. `names` are the names of the values in a line, as in the header."""
    text.decode()
    if not text.strip(b"\r\n"):
        return want.empty_table()
    if has_decimal(want) and (large := refused(text)) is not None:
        csv_table(large, want, names, format)  # fails if the number is in a decimal
    table = pcsv.read_csv(
        pa.BufferReader(text),
        pcsv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=list(names)),
        pcsv.ParseOptions(delimiter=format.delimiter, quote_char=format.quote),
        pcsv.ConvertOptions(
            column_types=_plain(want),
            include_columns=want.names or names[:1],
            null_values=[format.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return _retimed(table, want)


def json_table(text: bytes, want: pa.Schema) -> pa.Table:
    """Parse JSON objects, one per line. A field that an object does not have is NULL."""
    text.decode()
    if not text.strip():
        return want.empty_table()
    if text.lstrip().startswith(b"null"):
        raise pa.ArrowInvalid("null where an object should be")  # it would crash pyarrow 26.0
    if has_decimal(want) and (large := refused(text)) is not None:
        json_table(large, want)  # fails if the number is in a decimal
    table = pjson.read_json(
        pa.BufferReader(text),
        pjson.ReadOptions(use_threads=False, block_size=len(text) + 1),
        pjson.ParseOptions(explicit_schema=_plain(want), unexpected_field_behavior="ignore"),
    )
    return _retimed(table, want)


def first_bad_line(parse: Parse, text: bytes, want: pa.Schema) -> tuple[int, str]:
    """Return the first line that cannot be parsed (counted from 0), and why.

    Found by halving, at the cost of about two parses.
    """
    lines = [line + b"\n" for line in text.split(b"\n")]
    good, bad = 0, len(lines)  # the first `good` lines parse, the first `bad` do not
    while bad - good > 1:
        middle = (good + bad) // 2
        if _fails(parse, b"".join(lines[good:middle]), want):
            bad = middle
        else:
            good = middle
    return good, reason(parse, lines[good], want)


class BadLine(NamedTuple):
    """A line that cannot be parsed."""

    at: int  # its number, from 0
    line: bytes
    reason: str


def sound_lines(parse: Parse, text: bytes, want: pa.Schema, quote: bytes) -> tuple[bytes, list[BadLine]]:
    """Return the lines that can be parsed, together, and the others. quote: one that is open at its end makes a line bad.

    Found by halving, at the cost of about two parses for each halving of each bad line.
    """
    lines = [line + b"\n" for line in text.removesuffix(b"\n").split(b"\n")]
    bad = {at: _OPEN for at, line in enumerate(lines) if quote and line.count(quote) % 2}
    whole = [at for at in range(len(lines)) if at not in bad]

    def all_of(start: int, stop: int) -> pa.Table:
        return parse(b"".join(lines[at] for at in whole[start:stop]), want)

    for one in failing(len(whole), all_of, PARSE_ERRORS):
        bad[whole[one.at]] = reason(parse, lines[whole[one.at]], want)
    found = [BadLine(at, lines[at].rstrip(b"\r\n"), why) for at, why in sorted(bad.items())]
    return b"".join(line for at, line in enumerate(lines) if at not in bad), found


def reason(parse: Parse, line: bytes, want: pa.Schema) -> str:
    """Return why a line does not parse, without its values."""
    if _fails(parse, line, pa.schema([])):
        return (
            "not UTF-8, or not a row of as many values as the header names (csv), or not one object (jsonl)"
        )
    for field in want:
        if _fails(parse, line, pa.schema([field])):
            return f"the value of column '{field.name}' does not fit {field.type}"
    return "the line cannot be parsed"


def _fails(parse: Parse, text: bytes, want: pa.Schema) -> bool:
    try:
        parse(text, want)
    except PARSE_ERRORS:
        return True
    return False


def _retimed(table: pa.Table, want: pa.Schema) -> pa.Table:
    """Parse the text columns that are declared as timestamps or dates."""
    for field in want:
        if _textual(field.type):
            index = table.schema.get_field_index(field.name)
            table = table.set_column(index, field.name, timed(table.column(index), field.type))
    return table


def _plain(want: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(f.name, pa.string() if _textual(f.type) else f.type) for f in want])


def _textual(type: pa.DataType) -> bool:
    return bool(pt.is_timestamp(type) or pt.is_date(type))


def timed(texts: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    """Parse texts as timestamps or dates. Where a timestamp has no zone, it is UTC."""
    if not pt.is_timestamp(type) or type.tz is None:
        return pc.cast(texts, type)
    zoned = pc.match_substring_regex(texts, _ZONED)
    local = pc.cast(pc.if_else(zoned, None, texts), pa.timestamp(type.unit))
    return pc.coalesce(pc.cast(local, type), pc.cast(pc.if_else(zoned, texts, None), type))
