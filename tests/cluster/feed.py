"""Two streams of files whose rate goes up and down: `python feed.py FOLDER SECONDS:RATE,SECONDS:RATE,…`

Every half second one file for each input, whole at once; what a row says depends on its number only, its time is that of its file. Runs
wherever there is pyarrow, such as in a pod of the product's image.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TICK_S = 0.5
INPUTS = ("orders", "payments")


def rows(number: int, first: int, count: int, at_us: int) -> pa.Table:
    """Rows first … first + count - 1 of an input. Keys are as many as there are rows in some seconds: about one match each."""
    ids = np.arange(first, first + count)
    return pa.table(
        {
            "k": ids * 2654435761 % 40_009 if number == 0 else ids * 40503 % 40_009,
            "v": ids,
            "t": pa.array(np.full(count, at_us), pa.timestamp("us", "UTC")),
        }
    )


def feed(folder: Path, plan: list[tuple[float, int]]) -> None:
    """Writes until the plan is over."""
    for name in INPUTS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    written, begin, tick = 0, time.time(), 0
    for seconds, rate in plan:
        for _ in range(round(seconds / TICK_S)):
            count = round(rate * TICK_S)
            for number, name in enumerate(INPUTS):
                aside = folder / name / f".{tick:06d}"
                pq.write_table(rows(number, written, count, int(time.time() * 1e6)), aside)
                aside.rename(folder / name / f"{tick:06d}.parquet")
            written, tick = written + count, tick + 1
            time.sleep(max(0.0, begin + tick * TICK_S - time.time()))


if __name__ == "__main__":
    feed(
        Path(sys.argv[1]),
        [(float(s), int(r)) for s, _, r in (part.partition(":") for part in sys.argv[2].split(","))],
    )
