"""The rows that came out last, for the page. Only where a spec asks for them: the page tells all who may see it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from joinlib.direct.report import Report

_LONGEST = 200  # characters of a value


@dataclass(frozen=True)
class LastRows:
    """Some rows of the last batch in which an output had any."""

    batch: int
    of: int  # so many there were
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


def latest(before: Mapping[str, LastRows], report: "Report", rows: int) -> Mapping[str, LastRows]:
    """Return the last rows of each output after a batch, `rows` of each; 0 keeps none."""
    if not rows:
        return before
    new = {
        name: LastRows(report.batch, sample.of, *_texts(sample.rows.slice(0, rows)))
        for name, sample in report.samples.items()
        if sample.rows.num_rows
    }
    return {**before, **new}


def _texts(rows: pa.Table) -> tuple[tuple[str, ...], tuple[tuple[str | None, ...], ...]]:
    columns = [[_text(value) for value in column] for column in rows.columns]
    return tuple(rows.column_names), tuple(zip(*columns, strict=True))


def _text(value: pa.Scalar) -> str | None:
    if not value.is_valid:
        return None
    try:
        text = str(value.as_py())
    except (ValueError, OverflowError):  # a moment that Python has no value for
        text = f"a {value.type} that cannot be shown"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
