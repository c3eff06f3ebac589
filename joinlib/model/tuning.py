"""Thresholds of the state. They never change the result; tests set them low enough to be reached."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Thresholds, frozen with the stage; the defaults suit a thousand to a hundred million rows per unit."""

    hash_bits: int = 64  # fewer force collisions
    seal_rows: int = 1 << 24  # a head is sealed at this number of rows
    seal_bytes: int = (1 << 30) - 1  # or at this size, with its index (string columns are limited to 2 GiB)
    spans: int = 10  # a head spans at most 1/spans of the time rows are kept (BiStream's archive period)
    merge_segments: int = 8  # small segments of a head that are merged; half as many segments of marks
    file_bytes: int = 1 << 12  # smaller segments are in the manifest: creating a file takes 0.1 to 1 ms
    small_bytes: int = 1 << 14  # a segment below this is small; its rows are not mapped until they are merged
    max_segments: int = 32  # live segments of a side, without those of sorted runs
    levelled: bool = False  # sealed runs are sorted by hash and merged in levels: state may exceed memory
    fanout: int = 10  # number of sorted runs of a level that are merged into one of the next
    piece_bytes: int = 1 << 26  # most that a merge writes in a batch; less at the lower levels
    max_runs: int = 12  # unsorted sealed runs, before two neighbours are merged
    merged_bytes: int = 2**31 - 2  # limit of a merged run: strings of one Arrow array are limited to 2 GiB
    retain_batches: int = 8  # batches to which one can go back: manifests and retired segments are kept
    spool_bytes: int = 1 << 16  # a block of this size goes to its unit as a file, not through Spark's shuffle
    direct_spool_bytes: int = 1 << 20  # the same between levels of a batch without Spark
    small_rows: int = 1 << 15  # a batch of at most so many rows is one task, where indexes are on one machine
    share_rows: int = 1 << 14  # fewer are not worth a task: a slice of more may be read by several
    direct_first: bool = True  # a run begins without Spark, which starts when it is needed
    jvm_kept_s: float = 60.0  # for which Spark's JVM is kept that no batch needs
    direct_after: int = 3  # batches in a row by Spark, behind which the next ones are run without it
    frame_rows: int = 100_000  # approximate rows of one output frame
    frame_bytes: int = 1 << 25  # or its approximate size, where rows are wide
    path_rows: int = (
        10_000_000  # tuples of a path join that a task sends in frames of this size; then in larger ones
    )
    skew: float = 0.2  # DS of a batch above which hot keys get a new rule, where nothing is stored
    probe_pairs: int = 1 << 18  # pairs of equal hash that are processed together
    probe_order: str = "auto"  # of joins of three or more inputs: a name in `join.order.policy.RULES`
    probe_cycle: int = 8  # batches after which their orders are chosen again
    probe_history: int = 3  # cycles over which their statistics are smoothed
    sync: bool = True  # everything a batch writes is on disk before the batch counts

    def __post_init__(self) -> None:
        # Each sealed run is a segment; marks take up to `marks_segments`, the head at least two.
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
        """Segments of marks of a side, before they are merged."""
        return self.merge_segments // 2
