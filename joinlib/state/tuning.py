"""Thresholds of the state. The answer never depends on them; tests set them small enough to be hit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Frozen with the stage; the defaults suit inputs from a thousand to a hundred million rows a unit."""

    hash_bits: int = 64  # fewer: collisions are forced
    seal_rows: int = 1 << 24  # a head with so many rows is sealed
    seal_bytes: int = (1 << 30) - 1  # or so many bytes, its index included (string columns end at 2 GiB)
    spans: int = 10  # a head is sealed when it spans this part of a row's time (BiStream's archive period)
    merge_segments: int = 8  # so many small segments of a head become one, and half as many segments of marks
    file_bytes: int = 1 << 12  # fewer stand in the manifest: to make a file costs 0.1 to 1 ms
    small_bytes: int = 1 << 14  # a segment below this is small; its rows are not mapped until they are merged
    max_segments: int = 32  # live segments of a side, those of sorted runs left out
    levelled: bool = False  # sealed runs are sorted by hash and merged in levels: state may exceed memory
    fanout: int = 10  # so many sorted runs of a level become one of the next
    piece_bytes: int = 1 << 26  # so much a merge writes in a batch, at most; less of the lower levels
    max_runs: int = 12  # sealed runs that are not sorted, before two neighbours become one
    merged_bytes: int = 2**31 - 2  # they are no larger together: strings of one Arrow array end at 2 GiB
    retain_batches: int = 8  # one can go back so far: manifests and retired segments are kept so long
    spool_bytes: int = 1 << 16  # a block so large goes to its unit as a file, not through Spark's shuffle
    frame_rows: int = 100_000  # rows of one output frame, about
    skew: float = 0.2  # over that DS of a batch's units hot keys get a new rule, where nothing is stored
    probe_pairs: int = 1 << 18  # pairs of equal hash looked at together
    probe_order: str = "auto"  # of joins of three inputs or more: a name among `join.order`'s rules
    probe_cycle: int = 8  # batches after which their orders are chosen anew
    sync: bool = True  # what a batch writes is on the disk before the batch counts

    def __post_init__(self) -> None:
        # Each sealed run is a segment; marks are up to `marks_segments`, and the head keeps room for two at least.
        least = self.max_runs + 2 + 2 * self.marks_segments
        if self.max_runs < 1 or self.merge_segments < 2 or self.max_segments < least:
            raise ValueError(
                f"max_runs {self.max_runs} needs max_segments of at least {least}, not {self.max_segments}"
            )
        if self.fanout < 2 or self.piece_bytes < 1:
            raise ValueError(
                f"fanout {self.fanout} must be 2 or more, piece_bytes {self.piece_bytes} 1 or more"
            )

    @property
    def marks_segments(self) -> int:
        """Segments of marks of a side, before they become one."""
        return self.merge_segments // 2
