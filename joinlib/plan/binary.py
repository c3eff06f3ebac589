"""The joins of a query as a tree of binary joins, on which TSC groups them; and how stages cut the groups."""

from collections.abc import Iterator
from dataclasses import dataclass

from joinlib.join.config import Join, Leaf
from joinlib.join.stage import Pipeline, Stage
from joinlib.plan import tsc

TITLES = {"inner": "INNER", "left": "LEFT", "full": "FULL", "semi": "LEFT SEMI", "anti": "LEFT ANTI"}


@dataclass(frozen=True)
class Binary:
    """The tree, and the stage of each of its joins. Joins that are not inner have their kind as the node's."""

    root: tsc.Node
    stage: dict[tsc.Node, int]

    @property
    def groups(self) -> tuple[tsc.Group, ...]:
        """As TSC finds them: inner joins, one above the other."""
        return tsc.groups(self.root)

    @property
    def cut(self) -> tuple[tuple[tsc.Group, tuple[tsc.Group, ...]], ...]:
        """Each group, and what is left of it where a join by another key begins."""
        return tuple((g, tsc.split(g, lambda a, b: self.stage[a] == self.stage[b])) for g in self.groups)


def binary(plan: Pipeline) -> Binary:
    """Left-deep within each operator, an exchange below each join; rows of a stage are projected to what is read."""
    maker = _Maker(plan)
    return Binary(maker.stage_root(len(plan.stages) - 1), maker.homes)


class _Maker:
    def __init__(self, plan: Pipeline) -> None:
        self.plan = plan
        self.homes: dict[tsc.Node, int] = {}

    def stage_root(self, number: int) -> tsc.Node:
        return self._node(self.plan.stages[number].tree, number)

    def _node(self, tree: Join | Leaf, number: int) -> tsc.Node:
        if isinstance(tree, Leaf):
            return self._input(tree, number)
        node = self._node(tree.inputs[0], number)
        for at, child in enumerate(tree.inputs[1:], 1):
            sides = tuple(tsc.Node(tsc.HASH, (side,)) for side in (node, self._node(child, number)))
            label = f"{TITLES[tree.kind]} by {' and '.join(self._keys(tree, at, number))}"
            node = tsc.Node(tsc.JOIN if tree.kind == "inner" else tree.kind, sides, label)
            self.homes[node] = number
        return node

    def _keys(self, tree: Join, at: int, number: int) -> Iterator[str]:
        stage = self.plan.stages[number]
        for one, two in zip(tree.keys[0], tree.keys[at], strict=True):
            yield f"{key(stage, one)} = {key(stage, two)}"

    def _input(self, leaf: Leaf, number: int) -> tsc.Node:
        plan = self.plan.stages[number].inputs[leaf.input]
        if plan.upstream is None:
            return tsc.Node("scan", (), plan.alias)
        return tsc.Node(tsc.PROJECT, (self.stage_root(plan.upstream),), ", ".join(plan.read))


def key(stage: Stage, column: str) -> str:
    """A key as the text has it: a column, or what it is computed of."""
    return next(c.value.sql for i in stage.inputs for c in i.columns if c.name == column)


def named(node: tsc.Node) -> str:
    """The inputs of the spec below a node, by their names in the SQL."""
    return ", ".join(_scans(node))


def _scans(node: tsc.Node) -> Iterator[str]:
    if not node.inputs:
        yield node.label
    for below in node.inputs:
        yield from _scans(below)
