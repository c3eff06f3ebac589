"""The dumbest way to run a stage: every pair of rows, in Python. What a plan means, for tests."""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import pyarrow as pa

from joinlib.expr import Expr
from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Join, Leaf
from joinlib.plan import Pipeline, Stage

Row = dict[str, Any]


def run_all(plan: Pipeline, tables: Mapping[str, pa.Table]) -> list[tuple[Any, ...]]:
    """Every result row of the stages over these inputs: the rows of each are a table for later ones."""
    known = dict(tables)
    rows: list[tuple[Any, ...]] = []
    for number, stage in enumerate(plan.stages):
        rows = run(stage, known)
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(stage.schema)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, stage.schema, strict=True)]
        known[f"$stage{number}"] = pa.table(arrays, schema=stage.schema)
    return rows


def run(stage: Stage, tables: Mapping[str, pa.Table]) -> list[tuple[Any, ...]]:
    """Every result row of the stage over these inputs."""
    types = {c.name: c.value.type for i in stage.inputs for c in i.columns}
    rows = _join(stage.tree, stage, types, tables)
    columns = [_values(c.value, rows, types) for c in stage.select]
    return list(zip(*columns, strict=True)) if rows else []


def _input(plan: InputPlan, table: pa.Table) -> list[Row]:
    """Rows of an input as they are stored; only the columns that the plan says it reads can be read."""
    prefix = f"{plan.alias}." if plan.upstream is None else ""
    read = {f"{prefix}{n}": table[n].combine_chunks() for n in plan.read}
    count = table.num_rows
    if plan.filter is not None:
        mask = pa.array(plan.filter.evaluate(read.__getitem__, count))
        read = {n: c.filter(mask) for n, c in read.items()}
        count = mask.to_pylist().count(True)
    values = {c.name: c.value.evaluate(read.__getitem__, count).to_pylist() for c in plan.columns}
    rows = [{n: v[at] for n, v in values.items()} for at in range(count)]
    return [r for r in rows if plan.keep_null_keys or None not in [r[k] for k in plan.keys]]


def _join(
    tree: Join | Leaf, stage: Stage, types: Mapping[str, pa.DataType], tables: Mapping[str, pa.Table]
) -> list[Row]:
    if isinstance(tree, Leaf):
        plan = stage.inputs[tree.input]
        return _input(plan, tables[plan.source])
    sides = [_join(t, stage, types, tables) for t in tree.inputs]
    names = [_names(t, stage) for t in tree.inputs]
    places = [
        p
        for p in product(*(range(len(s)) for s in sides))
        if _keys_agree(tree, [s[i] for s, i in zip(sides, p)])
    ]
    merged = [_merge(sides[n][i] for n, i in enumerate(p)) for p in places]
    chosen = [p for p, ok in zip(places, _matching(tree, merged, types)) if ok]
    rows = _shaped(tree, sides, names, chosen)
    return [r for r, ok in zip(rows, _true(tree.where, rows, types)) if ok]


def _shaped(
    tree: Join, sides: list[list[Row]], names: list[list[str]], chosen: list[tuple[int, ...]]
) -> list[Row]:
    met = [{p[n] for p in chosen} for n in range(len(sides))]
    if tree.kind in ("semi", "anti"):
        return [r for i, r in enumerate(sides[0]) if (i in met[0]) == (tree.kind == "semi")]
    rows = [_merge(sides[n][i] for n, i in enumerate(p)) for p in chosen]
    if tree.kind in ("left", "full"):
        rows += [r | dict.fromkeys(names[1]) for i, r in enumerate(sides[0]) if i not in met[0]]
    if tree.kind == "full":
        rows += [dict.fromkeys(names[0]) | r for i, r in enumerate(sides[1]) if i not in met[1]]
    return rows


def _names(tree: Join | Leaf, stage: Stage) -> list[str]:
    if isinstance(tree, Leaf):
        return [c.name for c in stage.inputs[tree.input].columns]
    below = tree.inputs[:1] if tree.kind in ("semi", "anti") else tree.inputs
    return [n for t in below for n in _names(t, stage)]


def _merge(rows: Iterable[Row]) -> Row:
    return {n: v for r in rows for n, v in r.items()}


def _keys_agree(tree: Join, rows: list[Row]) -> bool:
    keys = [[r[k] for k in ks] for r, ks in zip(rows, tree.keys, strict=True)]
    return None not in keys[0] and all(k == keys[0] for k in keys)


def _matching(tree: Join, rows: list[Row], types: Mapping[str, pa.DataType]) -> list[bool]:
    in_time = [all(_within(b.low_us, b.high_us, r[b.left], r[b.right]) for b in tree.bounds) for r in rows]
    return [a and b for a, b in zip(in_time, _true(tree.predicate, rows, types), strict=True)]


def _within(low: int | None, high: int | None, left: Any, right: Any) -> bool:
    if left is None or right is None:
        return False
    apart = round((right - left).total_seconds() * 1_000_000)
    return (low is None or low <= apart) and (high is None or apart <= high)


def _true(value: Expr | None, rows: list[Row], types: Mapping[str, pa.DataType]) -> list[bool]:
    return [True] * len(rows) if value is None else [v is True for v in _values(value, rows, types)]


def _values(value: Expr, rows: list[Row], types: Mapping[str, pa.DataType]) -> list[Any]:
    columns = {n: pa.array([r[n] for r in rows], types[n]) for n in value.columns}
    return list(value.evaluate(columns.__getitem__, len(rows)).to_pylist())
