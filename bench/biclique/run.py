"""Join-biclique against join-matrix, and ContRand against hashing: `python bench/biclique/run.py` writes
results/biclique.json.

Units are played one after the other in this process: real routing, blocks, segments, indexes and manifests,
but no Spark. So bytes are those that would be sent and stored, and a batch's latency is that of its slowest
unit, with a core for each.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from joinlib.join.arrived import Blocks
from joinlib.join.rows import Tuples
from joinlib.join.unit import UnitJoin
from joinlib.model.inputs import Group
from joinlib.model.operator import Operator
from joinlib.model.stage import Stage
from joinlib.model.tuning import Tuning
from joinlib.plan import JoinOptions, SourceInput, build
from joinlib.plan.explain.biclique import matrix
from joinlib.plan.layout import layout
from joinlib.route import contrand
from joinlib.route.biclique import BOTH, Rules, Sent, homes, routed, subgroup
from joinlib.route.hash import key_hash, spread
from joinlib.route.split import prepare
from joinlib.source.zipf import zipf
from joinlib.state.manifest import decode, empty
from joinlib.state.unit import held as living
from joinlib.state.unit import hold

HERE = Path(__file__).parent / "results"
RUNS = 5
SCHEMA = pa.schema([("key", pa.int64()), ("id", pa.int64()), ("text", pa.string())])
QUERIES = {
    "Q5": ("SELECT a.id AS ai, b.id AS bi FROM a JOIN b ON a.key = b.key", 10**6),
    "Band": ("SELECT a.id AS ai, b.id AS bi FROM a JOIN b ON ABS(a.key - b.key) <= 1", 10**7),
}


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--rows", type=int, default=200_000, help="of each input")
    asked.add_argument("--batches", type=int, default=4)
    given = asked.parse_args()
    found = {
        "rows": given.rows,
        "batches": given.batches,
        "models": [m for name in QUERIES for m in models(name, given.rows, given.batches)],
        "skew": [skew(exponent) for exponent in (0.98, 1.04, 1.1, 1.16)],
    }
    HERE.mkdir(exist_ok=True)
    (HERE / "biclique.json").write_text(json.dumps(found, indent=1) + "\n")


def models(name: str, rows: int, batches: int) -> Iterator[dict[str, Any]]:
    """One query by every model and number of units: of some runs in turns, the one with the median batch."""
    sql, keys = QUERIES[name]
    parts = [inputs(rows // batches, keys, batch) for batch in range(batches)]
    source = SourceInput(SCHEMA)
    for units in (1, 4, 16, 64):
        stages = {
            label: build(sql, {"a": source, "b": source}, JoinOptions(units=units, **options))
            for label, options in settings(name, units)
        }
        ran: dict[str, list[dict[str, Any]]] = {label: [] for label in stages}
        for _ in range(RUNS):
            for label, stage in stages.items():
                ran[label].append(played(stage, parts, label == "matrix"))
        for label, outcomes in ran.items():
            middle = sorted(outcomes, key=lambda o: o["batch_s"])[RUNS // 2]
            spread = [min(o["batch_s"] for o in outcomes), max(o["batch_s"] for o in outcomes)]
            yield {"query": name, "units": units, "model": label, **middle, "batch_s_spread": spread}
            print(name, units, label, f"{1e3 * middle['batch_s']:.1f} ms", f"{middle['sent_mb']:.0f} MB")


def settings(name: str, units: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is compared; subgroups as in the paper's table 3."""
    if name == "Band":
        yield "biclique, cells", {}
        yield "biclique, random", {"subgroups": 1}
        yield "matrix", {"subgroups": 1}
        return
    yield "biclique, random", {"strategy": "biclique", "subgroups": 1}
    if units >= 16:
        yield "biclique, 4 subgroups", {"strategy": "biclique", "subgroups": 4}
    yield "biclique, a subgroup a unit", {"strategy": "biclique"}
    yield "matrix", {"strategy": "biclique", "subgroups": 1}


def inputs(rows: int, keys: int, seed: int) -> list[pa.RecordBatch]:
    draw = np.random.default_rng(seed)
    text = pa.array(["x" * 14] * rows)
    return [
        pa.record_batch([pa.array(draw.integers(0, keys, rows)), pa.array(np.arange(rows)), text], SCHEMA)
        for _ in "ab"
    ]


def copies(stage: Stage, block: pa.RecordBatch, number: int, seed: int, as_matrix: bool) -> Iterator[Sent]:
    """What is sent for the rows of one input."""
    if not as_matrix:
        assert stage.route is not None
        yield from routed(block, stage.route, number, Rules(), seed)
        return
    rows, columns = matrix(stage.units)
    side, other = (rows, columns) if number == 0 else (columns, rows)
    at = (spread(block.num_rows, seed) % np.uint64(side)).astype(np.int64)
    for one in range(side):
        part = block.filter(pa.array(at == one))
        for two in range(other):
            unit = one * columns + two if number == 0 else two * columns + one
            yield Sent(unit, BOTH, part)


def counted(found: Iterator[Tuples]) -> int:
    """How many results; nothing becomes of them."""
    return sum(len(t) for t in found)


def played(
    stage: Stage,
    parts: list[list[pa.RecordBatch]],
    as_matrix: bool = False,
    sink: Callable[[Iterator[Tuples]], int] = counted,
) -> dict[str, Any]:
    """All batches through all units, their results into the sink."""
    tuning, folder = Tuning(), Path(tempfile.mkdtemp())
    root = layout(stage.tree, stage.inputs, stage.above, stage.index)
    assert isinstance(root, Operator)
    sides = [s for op in root.operators() for s in op.sides]
    manifests = {u: empty(len(sides), 2).encode() for u in range(stage.units)}
    sent, results, slowest, work = 0, 0, [], 0.0
    indexes = dict.fromkeys(manifests, 0)
    for batch, tables in enumerate(parts):
        arrived: dict[int, list[tuple[int, int, pa.RecordBatch, int]]] = {u: [] for u in manifests}
        for plan, table in zip(stage.inputs, tables, strict=True):
            block = prepare(plan, table.select(plan.read), batch)
            for at, one in enumerate(copies(stage, block, plan.number, batch, as_matrix)):
                arrived[one.unit].append((plan.number, at, one.rows, one.role))
                sent += one.rows.nbytes
        seconds = []
        for u, rows in arrived.items():
            began, before = time.perf_counter(), decode(manifests[u])
            where = folder / f"{u}", folder / f"i{u}"
            with hold(*where, stage.skip_bits, sides, tuning, before) as unit:
                join = UnitJoin(root, stage.inputs, stage.timed, stage.final_close, tuning, unit, before)
                results += sink(join.run(batch, Blocks(rows, ())))
                indexes[u] = unit.index_bytes
            manifests[u] = join.manifest.encode()
            seconds.append(time.perf_counter() - began)
        slowest.append(max(seconds))
        work += sum(seconds)
    held = [living(decode(m)).bytes for m in manifests.values()]
    shutil.rmtree(folder)
    return {
        "state_mb": sum(held) / 1e6,
        "index_mb": sum(indexes.values()) / 1e6,
        "unit_mb": max(held) / 1e6,
        "sent_mb": sent / 1e6,
        "results": results,
        "batch_s": float(np.median(slowest)),
        "work_s": work,
    }


def skew(exponent: float, units: int = 16, rows: int = 1_000_000, batches: int = 5) -> dict[str, Any]:
    """The share of each unit in what is stored, in units of the mean: hashing, and ContRand once it knows the
    hot keys.
    """
    route = build(
        QUERIES["Q5"][0],
        dict.fromkeys("ab", SourceInput(SCHEMA)),
        JoinOptions(units=units, strategy="biclique"),
    ).route
    assert route is not None
    group, rules = route.groups[0], Rules()
    plain, split, probes = np.zeros(units), np.zeros(units), 0
    for batch in range(batches):
        draw = np.random.default_rng(batch).random(rows // batches)
        hashes = key_hash([pa.array(zipf(draw, 100_000, exponent))])
        if batch:  # of the first one nothing is known yet
            plain += loads(group, hashes, {}, batch)
            split += loads(group, hashes, rules.store[0], batch)
            probes += int(subgroup(group, hashes, rules.probe[0])[1].sum())
        rules = contrand.following(rules, route, [hashes[:32_768], hashes[:32_768]])
    return {
        "zipf": exponent,
        "units": units,
        "hash": (plain / plain.mean()).tolist(),
        "contrand": (split / split.mean()).tolist(),
        "hot_keys": len(rules.store[0]),
        "copies_a_row": probes / (rows - rows // batches),
    }


def loads(group: Group, hashes: Any, hot: Any, seed: int) -> Any:
    return np.bincount(homes(group, hashes, hot, seed), minlength=group.units)


if __name__ == "__main__":
    main()
