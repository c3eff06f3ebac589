"""Gives an input the columns that its schemas have in a registry.

Pure: the registry is asked elsewhere, by the job itself, and its answer may come from a status that a driver wrote.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pydantic import ValidationError

from joinlib.errors import SpecError
from joinlib.spec import ddl
from joinlib.spec.inputs import METADATA_TYPES, Input, KafkaMetadata


@dataclass(frozen=True)
class RegistryColumns:
    """The columns that the reader's schemas of an input have."""

    values: pa.Schema
    keys: pa.Schema | None = None  # one column, which the whole of a key fits; None: keys have no schema

    @staticmethod
    def of(found: Mapping[str, str]) -> "RegistryColumns":
        """Read them from text; raise ValueError if it is none."""
        return RegistryColumns(
            ddl.parse(found["values"]), ddl.parse(found["keys"]) if "keys" in found else None
        )

    @property
    def text(self) -> dict[str, str]:
        """Inverse of `of`."""
        given = {"values": self.values, "keys": self.keys}
        return {name: ddl.to_ddl(columns) for name, columns in given.items() if columns is not None}


def metadata(given: Input) -> KafkaMetadata:
    """Return which columns of topics are filled from what is about a message."""
    assert given.kafka is not None
    return given.kafka.metadata


def fills_from_keys(given: Input) -> bool:
    """Return whether a column has the type that the schema of keys says."""
    return given.kafka is not None and given.kafka.key_format != "text" and metadata(given).key is not None


def columns_of(given: Input, known: RegistryColumns) -> pa.Schema:
    """Return the columns of the values' schema, and those that are filled from what is about a message."""
    filled = {column: METADATA_TYPES[about][0] for about, column in metadata(given).columns.items()}
    if (column := metadata(given).key) is not None and known.keys is not None and fills_from_keys(given):
        filled[column] = known.keys.field(0).type
    rest = [f for f in known.values if f.name not in filled]
    return pa.schema([*rest, *(pa.field(name, type) for name, type in filled.items())])


def checked(place: str, given: Input, columns: pa.Schema) -> pa.Schema:
    """Return the columns, once all that the spec says of them is right.

    Raises:
        SpecError: It is not; each line begins with the place.
    """
    try:
        Input.model_validate({**dict(given), "arrow_schema": columns})
    except ValidationError as error:
        lines = [line for e in error.errors() for line in str(e["msg"]).splitlines()]
        raise SpecError("\n".join(f"{place}.{line}" for line in lines)) from None
    return columns
