"""Figures 11b to 11d of BS-Join: what skew does to units that look rows up, by hashing and by the rule for hot keys."""

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from unit import Result, customers, finder_of, look_up, stage_of, table_of

from joinlib.lookup.enrich import Finder
from joinlib.lookup.used import total
from joinlib.model.tuning import Tuning
from joinlib.postgres import PostgresConfig
from joinlib.route.census import Census
from joinlib.route.hash import key_hash
from joinlib.route.hotspot import RoutingRule, rule, skew
from joinlib.route.routers import RuleRouter
from joinlib.source.zipf import zipf

ZIPFS = (0.98, 1.04, 1.10, 1.16)
UNITS = 16
WAYS = ("hash", "hotspot")


def skewed(quick: bool, known: Result, runs: int) -> Iterator[Result]:
    """Each unit's share of a batch is timed alone, as if it had a core: a batch takes as long as its slowest unit."""
    rows, batch, count = (50_000, 20_000, 4) if quick else (1_000_000, 200_000, 16)
    found: Result = {"table_rows": rows, "batch": batch, "units": UNITS, **known}
    with table_of(customers(rows)) as config:
        for exponent in [z for z in ZIPFS if str(z) not in known]:
            draw = np.random.default_rng(8)
            batches = [zipf(draw.random(batch), rows, exponent) for _ in range(count)]
            found[str(exponent)] = {way: _run(way, config, batches) for way in WAYS}
            yield found


def _run(way: str, config: PostgresConfig, batches: list[np.ndarray]) -> Result:
    """All batches, which bring new keys; then the second half once more, of which every answer is kept."""
    ruled, seconds = None, []
    with tempfile.TemporaryDirectory() as folder:
        units = [finder_of("incremental", config, Path(folder), at, UNITS) for at in range(UNITS)]
        half = len(batches) // 2
        for keys in batches + batches[half:]:
            taken, after = _batch(units, ruled, keys)
            ruled = after if way == "hotspot" else None
            seconds.append(taken)
        used = total(each.used() for each in units)
    new, warm = seconds[half : len(batches)], seconds[len(batches) :]
    rows = len(batches[0])
    return {
        "new keys among them": rows / statistics.median(map(max, new)),
        "warm": rows / statistics.median(map(max, warm)),
        "ms, new keys among them": 1000 * statistics.median(map(max, new)),
        "ms, warm": 1000 * statistics.median(map(max, warm)),
        "warm, all units together": rows / statistics.median(map(sum, warm)),
        "bytes": used.bytes,
        "rows": used.rows,
        "hit share": used.hits / (used.hits + used.misses),
    }


def _batch(
    units: list[Finder], ruled: RoutingRule | None, keys: np.ndarray
) -> tuple[list[float], RoutingRule | None]:
    """Seconds of each unit, and the rule of the next batch."""
    column = pa.array(keys)
    rows = pa.record_batch([pa.array(key_hash([column])), column], ["$hash", "k"])
    router, stage = RuleRouter(UNITS, ruled, Census.begin(UNITS, 0)), stage_of(UNITS)
    seconds = [0.0] * UNITS
    for sent in router.parts(0, 0, rows):
        start = time.perf_counter()
        look_up(stage, units[sent.unit], sent.rows.column(1).to_numpy())
        seconds[sent.unit] = time.perf_counter() - start
    if skew(router.census.counts.tolist()) > Tuning().skew:
        ruled = rule(router.census.reservoir.sample, UNITS)
    return seconds, ruled
