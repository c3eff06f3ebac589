"""Loads a StreamJoin from YAML: the model, or one SpecError with every mistake, each at its line.

    orders.yaml:7: spec.inputs.orders.eventTme: unknown field; did you mean 'eventTime'?

Relative paths in the file start at the file's folder, wherever the command runs.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from joinlib.deploy import KIND
from joinlib.errors import SpecError
from joinlib.spec.base import Model, Problem
from joinlib.spec.document import Document, DocumentError, Place
from joinlib.spec.duration import text as duration
from joinlib.spec.model import StreamJoin
from joinlib.spec.nearest import hint
from joinlib.spec.patterns import fix_of
from joinlib.spec.schema import describe, fields, is_duration, least

_UNQUOTED = ("bootstrapServers", "url", "secret", "key")  # beside the names that end in Env and File
_ZERO = "is zero; write 10s, 500ms or 2h30m"
Kind = TypeVar("Kind", bound=Model)


def load(path: str | Path) -> StreamJoin:
    """Load the StreamJoin of a YAML file.

    Raises:
        SpecError: with all problems, one a line, as FILE:LINE: field: what.
    """
    return parse(text_of(path), str(path), Path(path).absolute().parent)


def parse(text: str, name: str, base: Path) -> StreamJoin:
    """Parse the StreamJoin of a YAML text.

    `name` stands for the file in errors, relative paths start at `base`.

    Raises:
        SpecError: with all problems, one a line, as FILE:LINE: field: what.
    """
    what = "a StreamJoin; start with apiVersion, kind, metadata and spec"
    return validated(StreamJoin, document_of(text, name, what, KIND), name, base)


def text_of(path: str | Path) -> str:
    """Return the text of a file.

    Raises:
        SpecError: It cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SpecError(f"{path}: cannot be read: {reason}") from error


def document_of(text: str, name: str, what: str, kind: str = "") -> Document:
    """Return the document of a YAML text, which is a mapping; `what` it should be, for errors.

    Among several documents it is the only one of the kind.

    Raises:
        SpecError: It is none.
    """
    try:
        document = Document(text, kind)
    except DocumentError as error:
        raise SpecError(f"{name}:{error.line}: {error}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise SpecError(f"{name}:{line}: is not valid YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise SpecError(f"{name}:1: is not valid YAML: {error}") from error
    if not isinstance(document.value, dict):
        raise SpecError(f"{name}:1: is not {what}")
    return document


def validated(kind: type[Kind], document: Document, name: str, base: Path) -> Kind:
    """Return the document as a model.

    Raises:
        SpecError: with all problems, one a line, as FILE:LINE: field: what.
    """
    found = list(document.doubles)
    model = None
    try:
        model = kind.model_validate(document.value, context={"base": base}, by_alias=True, by_name=False)
    except ValidationError as error:
        found += [(document.line(problem.at), problem) for problem in problems(error, kind)]
    if model is None or found:
        raise SpecError("\n".join(report(name, line, problem) for line, problem in sorted(found)))
    return model


def report(name: str, line: int, problem: Problem) -> str:
    """Return a problem as FILE:LINE: field: what."""
    return ": ".join(filter(None, (f"{name}:{line}", ".".join(map(str, problem.at)), problem.message)))


def problems(error: ValidationError, kind: type[Model]) -> Iterator[Problem]:
    """Yield what is wrong, in the words of the file."""
    for details in error.errors():
        # What holds wrong entries only is empty to pydantic, which tells of the entries too.
        if details["type"] != "too_short" or not details["input"]:
            yield from _problems(details, kind)


def _problems(error: ErrorDetails, kind: type[Model]) -> Iterator[Problem]:
    """Translate a pydantic error to the words of the file."""
    place: Place = tuple(step for step in error["loc"] if step != "[key]")
    context: dict[str, Any] = error.get("ctx", {})
    if error["type"] == "problems":
        for problem in context["problems"]:
            yield Problem((*place, *problem.at), problem.message)
        return
    message = _message(error, place, context, kind)
    yield Problem(place, message.replace(f"{error['input']!r} ", "") if _unquoted(place) else message)


def _unquoted(place: Place) -> bool:
    """Return whether a field's value is in no error: it names a secret, and people write the secret itself there."""
    named = str(place[-1] if place else "")
    return named.endswith(("Env", "File")) or named in _UNQUOTED


def _message(error: ErrorDetails, place: Place, context: dict[str, Any], kind: type[Model]) -> str:
    given = error["input"]
    match error["type"]:
        case "extra_forbidden":
            known = fields(place[:-1], kind)
            return f"unknown field; {hint(str(place[-1]), known, 'fields here') if known else 'there is none here'}"
        case "missing":
            return f"is missing; add it{_described(place, kind)}"
        case "literal_error":
            allowed = [word.strip(" '") for word in context["expected"].replace(" or ", ",").split(",")]
            return f"{given!r} is not one of {', '.join(allowed)}; {hint(str(given), allowed, 'choose from')}"
        case "string_pattern_mismatch":
            return f"{given!r} does not fit; {fix_of(context['pattern'])}"
        case "value_error":
            return str(context["error"])
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"needs fields below it{_described(place, kind)}{_written(least(place, kind))}"
        case "too_short":
            return f"is empty; it needs at least one{_described(place, kind)}"
        case _:
            return _of_type(error, place, kind)


def _of_type(error: ErrorDetails, place: Place, kind: type[Model]) -> str:
    given = error["input"]
    match error["type"]:
        case "tuple_type" | "list_type":
            return f"should be a list{_described(place, kind)}; write [...]"
        case "path_type":
            return f"{given!r} is no path; write text, such as data/orders"
        case "string_type":
            return f"{given!r} is no text; write it in quotes" if _scalar(given) else "should be text"
        case "greater_than" | "greater_than_equal" if is_duration(place, kind):
            low = error["ctx"].get("ge")
            return f"is less than {duration(low)}; write {duration(low)} or more" if low else _ZERO
        case _:
            return error["msg"].replace("Input should be", "should be", 1)


def _described(place: Place, kind: type[Model]) -> str:
    said = describe(place, kind).rstrip(".")
    return f" ({said})" if said else ""


def _written(least: str) -> str:
    return {"": "", "{}": "; write {} for none"}.get(least, f"; write {least}")


def _scalar(given: object) -> bool:
    return not isinstance(given, dict | list | None)
