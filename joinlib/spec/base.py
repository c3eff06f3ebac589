"""The base of all models and scalars of the spec: camelCase in the file, no unknown fields, frozen values.

A rule over several fields raises a list of `Problem`s, each with its place and the fix, so that all of them
can be reported at once, at their lines.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pyarrow as pa
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from joinlib.spec import ddl, duration


class Problem(NamedTuple):
    """A mistake at a place, with the fix. `at` is relative to the model that raises it."""

    at: tuple[str | int, ...]
    message: str


class Model(BaseModel):
    """Base of the spec's models."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        arbitrary_types_allowed=True,
        extra="forbid",
        frozen=True,
        validate_by_alias=True,
        validate_by_name=True,
        validate_default=True,
    )


def refuse(problems: Iterable[Problem]) -> None:
    """Raise all problems as one error that keeps their places; do nothing if there are none."""
    found = tuple(problems)
    if found:
        lines = (": ".join(filter(None, (".".join(map(str, at)), message))) for at, message in found)
        text = "\n".join(lines).replace("{", "(").replace("}", ")")  # braces are placeholders to pydantic
        raise PydanticCustomError("problems", text, {"problems": found})


def named_files(model: Model, *fields: str) -> dict[str, Path]:
    """Return the files that fields of a model name, by the names of these fields in a spec."""
    given = {to_camel(name): getattr(model, name) for name in fields}
    return {name: path for name, path in given.items() if path is not None}


def one_of(*names: str) -> dict[str, Any]:
    """JSON schema for "exactly one of these fields is present"."""
    return {"oneOf": [{"required": [name]} for name in names]}


def quantity(default: str, alias: str, description: str) -> Any:
    """Declare a field whose default is written as a user would write it; its type turns it into a number."""
    return Field(default=default, alias=alias, description=description)


FROM_REGISTRY = "fromRegistry"
_UNKNOWN = pa.schema([])  # no columns: a schema that is written down has some


def _schema(value: object) -> pa.Schema:
    if isinstance(value, pa.Schema):
        return value
    if not isinstance(value, str):
        msg = "write the columns as a string, such as: order_id BIGINT, ordered_at TIMESTAMP"
        raise ValueError(msg)  # noqa: TRY004  pydantic collects ValueError only
    return _UNKNOWN if value.strip() == FROM_REGISTRY else ddl.parse(value)


def is_from_registry(schema: pa.Schema) -> bool:
    """Return whether the columns are those that a registry has, which were not asked for yet."""
    return not len(schema)


def _ddl(schema: pa.Schema) -> str:
    return FROM_REGISTRY if is_from_registry(schema) else ddl.to_ddl(schema)


def _duration(value: object) -> int:
    if isinstance(value, str):
        return duration.parse(value)
    msg = f"{value!r} has no unit; write 10s, 500ms or 2h30m"
    raise ValueError(msg)


_FACTORS = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"  # the name of an environment variable
QUANTITY = r"^([1-9]\d*)(Ki|Mi|Gi|Ti|k|M|G|T)?$"


def _quantity(value: object) -> int:
    match = re.fullmatch(QUANTITY.strip("^$"), str(value), re.ASCII)
    if match is None:
        msg = f"{value!r} is not an amount of memory; write 8Gi or 512Mi"
        raise ValueError(msg)
    return int(match[1]) * _FACTORS[match[2] or ""]


def _folder(value: Path, info: ValidationInfo) -> Path:
    """Make a path absolute, without `..`, if the context has the base of relative paths."""
    base = (info.context or {}).get("base")
    return Path(os.path.normpath(Path(base, value))) if base is not None else value


def _local(value: object) -> object:
    if isinstance(value, str) and value.startswith("file:"):
        msg = f"{value!r} is a URL; write the path alone: {value.removeprefix('file:').removeprefix('//') or 'data/orders'}"
        raise ValueError(msg)
    if isinstance(value, str) and "://" in value:
        msg = f"{value!r} is on an object store, which is not supported yet; name a local or shared folder"
        raise ValueError(msg)
    if value == "":
        msg = "the path is empty; name a folder"
        raise ValueError(msg)
    return value


ArrowSchema = Annotated[
    pa.Schema,
    BeforeValidator(_schema),
    PlainSerializer(_ddl, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["order_id BIGINT, ordered_at TIMESTAMP"]}),
]
Duration = Annotated[
    int,
    BeforeValidator(_duration),
    PlainSerializer(duration.text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": duration.PATTERN, "examples": ["10s", "500ms", "2h30m"]}),
]
Memory = Annotated[
    int,
    BeforeValidator(_quantity),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": QUANTITY, "examples": ["8Gi", "512Mi"]}),
]
Variable = Annotated[str, StringConstraints(pattern=VARIABLE)]
Folder = Annotated[
    Path, BeforeValidator(_local), AfterValidator(_folder), WithJsonSchema({"type": "string", "minLength": 1})
]
