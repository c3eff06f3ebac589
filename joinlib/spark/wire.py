"""The columns of an exchange row: a block of one input for one unit, or a tick for one unit, of the stage that `flags` names.

Of a tick, `sequence` is the number of bad messages and `count` that of the rows that were read.
"""

import pyarrow as pa

DDL = "slot INT, input INT, sequence BIGINT, highest BIGINT, count BIGINT, flags INT, block BINARY"
SCHEMA = pa.schema(
    [
        pa.field("slot", pa.int32()),
        pa.field("input", pa.int32()),
        pa.field("sequence", pa.int64()),
        pa.field("highest", pa.int64()),
        pa.field("count", pa.int64()),
        pa.field("flags", pa.int32()),
        pa.field("block", pa.binary()),
    ]
)
