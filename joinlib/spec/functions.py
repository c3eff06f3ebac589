"""Functions that the author of a spec has written in Python."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, model_validator

from joinlib.spec import ddl
from joinlib.spec.base import Folder, Model

FUNCTION = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$"


def _typed(value: object) -> str:
    ddl.parse(f"value {value}")  # raises ValueError for what is no type
    return str(value)


ReturnType = Annotated[
    str, BeforeValidator(_typed), WithJsonSchema({"type": "string", "examples": ["DOUBLE"]})
]


class UserFunction(Model):
    """A function of a Python module, over Arrow arrays: it gets columns and returns one."""

    python: str = Field(
        pattern=FUNCTION,
        description="MODULE:FUNCTION. The function is declared by `joinlib.functions.deterministic`.",
    )
    returns: ReturnType = Field(description="The type of its values, as in a schema.")
    path: Folder | None = Field(
        default=None,
        description="Folder in which the module is looked for before Python's path. Absent: that of the spec file. In a "
        "cluster, modules are those of the image.",
    )

    @model_validator(mode="before")
    @classmethod
    def _placed(cls, given: Any, info: ValidationInfo) -> Any:
        base = (info.context or {}).get("base")
        if base is None or not isinstance(given, dict) or given.get("path") is not None:
            return given
        return {**given, "path": str(base)}
