"""What a side stores, read as files: no index is opened, and nothing is written.

Cost: a pass over the segments of the side.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joinlib.index.kernels import DEAD, DYING, MATCHED
from joinlib.model.side import SideConfig
from joinlib.model.watermark import horizon
from joinlib.state import segment
from joinlib.state.manifest import Segment, SideManifest
from joinlib.state.run import time_values

Flags = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


def stored(folder: Path, side: SideManifest, config: SideConfig) -> list[tuple[pa.RecordBatch, Flags]]:
    """Return the stored rows, oldest run first, each segment with the flags of its rows.

    They are mapped at once: a file that is mapped stays readable when a later batch has deleted it.

    Raises:
        StateError: A segment is missing or damaged.
    """
    flags, found = _flags(folder, side, config), []
    for run in side.runs:
        first = 0
        for one in run.segments:
            found.append((_read(folder, one, config.schema), flags[run.number][first : first + one.rows]))
            first += one.rows
    return found


def needed(rows: pa.RecordBatch, flags: Flags, config: SideConfig, watermark: int) -> Mask:
    """Return which stored rows were not deleted and have not expired."""
    alive: Mask = flags & (DEAD | DYING) == 0
    if config.time is not None:
        alive &= time_values(rows.column(config.time)) > horizon(watermark, config.hold_us)
    return alive


def matched(flags: Flags) -> Mask:
    """Return which rows were matched."""
    found: Mask = flags & MATCHED != 0
    return found


def _flags(folder: Path, side: SideManifest, config: SideConfig) -> dict[int, Flags]:
    """Return the flags of the rows of each run: the newest entry of the log counts."""
    found = {run.number: np.zeros(run.rows, np.uint8) for run in side.runs}
    kinds = [("run", pa.int32()), ("row", pa.int32()), *([("flags", pa.uint8())] if config.mutable else [])]
    for one in side.marks:
        runs, numbers, *given = (c.to_numpy() for c in _read(folder, one, pa.schema(kinds)).columns)
        flags = given[0] if given else np.full(len(runs), MATCHED, np.uint8)
        for run in found.keys() & set(runs.tolist()):
            here = runs == run
            found[run][numbers[here]] = flags[here]
    return found


def _read(folder: Path, one: Segment, schema: pa.Schema) -> pa.RecordBatch:
    segment.verify(folder, one)
    return segment.read(folder, one, schema)
