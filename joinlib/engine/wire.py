"""The exchange row: the unit in which Spark shuffles data. Spark never sees the rows inside a block.

BLOCK     a block of one input's rows
FILE      the name of a segment that holds such a block
TICK      how far one map task has read an input
TABLE     the version of a table that the batch looks up
RULE      by which rows go to the units of a later stage: to the stage that makes them; `input` is the later stage's number
RECEIPT   a unit's receipt, on its way to the driver: its stage number is that of no stage
LETTERS   dead letters, on their way to the tasks of the last level, which write them: likewise
"""

from typing import Any, NamedTuple

import pyarrow as pa

BLOCK, FILE, TICK, TABLE, RECEIPT, LETTERS, RULE = range(7)


class ExchangeRow(NamedTuple):
    """One exchange row. Fields that its kind does not use are 0, False or None.

    `stage` is the number of the stage whose unit reads it; `input` is the number of the
    stage's input, of a lookup, or of a later stage.
    """

    slot: int  # the value by which Spark partitions; it stands for the unit
    stage: int
    kind: int
    input: int = 0
    sequence: int = 0  # BLOCK, FILE: orders the blocks of an input
    role: int = 0  # BLOCK, FILE: are its rows stored, do they probe, or both (route.biclique)?
    rows: int = 0  # rows in the block, or rows that the map task has read
    highest: int = 0  # TICK: event time, µs
    bad: int = 0  # TICK: messages that were left out
    idle: bool = False  # TICK
    closed: bool = False  # TICK: no more rows will follow
    version: int = 0  # TABLE
    block: bytes | pa.Buffer | None = None


_TYPES: dict[type, pa.DataType] = {int: pa.int64(), bool: pa.bool_()}
_SMALL = {"slot", "stage", "kind", "input", "role"}


def _type(name: str, kind: Any) -> pa.DataType:
    return pa.int32() if name in _SMALL else _TYPES.get(kind, pa.binary())


SCHEMA = pa.schema([(name, _type(name, kind)) for name, kind in ExchangeRow.__annotations__.items()])
