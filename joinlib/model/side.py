"""The configuration of one side of a join: what is stored, and for how long."""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class SideConfig:
    """The columns that a side stores, and for how long."""

    number: int  # unique in its stage
    schema: pa.Schema  # "$hash" first
    keys: tuple[str, ...]
    time: str | None  # the column by which rows expire
    hold_us: int | None  # a row at t is needed until the watermark is beyond t + hold; None: forever
    marked: bool  # rows are emitted if unmatched, or once when first matched
    compared: str = ""  # what the stored rows are sorted by, and how; empty: not sorted
    chained: bool = True  # rows are found by their hashes; False: the join has no key, or sorts by it
    mutable: bool = False  # rows may be deleted, or lose their mark
    versioned: bool = False  # after a batch, its rows can still be told from those that were there before
    of: int | None = None  # the side whose rows it has, by other names: it stores none itself

    @property
    def flagged(self) -> bool:
        """Whether rows have flags: matched, dead."""
        return self.marked or self.mutable
