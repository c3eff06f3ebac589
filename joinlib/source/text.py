"""Cuts and reads text files (CSV, JSON lines).

A slice is a range of bytes, about 4 MiB, that ends with a line.

The text is UTF-8. A CSV file begins with a header unless configured otherwise, and its values hold no line
breaks: a quote that is still open at the end of a line is refused, because a cut could fall inside it. An
empty CSV value without quotes is NULL, as is a field that a JSON object does not have. Timestamps without a
zone are UTC. Cutting reads only the first 64 KiB and the bytes around the cuts.
"""

import csv as csv_module
import mmap
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from joinlib.arrays import I64
from joinlib.errors import InputError
from joinlib.source.fit import Fit, check_names, fitted
from joinlib.source.fresh import Unreadable, check_fresh
from joinlib.source.parse import PARSE_ERRORS, CsvFormat, csv_table, first_bad_line, json_table, sound_lines
from joinlib.source.slices import BATCH_ROWS, FileRange, Refused, Slice

SLICE_BYTES = 4 << 20
_SAMPLE_BYTES = 64 << 10
_BOM = b"\xef\xbb\xbf"


def cut(path: Path, schema: pa.Schema, csv: CsvFormat | None, slice_bytes: int) -> list[FileRange]:
    """Cut the file into ranges, without the header line. Without `csv`, the file is JSON lines.

    Raises:
        Unreadable: The file is not UTF-8 text.
        InputError: The header lacks a declared column.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        sample = text[:_SAMPLE_BYTES]
        _check_utf8(sample)
        start = len(_BOM) if sample.startswith(_BOM) else 0
        if csv and csv.header:
            header = text.readline()
            _check_header(str(path), _names(header, csv), schema)
            start = len(header)
        row_bytes = max(1, len(sample) // max(1, sample.count(b"\n")))
        cuts = list(_cuts(text, start, slice_bytes))
    return [FileRange(0, a, b, max(1, (b - a) // row_bytes)) for a, b in pairwise(cuts)]


def read_many(
    slices: Sequence[Slice],
    columns: Sequence[str],
    schema: pa.Schema,
    csv: CsvFormat | None,
    fit: Fit = fitted,
    refused: list[Refused] | None = None,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of slices in order, each batch with its place.

    fit: makes rows of the declared types. refused: takes the lines that cannot be parsed; None: they are an error.
    """
    want = pa.schema([schema.field(c) for c in columns])
    for slice in slices:
        check_fresh(slice)
        table = _table(slice, want if columns else schema, schema, csv, refused)
        place = f"{slice.path}, rows from byte {slice.start}"
        for batch in table.combine_chunks().to_batches(BATCH_ROWS):
            yield place, fit(place, batch, want)


def numbers(slice: Slice, csv: CsvFormat | None, without: Collection[int]) -> I64:
    """Return the numbers in the file, from 1, of a slice's rows: of its lines that are not blank, but those `without`."""
    lines = _read(slice).split(b"\n")
    first = _before(slice, csv)
    found = (first + at for at, line in enumerate(lines, 1) if line.strip())
    return np.array([number for number in found if number not in without], np.int64)


def _cuts(text: mmap.mmap, start: int, slice_bytes: int) -> Iterator[int]:
    """Yield both ends and positions right after a line break, at least `slice_bytes` apart."""
    yield start
    while start < len(text):
        found = text.find(b"\n", start + slice_bytes - 1)
        start = found + 1 if found >= 0 else len(text)
        yield start


def _check_header(place: str, names: list[str], schema: pa.Schema) -> None:
    """Check that every declared column exists once; raise InputError otherwise.

    A line without any of the names may be a row, which no error quotes.
    """
    if len(schema) and not {n.casefold() for n in names} & {n.casefold() for n in schema.names}:
        raise InputError(
            f"{place}: no column '{schema.names[0]}', nor any other of the schema; the first line of a CSV"
            " file must have their names"
        )
    check_names(place, names, schema)


def _names(header: bytes, csv: CsvFormat) -> list[str]:
    line = header.decode("utf-8-sig").rstrip("\r\n")
    return next(csv_module.reader([line], delimiter=csv.delimiter, quotechar=csv.quote), [])


def _check_utf8(sample: bytes) -> None:
    try:
        sample.decode()
    except UnicodeDecodeError as e:
        # The sample may end inside a character.
        inside = len(sample) == _SAMPLE_BYTES and e.start >= len(sample) - 3
        if not inside:
            raise Unreadable(f"not UTF-8 text (byte {e.start}); is it compressed?") from e


def _table(
    slice: Slice, want: pa.Schema, schema: pa.Schema, csv: CsvFormat | None, refused: list[Refused] | None
) -> pa.Table:
    names, text = _named(slice, schema, csv), _read(slice)

    def parse(text: bytes, want: pa.Schema) -> pa.Table:
        return csv_table(text, want, names, csv) if csv else json_table(text, want)

    try:
        if csv:
            _check_quotes(slice, text, csv.quote.encode())
        return parse(text, want)
    except PARSE_ERRORS:
        if refused is None:
            number, reason = first_bad_line(parse, text, want)
            # without the cause, which would hold a row's values
            raise InputError(
                f"{_line(slice, number)}: {reason}; leave such rows out by onError: deadLetter of the input, or begin with a"
                " corrected file and a new checkpoint"
            ) from None
    except InputError:
        if refused is None:
            raise
    good, bad = sound_lines(parse, text, want, csv.quote.encode() if csv else b"")
    first = _before(slice, csv)
    refused += [Refused(slice.path, None, first + one.at + 1, one.reason, one.line) for one in bad]
    return parse(good, want)


def _named(slice: Slice, schema: pa.Schema, csv: CsvFormat | None) -> list[str]:
    """Return the names of the values in a line."""
    if not csv or not csv.header:
        return list(schema.names)
    with Path(slice.path).open("rb") as file:
        return _names(file.readline(), csv)


def _read(slice: Slice) -> bytes:
    with Path(slice.path).open("rb") as file:
        file.seek(slice.start)
        return file.read(slice.stop - slice.start)


def _before(slice: Slice, csv: CsvFormat | None) -> int:
    """Return the number of lines before a slice, without the header."""
    with Path(slice.path).open("rb") as file:
        return file.read(slice.start).count(b"\n") - (1 if csv and csv.header else 0)


def _check_quotes(slice: Slice, text: bytes, quote: bytes) -> None:
    """Check that no quote is open at the end of a line: the number of quotes before it is even."""
    if quote not in text:
        return
    raw = np.frombuffer(text, np.uint8)
    ends = np.append(np.flatnonzero(raw == ord("\n")), len(raw))
    odd = np.flatnonzero(np.searchsorted(np.flatnonzero(raw == ord(quote)), ends) % 2)
    if len(odd):
        raise InputError(
            f"{_line(slice, int(odd[0]))}: a quote is open at the end of the line; values of csv files"
            " cannot hold line breaks (use jsonl or parquet), and a quote inside a value is written twice"
        )


def _line(slice: Slice, number: int) -> str:
    """Return the file and line number (from 1) of the slice's line `number` (from 0)."""
    with Path(slice.path).open("rb") as file:
        before = file.read(slice.start).count(b"\n")
    return f"{slice.path}, line {before + number + 1}"
