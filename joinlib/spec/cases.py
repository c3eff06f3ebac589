"""The cases of a spec: rows that arrive, and the results that are expected then. The file beside `orders.yaml` is
`orders.test.yaml`.

    cases:
    - name: paid in time
      batches:
      - rows: {orders: [{id: 1}], payments: [{id: 1, paid: 5}]}
        expect: [{id: 1, paid: 5}]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from joinlib.errors import SpecError
from joinlib.spec.base import Duration, Model, Problem, refuse
from joinlib.spec.document import Document, Place
from joinlib.spec.load import document_of, report, text_of, validated

CaseRow = dict[str, Any]
CaseRows = tuple[CaseRow, ...]


def _rows(given: object) -> CaseRows:
    if not isinstance(given, list) or not all(isinstance(row, dict) for row in given):
        msg = "is no list of rows; write [{column: value, ...}, ...], or [] for none"
        raise ValueError(msg)
    return tuple(given)


def _expected(given: object) -> Mapping[str, CaseRows]:
    """Return the rows by output; of the only one, they are written without its name."""
    if not isinstance(given, dict):
        return {"": _rows(given)}
    found = {}
    for name, rows in given.items():
        try:
            found[str(name)] = _rows(rows)
        except ValueError as error:
            msg = f"{name} {error}"
            raise ValueError(msg) from None
    return found


_ROWS = {"type": "array", "items": {"type": "object"}}
Arriving = Annotated[CaseRows, BeforeValidator(_rows), WithJsonSchema(_ROWS)]
Expected = Annotated[
    Mapping[str, CaseRows],
    BeforeValidator(_expected),
    WithJsonSchema(
        {"description": "A list of rows; where there are several outputs, one for each, by name."}
    ),
]


def _said(name: str) -> str:
    if not name.strip():
        msg = "is empty; write what the case shows"
        raise ValueError(msg)
    return name


class CaseBatch(Model):
    """What arrives together, and what the result is after it."""

    at_us: Duration | None = Field(
        default=None,
        alias="at",
        description="When it arrives, from the beginning of the case on: by it an input becomes idle. Absent: at once.",
    )
    rows: dict[str, Arriving] = Field(
        default_factory=dict,
        description="Rows by input. A column that a row does not name is NULL. Rows of a table are all in the first"
        " batch.",
    )
    expect: Expected | None = Field(
        default=None,
        description="What the result is after this batch: all rows that are there, in any order.",
    )


class SpecCase(Model):
    """A story of a few rows."""

    name: Annotated[str, AfterValidator(_said)] = Field(
        description="What the case shows; tests are chosen by it."
    )
    batches: tuple[CaseBatch, ...] = Field(min_length=1, description="What arrives, batch after batch.")
    expect: Expected | None = Field(
        default=None,
        description="What the result is once the inputs have ended behind the last batch, as with run --until-done.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        times = [batch.at_us for batch in self.batches if batch.at_us is not None]
        if times != sorted(times):
            refuse([Problem(("batches",), "arrive in another order than they stand; sort them by `at`")])
        if self.expect is None and all(batch.expect is None for batch in self.batches):
            refuse([Problem((), "expects nothing; add expect to it, or to a batch")])
        return self


class Cases(Model):
    """The cases of a spec."""

    cases: tuple[SpecCase, ...] = Field(
        min_length=1, description="The cases, each of which is run by itself."
    )

    @model_validator(mode="after")
    def _named(self) -> Self:
        seen: dict[str, int] = {}
        for number, case in enumerate(self.cases):
            if case.name in seen:
                said = f"is the name of case {seen[case.name] + 1} too; choose another"
                refuse([Problem(("cases", number, "name"), said)])
            seen[case.name] = number
        return self


class CaseMistake(SpecError):
    """A case asks for what its spec does not have."""


@dataclass(frozen=True)
class CaseFile:
    """Cases with the places where they are written."""

    path: Path
    cases: tuple[SpecCase, ...]
    document: Document

    def told(self, place: Place, message: str) -> str:
        """Return a message at the line of a place."""
        return f"{self.path}:{self.document.line(place)}: {message}"

    def mistake(self, place: Place, message: str) -> CaseMistake:
        """Return the error that names a mistake at its line, with its field."""
        return CaseMistake(report(str(self.path), self.document.line(place), Problem(place, message)))


def load_cases(path: Path) -> CaseFile:
    """Load a file of cases.

    Raises:
        SpecError: with all problems, one a line, as FILE:LINE: field: what.
    """
    document = document_of(text_of(path), str(path), "a file of cases; start with `cases:`")
    model = validated(Cases, document, str(path), path.absolute().parent)
    return CaseFile(path, model.cases, document)


def cases_beside(spec: Path) -> Path:
    """Return the name of the file of cases that belongs to a spec file: NAME.test.yaml of NAME.yaml."""
    return spec.with_name(f"{spec.stem}.test.yaml")
