"""Cuts and reads text files (CSV, JSON lines).

A slice is a range of bytes, about 4 MiB, that ends with a line.

The text is UTF-8. A CSV file begins with a header unless configured otherwise, and its values hold no line
breaks: a quote that is still open at the end of a line is refused, because a cut could fall inside it. An
empty CSV value without quotes is NULL, as is a field that a JSON object does not have. Timestamps without a
zone are UTC. Cutting reads only the first 64 KiB and the bytes around the cuts.
"""

import csv as csv_module
import mmap
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from joinlib.errors import InputError
from joinlib.source.fit import check_names, fitted
from joinlib.source.fresh import Unreadable, check_fresh
from joinlib.source.parse import PARSE_ERRORS, CsvFormat, csv_table, first_bad_line, json_table
from joinlib.source.slices import BATCH_ROWS, FileRange, Slice

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
            check_names(str(path), _names(header, csv), schema)
            start = len(header)
        row_bytes = max(1, len(sample) // max(1, sample.count(b"\n")))
        cuts = list(_cuts(text, start, slice_bytes))
    return [FileRange(0, a, b, max(1, (b - a) // row_bytes)) for a, b in pairwise(cuts)]


def read_many(
    slices: Sequence[Slice], columns: Sequence[str], schema: pa.Schema, csv: CsvFormat | None
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of slices in order, each batch with its place."""
    want = pa.schema([schema.field(c) for c in columns])
    for slice in slices:
        check_fresh(slice)
        table = _table(slice, want if columns else schema, schema, csv)
        place = f"{slice.path}, rows from byte {slice.start}"
        for batch in table.combine_chunks().to_batches(BATCH_ROWS):
            yield place, fitted(place, batch, want)


def _cuts(text: mmap.mmap, start: int, slice_bytes: int) -> Iterator[int]:
    """Yield both ends and positions right after a line break, at least `slice_bytes` apart."""
    yield start
    while start < len(text):
        found = text.find(b"\n", start + slice_bytes - 1)
        start = found + 1 if found >= 0 else len(text)
        yield start


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


def _table(slice: Slice, want: pa.Schema, schema: pa.Schema, csv: CsvFormat | None) -> pa.Table:
    with Path(slice.path).open("rb") as file:
        names = _names(file.readline(), csv) if csv and csv.header else schema.names
        file.seek(slice.start)
        text = file.read(slice.stop - slice.start)
    if csv:
        _check_quotes(slice, text, csv.quote.encode())

    def parse(text: bytes, want: pa.Schema) -> pa.Table:
        return csv_table(text, want, names, csv) if csv else json_table(text, want)

    try:
        return parse(text, want)
    except PARSE_ERRORS:
        number, reason = first_bad_line(parse, text, want)
        # without the cause, which would hold a row's values
        raise InputError(
            f"{_line(slice, number)}: {reason}; correct the file and write it under a new name"
        ) from None


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
