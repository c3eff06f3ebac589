"""Joins with several keys: each plan of StreamJoin, Flink's chain and its multi-way join, Spark's chain, in one run.

    .venv/bin/python bench/many_keys/run.py                          # all blocks, TPC-H at scale 1, TPC-DS at 10
    .venv/bin/python bench/many_keys/run.py q3 q3-all --repetitions 5
    .venv/bin/python bench/many_keys/run.py q5 --every               # every order of stages that is a plan of its own
    .venv/bin/python bench/many_keys/run.py --tiny                   # scale 0.01: does everything run?

Each outcome is written when it is had. What is measured, and how: README.md.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path += [
    str(Path(__file__).parents[1]),
    str(Path(__file__).parents[1] / "nway"),
    str(Path(__file__).parents[2]),
]
import draw
import tables
import task
import tpcds
from blocks import BLOCKS, Block
from measure import Terms, measure, prepare, warm_page_cache
from outcome import Failure, Outcome
from plans import Plan, plans
from suite import Suite, answers, options
from systems import FLINK, JOIN, SPARK, script

RESULTS = Path(__file__).parent / "results"
WORK = task.CACHE / "work"
LIMIT_S = 900
EVENTS = ("--changes", "events")
PEERS: Mapping[str, Callable[[Path, Path], list[str]]] = {
    "flink-chain": script(FLINK, *EVENTS, "--state", "heap"),
    "flink-multi-join": script(FLINK, *EVENTS, "--state", "heap", "--multi-join"),
    "flink-chain-rocksdb": script(
        FLINK, *EVENTS, "--state", "rocksdb", "--checkpoint", "3 s", "--measure-state"
    ),
    "spark-chain-memory": script(SPARK, "--provider", "memory"),
    "spark-chain-rocksdb": script(SPARK, "--provider", "rocksdb"),
}


def folder(block: Block, scale: float) -> Path:
    """Where a block's tables lie."""
    if block.data == "tpch":
        return tables.ensure(tables.Shape(scale))
    return tpcds.ensure(tpcds.Shape(10 * scale, 0))


def one(query: str, system: str, scale: float, ours: Mapping[str, Mapping[str, Plan]]) -> Outcome | Failure:
    """One run, held to the right number of rows."""
    block = BLOCKS[query]
    data = folder(block, scale)
    for name in block.tables:
        warm_page_cache(data / name)
    right = answers(data, query, block.tables, block.sql())
    given = replace(task.read(data), rows=task.rows_of(data, block.tables), results=right)
    work = WORK / f"many-keys-{query}-{system.replace(' ', '-')}"
    plan = ours[query].get(system)
    text = work.with_suffix(".sql")
    text.write_text(plan.sql(block) if plan else block.sql(block.peers))
    made = PEERS[system] if plan is None else script(JOIN, *plan.options)
    command = [*made(data, work), "--query", str(text), "--inputs", *block.tables, "--limit", str(LIMIT_S)]
    return measure(system, command, work.with_suffix(".log"), Terms(given, LIMIT_S + 120))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options(asked, BLOCKS, ["ours", *PEERS])
    asked.add_argument("--scale", type=float, default=1, help="of TPC-H; ten times this of TPC-DS")
    asked.add_argument("--every", action="store_true", help="all orders of stages, not those chosen by hand")
    asked.add_argument("--tiny", action="store_true", help="scale 0.01: does everything run?")
    given = asked.parse_args()
    scale, queries = 0.01 if given.tiny else given.scale, given.queries or [*BLOCKS]
    for place in (RESULTS, WORK):
        place.mkdir(parents=True, exist_ok=True)
    ours = {name: plans(BLOCKS[name], folder(BLOCKS[name], scale), given.every) for name in queries}
    chosen = given.systems or ["ours", *PEERS]
    systems = {name: [s for c in chosen for s in (ours[name] if c == "ours" else [c])] for name in queries}
    path = WORK / "many_keys-tiny.json" if given.tiny else RESULTS / "many_keys.json"
    if given.tiny:
        path.unlink(missing_ok=True)
    prepare()
    suite = Suite(path, partial(one, scale=scale, ours=ours))
    whole = suite.run(systems, given.repetitions, given.go_on, scale=scale)
    print(draw.write(suite.path).read_text())
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
