"""Figures 9 and 11, tables 1 to 4 and 6 to 8 of BS-Join, in shape: several units and a remote table.

`python bench/lookup/units.py [--quick]`.

    speed       rows/s of 1, 2 and 4 units, each a process; speed-up by equation 5
    size        time for 10 000 rows while the table grows: scalability
    latency     time of a batch of 10 000 rows, one after the other with rests between: a low rate
    skewed      rows/s, time of a batch and size of the caches by hashing and by the rule for hot keys (figures 11b to 11d)
    ranged      range joins by a query a row, a query a batch, and a table that is kept whole (tables 6 to 8)

Each way of looking up is what a unit of the engine does (`lookup.enrich`), against a PostgreSQL at 1 ms (see
`remote`). Batches are split over units by the rule for hot keys of the batch before. Writes
results/units.json; `draw.py` draws it.
"""

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from ranges import ranged  # noqa: E402
from skew import skewed  # noqa: E402
from unit import Result, customers, finder_of, look_up, stage_of, table_of, task_of, whole  # noqa: E402

from joinlib.postgres import PostgresConfig  # noqa: E402
from joinlib.route.hash import key_hash  # noqa: E402
from joinlib.route.hotspot import RoutingRule, rule  # noqa: E402
from joinlib.source.zipf import zipf  # noqa: E402

WAYS = ("one query a row", "one query a batch", "incremental, warm", "full")
TIMED = ("one query a batch", "incremental, new keys among them", "incremental, warm", "full")
UNITS, EXPONENT = (1, 2, 4), 1.1


def unit(
    way: str, config: PostgresConfig, folder: Path, at: int, units: int, batches: list[np.ndarray], gate: Any
) -> tuple[int, float, float]:
    """One unit's share of all batches: (rows, when it began, when it ended).

    Caches have seen them all before.
    """
    stage, found = stage_of(units), finder_of(way, config, folder, at, units)
    together = 1 if way == "one query a row" else 1 << 20
    look_up(stage, found, batches[0][:10], together)
    if way in ("incremental, warm", "full"):
        for keys in batches:
            look_up(stage, found, keys, together)
    gate.wait()
    began = time.time()
    rows = sum(look_up(stage, found, keys, together) for keys in batches)
    return rows, began, time.time()


def _unit(arguments: tuple[Any, ...], gate: Any, queue: Any) -> None:
    queue.put(unit(*(*arguments, gate)))


def speed_of(
    way: str, units: int, config: PostgresConfig, batches: list[np.ndarray], versions: Path
) -> float:
    """Rows/s of all units together, each in a process."""
    context = multiprocessing.get_context("fork")
    shares = split(batches, units)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "versions").symlink_to(versions)
        gate, queue = context.Barrier(units), context.Queue()
        workers = [
            context.Process(
                target=_unit, args=((way, config, Path(folder), at, units, shares[at]), gate, queue)
            )
            for at in range(units)
        ]
        for worker in workers:
            worker.start()
        done = [queue.get(timeout=300) for _ in workers]
        for worker in workers:
            worker.join()
    return sum(rows for rows, _, _ in done) / (max(e for _, _, e in done) - min(b for _, b, _ in done))


def split(batches: list[np.ndarray], units: int) -> list[list[np.ndarray]]:
    """Each unit's rows of each batch, by the rule that the batch before gives."""
    if units == 1:
        return [batches]
    hashes = [key_hash([pa.array(keys)]) for keys in batches]
    made: RoutingRule = rule(hashes[0][:32_768], units)
    homes = [made.units(h) for h in hashes]
    return [[keys[home == at] for keys, home in zip(batches, homes)] for at in range(units)]


def speed(quick: bool, known: Result, runs: int) -> Iterator[Result]:
    """Rows/s by way and units, the median of some runs. Ways that are known already are left as they are."""
    rows, batch, count = (50_000, 20_000, 4) if quick else (1_000_000, 100_000, 6)
    draw = np.random.default_rng(1)
    batches = [zipf(draw.random(batch), rows, EXPONENT) for _ in range(count)]
    few = [keys[:100] for keys in batches[:2]]
    found: Result = {"table_rows": rows, "batch": batch, "zipf": EXPONENT, **known}
    with table_of(customers(rows)) as config, tempfile.TemporaryDirectory() as folder:
        found["load_seconds"] = whole(task_of(config, Path(folder), 1, "full"))
        for way in [w for w in WAYS if w not in known]:
            given = few if way == "one query a row" else batches
            found[way] = {
                str(n): statistics.median(speed_of(way, n, config, given, Path(folder)) for _ in range(runs))
                for n in UNITS
            }
            yield found


def size(quick: bool, known: Result, runs: int) -> Iterator[Result]:
    """Seconds for 10 000 rows, by way and size of the table; the median of nine batches."""
    found: Result = dict(known)
    for rows in (20_000, 40_000) if quick else (250_000, 500_000, 1_000_000, 2_000_000):
        if str(rows) not in found:
            with table_of(customers(rows)) as config:
                found[str(rows)] = {way: times(way, config, rows, 9, 0.0)["median"] for way in TIMED}
                yield found


def latency(quick: bool, known: Result, runs: int) -> Iterator[Result]:
    """Seconds of a batch of 10 000 rows with rests between, by way."""
    rows, found = 50_000 if quick else 1_000_000, dict(known)
    with table_of(customers(rows)) as config:
        for way in [w for w in TIMED if w not in known]:
            found[way] = times(way, config, rows, 9 if quick else 40, 0.05)
            yield found


def times(way: str, config: PostgresConfig, rows: int, count: int, rest_s: float) -> Result:
    """Of batches of 10 000 rows, one unit.

    Before it the cache has seen a million rows; `warm`: these batches, too.
    """
    draw, stage, taken = np.random.default_rng(7), stage_of(1), []
    batches = [zipf(draw.random(10_000), rows, EXPONENT) for _ in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        if way == "full":
            whole(task_of(config, Path(folder) / "versions", 1, "full"))
        found = finder_of(way, config, Path(folder), 0, 1)
        if way.startswith("incremental"):
            look_up(stage, found, zipf(draw.random(1_000_000), rows, EXPONENT))
        for keys in batches if way in ("incremental, warm", "full") else batches[:1]:
            look_up(stage, found, keys)
        before = found.used()
        for keys in batches:
            time.sleep(rest_s)
            start = time.perf_counter()
            look_up(stage, found, keys)
            taken.append(time.perf_counter() - start)
        after = found.used()
    share = (after.hits - before.hits) / (10_000 * count)
    return {
        "median": statistics.median(taken),
        "p95": sorted(taken)[int(0.95 * len(taken))],
        "hit share": share,
    }


PARTS = {f.__name__: f for f in (speed, size, latency, skewed, ranged)}


def main() -> None:
    """Runs all parts, or those that are named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="absent: all")
    parser.add_argument("--quick", action="store_true", help="small, to see that everything runs")
    parser.add_argument("--runs", type=int, default=3, help="of which the median counts (speed)")
    parser.add_argument("--anew", action="store_true", help="also what results/units.json has already")
    options = parser.parse_args()
    path = Path(__file__).parent / "results" / ("units-quick.json" if options.quick else "units.json")
    results = json.loads(path.read_text()) if path.exists() else {}
    for name in options.parts or PARTS:
        for found in PARTS[name](options.quick, {} if options.anew else results.get(name, {}), options.runs):
            results[name] = found
            path.write_text(json.dumps(results, indent=1))
            print(name, json.dumps(found)[:900], flush=True)


if __name__ == "__main__":
    main()
