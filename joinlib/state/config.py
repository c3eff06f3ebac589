"""What a side is, and where it lives."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa


@dataclass(frozen=True)
class SideConfig:
    """What a side keeps and for how long."""

    number: int  # in its stage
    schema: pa.Schema  # "$hash" first
    keys: tuple[str, ...]
    time: str | None  # the column by which rows expire
    hold_us: int | None  # a row at t is needed until the watermark is beyond t + hold; None: for ever
    marked: bool  # rows come out unmatched, or once when first matched
    compared: str = ""  # what stored rows are sorted by, and how; empty: they are not sorted
    chained: bool = True  # rows are found by their hashes; False: the join has no key, or sorts by it


@dataclass(frozen=True)
class Place:
    """Where a side lives: its unit's folder in the checkpoint, and the executor's folder of indexes."""

    segments: Path
    indexes: Path
    skip_bits: int
    stagger: int = 0  # differs between sides and units
