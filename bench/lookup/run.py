"""The figures of BS-Join on this machine, at the level of one process: `python bench/lookup/run.py
[--quick]`.

    database    rows/s against a real PostgreSQL: a query a row, one a batch, incremental cache, full cache (figure 9, in shape)
    spread      DS of hashing and of hotspot rules, and rows of each unit (figures 11a, 12)
    cache       budget against hit rate, at every Zipf exponent of the paper (figure 11b)
    lists       comparisons of random and ideal skip lists, 2^18 to 2^23 rows (figure 13)
    ranges      probes/s of sorted array, ideal and random skip list (tables 6 to 8, in shape)
    kernels     lookups/s of a core on a hit, what noting the use of an entry costs, keyed range probes on 4 M rows

Writes results/lookup.json; `tables.py` and `draw.py` make tables and plots of it. CPU seconds, so that
neighbours disturb less; against the database wall seconds, because waiting is what it costs.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from skiplist import Ideal, Random  # noqa: E402

from joinlib.lookup import kernels as loops  # noqa: E402
from joinlib.lookup.hashed import SortedHashes  # noqa: E402
from joinlib.lookup.incremental import LookupCache  # noqa: E402
from joinlib.lookup.postgres import PostgresTable  # noqa: E402
from joinlib.lookup.ranges import RangeIndex, order  # noqa: E402
from joinlib.lookup.version import Version, write  # noqa: E402
from joinlib.route.census import SAMPLE  # noqa: E402
from joinlib.route.hash import key_hash  # noqa: E402
from joinlib.route.hotspot import Reservoir, RoutingRule, rule, skew  # noqa: E402
from joinlib.route.split import split  # noqa: E402
from joinlib.source.zipf import zipf  # noqa: E402
from tests import configs  # noqa: E402

ZIPFS = (0.98, 1.04, 1.10, 1.16)
Result = dict[str, Any]


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Of the middle of three runs."""
    taken = []
    for _ in range(3):
        start = clock()
        work()
        taken.append(clock() - start)
    return sorted(taken)[1]


def block(keys: list[pa.Array]) -> pa.RecordBatch:
    """Rows as a reader hands them over: 8 bytes of key, 8 of number, 14 of text."""
    numbers = keys[0].to_numpy()
    texts = np.char.add("customer-", np.char.zfill((numbers % 100_000).astype(str), 5))
    return pa.record_batch(
        [pa.array(key_hash(keys)), keys[0], pa.array(numbers * 3), pa.array(texts)],
        ["$hash", "t.k", "t.n", "t.s"],
    )


def hashes_of(keys: np.ndarray) -> np.ndarray:
    return key_hash([pa.array(keys)])


def database(quick: bool) -> Result:
    """Rows/s at Zipf 1.1; the table is on this machine, so a round trip is as short as it can be."""
    from tests.postgres.database import PASSWORD, Database

    table_rows, batch, batches = (100_000, 20_000, 5) if quick else (1_000_000, 100_000, 8)
    draw = np.random.default_rng(1)
    batches_of_keys = [pa.array(zipf(draw.random(batch), table_rows, 1.1)) for _ in range(batches)]
    found: Result = {"table_rows": table_rows, "batch": batch, "zipf": 1.1}
    os.environ["PGPASSWORD"] = PASSWORD
    with Database(log_statement="none") as db, tempfile.TemporaryDirectory() as folder:
        rows = block([pa.array(np.arange(table_rows))])
        db.fill("customers", pa.table(rows.columns[1:], names=["k", "n", "s"]))
        db.execute("CREATE UNIQUE INDEX ON customers (k)")
        schema = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("s", pa.string())])
        reader = PostgresTable(configs.table("customers", **db.fields, table="customers"), schema)

        def fetch(keys: list[pa.Array]) -> pa.RecordBatch:
            got = reader.fetch(["k"], keys)
            return pa.record_batch([pa.array(key_hash([got.column("k")])), *got.columns], rows.schema.names)

        few = batches_of_keys[0].slice(0, 500)
        start = time.perf_counter()
        for at in range(len(few)):
            fetch([few.slice(at, 1)])
        found["one query a row"] = len(few) / (time.perf_counter() - start)
        start = time.perf_counter()
        for keys in batches_of_keys:
            fetch([keys.unique()])
        found["one query a batch"] = batch * batches / (time.perf_counter() - start)
        cache = LookupCache(Path(folder) / "cache", rows.schema, ["t.k"], 64 << 20)
        for keys in batches_of_keys[: batches // 2]:
            cache.lookup([keys], fetch, 0)
        before, start = cache.figures, time.perf_counter()
        for keys in batches_of_keys[batches // 2 :]:
            cache.lookup([keys], fetch, 0)
        warm = len(batches_of_keys) - batches // 2
        found["incremental, new keys among them"] = batch * warm / (time.perf_counter() - start)
        found["incremental hit rate"] = (cache.figures.hits - before.hits) / (
            cache.figures.probes - before.probes
        )
        start = time.perf_counter()
        for keys in batches_of_keys:
            cache.lookup([keys], fetch, 0)
        found["incremental, warm"] = batch * batches / (time.perf_counter() - start)
        found["incremental bytes"], found["incremental budget"] = cache.bytes, 64 << 20
        write(Path(folder) / "1", block([pa.array(np.arange(table_rows))]))
        version = Version(Path(folder) / "1", ["t.k"])

        def whole() -> None:
            for keys in batches_of_keys:
                for _, at in version.probe([keys]):
                    version.rows.take(pa.array(at))

        whole()
        found["full"] = batch * batches / seconds(whole, time.perf_counter)
    return found


def spread(quick: bool) -> Result:
    """DS on batches that the rule has not seen, and each unit's share of the rows."""
    rows, keys, units, draw = 100_000 if quick else 1_000_000, 1_000_000, 16, np.random.default_rng(2)
    plain = RoutingRule(tuple(u << 60 for u in range(1, units)))
    found: Result = {"units": units, "rows": rows, "keys": keys}
    for exponent in ZIPFS:
        before, after = (hashes_of(zipf(draw.random(rows), keys, exponent)) for _ in range(2))
        reservoir = Reservoir(SAMPLE, 0)
        reservoir.see(before)
        counts = {
            name: np.bincount(r.units(after), minlength=units)
            for name, r in (("hash", plain), ("hotspot", rule(reservoir.sample, units)))
        }
        found[str(exponent)] = {
            name: {"DS": skew(c.tolist()), "share": (c / c.sum()).tolist()} for name, c in counts.items()
        }
    return found


def cache(quick: bool) -> Result:
    """Hit rate of the second half of 20 batches, by budget; the budget is measured on the disk."""
    keys, batch, draw = (
        (100_000, 10_000, np.random.default_rng(3))
        if quick
        else (1_000_000, 100_000, np.random.default_rng(3))
    )
    found: Result = {"keys": keys, "batch": batch}
    for exponent in ZIPFS:
        found[str(exponent)] = {}
        for budget in [1 << 20, 4 << 20, 16 << 20, 64 << 20]:
            with tempfile.TemporaryDirectory() as folder:
                kept = LookupCache(Path(folder), block([pa.array([1])]).schema, ["t.k"], budget)
                for number in range(20):
                    if number == 10:
                        half = kept.figures
                    kept.lookup([pa.array(zipf(draw.random(batch), keys, exponent))], block, 0)
                hits = (kept.figures.hits - half.hits) / (kept.figures.probes - half.probes)
                taken = sum(f.stat().st_blocks * 512 for f in Path(folder).iterdir())
                found[str(exponent)][str(budget >> 20)] = {"hit rate": hits, "bytes": taken}
    return found


def lists(quick: bool) -> Result:
    """Comparisons of one query: the mean over queries, and the variance of that mean over lists that are
    built anew.
    """
    draw, found = np.random.default_rng(4), {}
    for bits in range(18, 21 if quick else 24):
        keys = np.sort(draw.integers(0, 2**63, 1 << bits, dtype=np.uint64))
        asked = keys[draw.integers(0, len(keys), 20_000)]
        ideal = [float(Ideal(keys).positions(asked)[1].mean()) for _ in range(2)]
        random = [float(Random.of(keys, seed).positions(asked)[1].mean()) for seed in range(10)]
        found[str(bits)] = {
            "ideal": ideal[0],
            "ideal variance": float(np.var(ideal)),
            "random": float(np.mean(random)),
            "random variance": float(np.var(random)),
        }
    return found


def ranges(quick: bool) -> Result:
    """Probes/s over 2^21 to 2^23 rows: searches in random order, and range lookups as they run."""
    draw, found, probes = np.random.default_rng(5), {}, 200_000
    for bits in (18,) if quick else (21, 22, 23):
        rows = 1 << bits
        lows = np.sort(draw.integers(0, 2**40, rows, dtype=np.uint64))
        asked = draw.integers(0, 2**40, probes, dtype=np.uint64)
        none, wanted = np.zeros(rows, np.uint64), np.zeros(probes, np.uint64)
        highs = lows + np.uint64(2**40 // rows)
        by = order(none, lows, highs)
        index, ideal, random = RangeIndex.of(none, lows[by], highs[by]), Ideal(lows), Random.of(lows, 0)
        matches = sum(len(p) for p, _ in index.probe(wanted, asked, asked))
        found[str(bits)] = {
            "matches a probe": matches / probes,
            "sorted array, with its matches": probes
            / seconds(lambda: list(index.probe(wanted, asked, asked))),  # noqa: B023
            "binary search": probes / seconds(lambda: np.searchsorted(lows, asked, side="right")),  # noqa: B023
            "ideal skip list": probes / seconds(lambda: ideal.positions(asked)),  # noqa: B023
            "random skip list": probes / seconds(lambda: random.positions(asked)),  # noqa: B023
        }
    keys = np.sort(hashes_of(np.arange(1_000_000)))
    asked = hashes_of(draw.integers(0, 1_000_000, 1_000_000))
    table = SortedHashes.of(keys)
    list(table.probe(asked[:10]))
    found["equality, 1 M keys"] = {"probes/s": len(asked) / seconds(lambda: list(table.probe(asked)))}
    return found


def kernels(quick: bool) -> Result:
    """Lookups/s of CPU on 1 M keys, batches of 100 000 at Zipf 1.1 in the order in which units see them: by
    their hashes.
    """
    keys, batch, draw = 100_000 if quick else 1_000_000, 100_000, np.random.default_rng(6)
    batches = [split_order(zipf(draw.random(batch), keys, 1.1)) for _ in range(10)]
    asked = [hashes_of(b) for b in batches]
    table = SortedHashes.of(np.sort(hashes_of(np.arange(keys))))
    found: Result = {"keys": keys, "batch": batch}

    def rate(work: Callable[[int], object]) -> float:
        work(0)
        return batch * len(batches) / seconds(lambda: [work(at) for at in range(len(batches))])

    found["full, probe"] = rate(lambda at: list(table.probe(asked[at])))
    with tempfile.TemporaryDirectory() as folder:
        kept = LookupCache(Path(folder), block([pa.array([1])]).schema, ["t.k"], 512 << 20)
        for part in np.array_split(draw.permutation(keys), 10):
            kept.lookup([pa.array(part)], block, 0)
        e, places = kept.entries, [np.empty(batch, np.int64) for _ in range(3)]
        start = np.full(batch, -1, np.int64)

        def find(used: int) -> float:
            """Of entries that are noted as used already, or not yet: each row's first find then writes."""
            taken = 0.0
            for some in asked:
                e.lines[:, loops.USED] = used
                before = time.process_time()
                loops.find(e.heads, e.lines, e.bits, e.tail, 0, some, start, *places)
                taken += time.process_time() - before
            return batch * len(asked) / taken

        found["incremental, probe"] = max(find(1) for _ in range(5))
        found["incremental, probe and note of use"] = max(find(0) for _ in range(5))
        found["incremental, rows gathered"] = rate(lambda at: kept.lookup([pa.array(batches[at])], block, 0))
        assert kept.figures.hits == kept.figures.probes - keys, "every key was there"
    found["note of use, of the probe"] = (
        found["incremental, probe"] / found["incremental, probe and note of use"] - 1
    )
    return found | keyed_ranges(quick)


def split_order(keys: np.ndarray) -> np.ndarray:
    """As map tasks hand rows to units."""
    (_, part), *_ = split(pa.record_batch([pa.array(hashes_of(keys)), pa.array(keys)], ["$hash", "k"]), 1)
    return np.asarray(part.column(1))


def keyed_ranges(quick: bool) -> Result:
    """Four ranges for each key, one of which holds the point."""
    keys, probes, draw = 10_000 if quick else 1_000_000, 1_000_000, np.random.default_rng(7)
    hashes = np.repeat(hashes_of(np.arange(keys)), 4)
    lows = np.tile(np.arange(4, dtype=np.uint64) * 100, keys)
    by = order(hashes, lows, lows + 99)
    index = RangeIndex.of(hashes[by], lows[by], lows[by] + 99)
    asked = hashes_of(draw.integers(0, keys, probes))
    points = draw.integers(0, 400, probes, dtype=np.uint64)
    assert sum(len(p) for p, _ in index.probe(asked, points, points)) == probes
    rate = probes / seconds(lambda: list(index.probe(asked, points, points)))
    return {"range rows": 4 * keys, "range probes with a key": rate}


PARTS = {f.__name__: f for f in (database, spread, cache, lists, ranges, kernels)}


def main() -> None:
    """Runs all parts, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="absent: all")
    parser.add_argument("--quick", action="store_true", help="small, to see that everything runs")
    options = parser.parse_args()
    path = Path(__file__).parent / "results" / ("quick.json" if options.quick else "lookup.json")
    path.parent.mkdir(exist_ok=True)
    results = json.loads(path.read_text()) if path.exists() else {}
    for name in options.parts or PARTS:
        results[name] = PARTS[name](options.quick)
        path.write_text(json.dumps(results, indent=1))
        print(name, json.dumps(results[name])[:600], flush=True)


if __name__ == "__main__":
    main()
