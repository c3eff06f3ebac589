"""What a Relation message says of a table: its name, its columns, and what identifies an old row.

    R  relation (4)  schema 0  name 0  identity (1)  columns (2):  flags (1)  name 0  type (4)  modifier (4)

It comes before the first change of its table in a peek, and again whenever the table has changed.
"""

from dataclasses import dataclass

FULL = "f"  # the identity that sends old rows whole


@dataclass(frozen=True)
class Attribute:
    """A column that is sent."""

    name: str
    kind: int  # the number of its type
    identity: bool  # an old key holds it


@dataclass(frozen=True)
class Relation:
    """A table at one moment of its history."""

    number: int
    table: tuple[str, str]  # schema and name
    identity: str  # of pg_class.relreplident
    attributes: tuple[Attribute, ...]

    @property
    def columns(self) -> dict[str, Attribute]:
        return {a.name: a for a in self.attributes}


def parse(message: bytes) -> Relation:
    """Return what a Relation message says.

    Raises:
        ValueError, IndexError: It is cut off, or none.
    """
    number = int.from_bytes(message[1:5], "big")
    schema, name, rest = message[5:].split(b"\0", 2)
    _check(len(rest) >= 3)
    identity, count, rest = rest[:1].decode(), int.from_bytes(rest[1:3], "big"), rest[3:]
    attributes = []
    for _ in range(count):
        column, after = rest[1:].split(b"\0", 1)
        _check(len(after) >= 8)
        attributes.append(Attribute(column.decode(), int.from_bytes(after[:4], "big"), bool(rest[0] & 1)))
        rest = after[8:]
    table = schema.decode() or "pg_catalog", name.decode()
    return Relation(number, table, identity, tuple(attributes))


def truncated(message: bytes) -> list[int]:
    """Return the tables that a Truncate message names; raise ValueError if it is cut off."""
    count = int.from_bytes(message[1:5], "big")
    _check(len(message) >= 6 + 4 * count)
    return [int.from_bytes(message[at : at + 4], "big") for at in range(6, 6 + 4 * count, 4)]


def _check(there: bool) -> None:
    if not there:
        raise ValueError
