"""A plan in words. Where it has several stages, first why: the binary tree, the groups of TSC, and where keys cut them."""

from collections.abc import Iterator

from joinlib.expr.types import name
from joinlib.join.config import Join
from joinlib.join.stage import Pipeline, Stage
from joinlib.plan.binary import TITLES, Binary, binary, key, named
from joinlib.plan.explain import cautions as stage_cautions
from joinlib.plan.explain import explain as explain_stage
from joinlib.plan.explain import joins, spoken
from joinlib.plan.groups import cautions as group_cautions
from joinlib.plan.groups import grouped
from joinlib.plan.holds import holds
from joinlib.plan.maps import cautions as map_cautions
from joinlib.plan.memory import cautions as memory_cautions
from joinlib.plan.memory import told
from joinlib.plan.merge import is_chain
from joinlib.plan.tsc import HASH, PROJECT, Group, Node


def explain(plan: Stage | Pipeline) -> str:
    """Several lines, for people."""
    if isinstance(plan, Stage):
        return explain_stage(plan)
    text = (
        explain_stage(plan.last, grouped=plan.grouping is not None)
        if len(plan.stages) == 1
        else _several(plan)
    )
    parts = [text] if plan.grouping is None else [text, grouped(plan, plan.grouping)]
    if plan.budget is not None:
        parts.append(_memory(plan))
    parts += [f"Memory maps\n  - {caution}" for caution in map_cautions(plan)]
    return "\n\n".join(parts)


def _memory(plan: Pipeline) -> str:
    return "\n".join(
        ["Memory", *(f"  {line}" for line in told(plan)), *(f"  - {c}" for c in memory_cautions(plan))]
    )


def cautions(plan: Pipeline) -> Iterator[str]:
    """All warnings of a plan."""
    for stage in plan.stages:
        yield from stage_cautions(stage)
    if plan.grouping is not None:
        yield from group_cautions(plan, plan.grouping)
    yield from memory_cautions(plan)
    yield from map_cautions(plan)


def _several(plan: Pipeline) -> str:
    tree = binary(plan)
    lines = [
        "Binary tree",
        *_tree(tree.root, 1),
        "",
        "Groups",
        *_groups(tree, plan),
        "",
        "Intermediates",
        *_stored(plan),
    ]
    for number, stage in enumerate(plan.stages):
        reader = plan.reader(number)[0] if stage is not plan.last else None
        text = explain_stage(stage, number, reader, reader is None and plan.grouping is not None)
        lines += ["", f"Stage {number}", *(f"  {line}".rstrip() for line in text.splitlines())]
    return "\n".join(lines)


def _tree(node: Node, depth: int) -> Iterator[str]:
    while node.kind in (HASH, PROJECT):
        node = node.inputs[0]
    yield f"{'  ' * depth}{node.label}"
    for below in node.inputs:
        yield from _tree(below, depth + 1)


def _groups(tree: Binary, plan: Pipeline) -> Iterator[str]:
    """What TSC makes one multi-way join, and what the second pass makes of that."""
    for group, parts in tree.cut:
        chains = any(is_chain(stage.tree) for stage in plan.stages)
        made = (
            "would be one multi-way join (TSC), but for join.strategy binary"
            if chains
            else "are one multi-way join (TSC)"
        )
        yield f"  {_inputs(group)}: INNER joins, one above the other, {made}"
        if len(parts) > 1:
            yield f"    cut in {len(parts)}, since rows of a key meet in one unit, and these have none in common:"
            yield from (
                f"    - {_part(part, tree, plan)}" for part in sorted(parts, key=lambda p: tree.stage[p.root])
            )
    for node, number in tree.stage.items():
        if node.kind in TITLES and node.kind != "inner":
            yield f"  {named(node)}: {node.label} stays a join of two, in stage {number}"


def _inputs(group: Group) -> str:
    return ", ".join(named(i) for i in group.inputs)


def _part(part: Group, tree: Binary, plan: Pipeline) -> str:
    number = tree.stage[part.root]
    stage = plan.stages[number]
    join = next(j for j in joins(stage.tree) if j.kind == "inner")
    classes = " and ".join(" = ".join(key(stage, k) for k in ks) for ks in zip(*join.keys, strict=True))
    return f"stage {number}: {', '.join(spoken(stage, i) for i in join.inputs)} by {classes}"


def _stored(plan: Pipeline) -> Iterator[str]:
    """The rows of stages, which later ones keep: what a multi-way join by one key would not."""
    for number in range(len(plan.stages) - 1):
        reader, given = plan.reader(number)
        stage = plan.stages[reader]
        kept = holds(stage)
        columns = ", ".join(f"{c.name} {name(c.value.type)}" for c in given.columns)
        yield f"  the result of stage {number} is stored in stage {reader}: {columns}"
        for join in joins(stage.tree):
            for child, hold in zip(join.inputs, kept[id(join)], strict=True):
                if not isinstance(child, Join) and stage.inputs[child.input].upstream == number:
                    grows = (
                        "; it grows with every match: bound the time, or set join.retention"
                        if hold.time is None
                        else ""
                    )
                    yield f"    kept {hold}{grows}"
