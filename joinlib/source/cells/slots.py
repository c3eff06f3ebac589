"""Where the values of columns are written, before they are Arrow's.

A column is one of three, and each lies in a level, whose rows are counted together:

    Flat    a slot of cells (two, of bytes and text)    the message's level, or that of the array around it
    Struct  a slot for what is NULL, and its columns    the same level as its columns
    Many    a slot with the first item of each array    its items have a level of their own
"""

from dataclasses import dataclass

import pyarrow as pa


@dataclass
class Flat:
    """A column of values. `read`: the Arrow type that they are read as, None while it is unknown."""

    slot: int
    level: int
    type: pa.DataType
    read: pa.DataType | None = None
    nullable: bool = False


@dataclass
class Struct:
    """A column of structs."""

    slot: int
    level: int
    type: pa.DataType
    children: list["Column"]
    nullable: bool = False


@dataclass
class Many:
    """A column of lists or maps; of maps, the children are key and value."""

    slot: int
    level: int
    type: pa.DataType
    inner: int  # the level of the items
    children: list["Column"]
    nullable: bool = False


Column = Flat | Struct | Many
