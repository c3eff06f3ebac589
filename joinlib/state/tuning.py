"""Thresholds of the state. The answer never depends on them; tests set them small enough to be hit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Frozen with the stage; the defaults suit inputs from a thousand to a hundred million rows a unit."""

    hash_bits: int = 64  # fewer: collisions are forced
    seal_rows: int = 1 << 24  # a head with so many rows is sealed
    seal_bytes: int = 1 << 30  # or so many bytes (string columns of one Arrow array end at 2 GiB)
    spans: int = 8  # a head is sealed once it spans this part of the time a row is kept
    merge_segments: int = 8  # half as many segments of marks become one
    max_segments: int = 32  # live segments of a side
    max_runs: int = 12  # sealed runs of a side, before two neighbours become one
    retain_batches: int = 8  # retired segments are deleted so many batches later; Spark retains as many
    frame_rows: int = 100_000  # rows of one output frame, about
    probe_pairs: int = 1 << 18  # pairs of equal hash looked at together
