"""Is an n-way join ever worse than a chain of binary ones?

Both over the same batches, in turns, in CPU seconds.

A chain stores what each join finds: a late input asks once where the n-way join asks n - 1 times, and each
intermediate row is written, indexed and kept. `matches`: rows of a key in each input. `arrival`: "mixed", or
"last": the last input comes when all others are there, which is where a chain gains most.
"""

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.probe_order.data import SCHEMA, Batches
from bench.probe_order.play import Play
from joinlib.model.tuning import Tuning


@dataclass(frozen=True)
class Kind:
    """A stream."""

    inputs: int
    matches: int = 1
    rows: int = 100_000  # of each input
    batches: int = 20
    arrival: str = "mixed"
    found: float = 1.0  # part of the first input's keys that all others have

    def made(self) -> Batches:
        draw, keys = np.random.default_rng(7), self.rows // self.matches
        made = []
        for number in range(self.inputs):
            own = np.arange(keys) + (0 if number == 0 else int(keys * (1 - self.found)) * number)
            made.append(draw.permutation(np.repeat(own, self.matches)))
        parts = [np.array_split(k, self.batches) for k in made]
        if self.arrival == "mixed":
            return [{n: _rows(p[b]) for n, p in zip("abcdef", parts)} for b in range(self.batches)]
        nothing = np.array([], np.int64)
        late = self.inputs - 1
        return [
            {
                n: _rows(nothing if (i == late) != last else p[b])
                for i, (n, p) in enumerate(zip("abcdef", parts))
            }
            for last in (False, True)
            for b in range(self.batches)
        ]


def compared(kind: Kind) -> dict[str, float]:
    """CPU seconds, bytes on disk and results of both."""
    folder, order = Path(tempfile.mkdtemp()), "abcdef"[: kind.inputs]
    plays = {name: Play(order, folder / name, Tuning(), name == "chain") for name in ("merged", "chain")}
    cpu = dict.fromkeys(plays, 0.0)
    try:
        for number, rows in enumerate(kind.made()):
            for name in sorted(plays, reverse=bool(number % 2)):
                began = time.process_time()
                plays[name].batch(rows)
                cpu[name] += time.process_time() - began
        stored = {n: sum(f.stat().st_size for f in (folder / n / "s").rglob("*")) for n in plays}
    finally:
        shutil.rmtree(folder)
    assert plays["merged"].results == plays["chain"].results, "the two differ"
    return {
        **{f"{n} s": round(s, 3) for n, s in cpu.items()},
        **{f"{n} MB": round(b / 1e6, 1) for n, b in stored.items()},
        "results": plays["chain"].results,
    }


def _rows(keys: "np.typing.NDArray[np.int64]") -> pa.RecordBatch:
    return pa.record_batch([pa.array(keys), pa.array(np.arange(len(keys)))], SCHEMA)
