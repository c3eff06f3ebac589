"""Joins in one form, however they are run: as a tree of operators, or by paths."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from joinlib.expr import Expr
from joinlib.expr.bound import Bound
from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Kind, Leaf
from joinlib.model.operator import Operator
from joinlib.model.side import SideConfig
from joinlib.model.stage import HopStage, PathStage, Pipeline, Stage
from joinlib.plan.paths import as_asked

Equal = tuple[str, str]  # two columns that are equal in a match


@dataclass(frozen=True)
class JoinForm:
    """One join: what is equal in a match, and what else holds."""

    kind: Kind
    children: tuple["JoinForm | Leaf", ...]
    equal: tuple[Equal, ...]
    bounds: tuple[Bound, ...]
    predicate: Expr | None
    where: Expr | None
    sides: tuple[SideConfig, ...]  # of the children
    eager: bool

    def forms(self) -> Iterator["JoinForm"]:
        """Yield all joins of this tree, children first."""
        for child in self.children:
            if isinstance(child, JoinForm):
                yield from child.forms()
        yield self


@dataclass(frozen=True)
class Level:
    """A stage that joins, or the stages of a join by paths."""

    number: int  # of the stage that has the state
    last: int  # of the stage that makes its rows
    inputs: tuple[InputPlan, ...]  # a leaf is one of them, by its position
    own: tuple[int, ...]  # their numbers in the stage
    root: JoinForm | Leaf
    timed: bool

    @property
    def forms(self) -> tuple[JoinForm, ...]:
        return () if isinstance(self.root, Leaf) else tuple(self.root.forms())

    @property
    def covering(self) -> tuple[int, ...]:
        """Leaves such that each row is made of a row of one of them at least."""
        every = range(len(self.inputs)) if isinstance(self.root, Leaf) else _covering(self.root)
        return tuple(every)

    @property
    def optional(self) -> frozenset[int]:
        """Leaves of which a row may lack a row: its columns are NULL then."""
        outer = (form for form in self.forms if form.kind in ("left", "full"))
        lacking = (child for form in outer for child in form.children[form.kind == "left" :])
        return frozenset(leaf for child in lacking for leaf in _leaves(child))

    @property
    def upsert(self) -> bool:
        """Whether its rows are the last ones of their keys."""
        return any(form.kind == "upsert" for form in self.forms)

    @property
    def equal(self) -> tuple[Equal, ...]:
        """All columns that are equal in a match."""
        return tuple(pair for form in self.forms for pair in form.equal)


def _covering(node: JoinForm | Leaf) -> Iterator[int]:
    if isinstance(node, Leaf):
        yield node.input
        return
    for child in node.children if node.kind == "full" else node.children[:1]:
        yield from _covering(child)


def _leaves(node: JoinForm | Leaf) -> Iterator[int]:
    if isinstance(node, Leaf):
        yield node.input
        return
    for child in node.children:
        yield from _leaves(child)


def level_of(pipeline: Pipeline, number: int) -> Level:
    """Return the joins of a stage, or of the path join whose last stage it is; one that does not join has a leaf."""
    number = pipeline.store_of(number)
    stage = pipeline.stages[number]
    if isinstance(stage, PathStage):
        return _paths(pipeline, number, stage)
    own = tuple(plan.number for plan in stage.inputs)
    root, timed = (_form(stage.root), stage.timed) if isinstance(stage, Stage) else (Leaf(0), False)
    return Level(number, number, stage.inputs, own, root, timed)


def _form(root: Operator | Leaf) -> JoinForm | Leaf:
    if isinstance(root, Leaf):
        return root
    first, *others = (side.keys for side in root.sides)
    equal = tuple(pair for keys in others for pair in zip(first, keys, strict=True))
    children = tuple(map(_form, root.children))
    return JoinForm(
        root.kind, children, equal, root.bounds, root.predicate, root.where, root.sides, root.eager
    )


def _paths(pipeline: Pipeline, number: int, stage: PathStage) -> Level:
    """Return the joins by paths as one: its inputs are those of the graph."""
    asked = as_asked(stage)
    above = {
        n: s
        for n, s in enumerate(pipeline.stages)
        if isinstance(s, HopStage) and pipeline.store_of(n) == number
    }
    legs = [*stage.legs, *(leg for hop in above.values() for leg in hop.legs)]
    probes = [hop.operator.sides for leg in legs for hop in leg.hops]
    equal = dict.fromkeys(pair for one, other in probes for pair in zip(one.keys, other.keys, strict=True))
    keys = [tuple(k for pair in equal for k in pair if k in plan.schema.names) for plan in asked.inputs]
    inputs = tuple(
        replace(asked.inputs[home], number=n, keys=tuple(dict.fromkeys(keys[home])))
        for n, home in enumerate(stage.homes)
    )
    stored = {a.input: side for a, side in reversed([*zip(stage.arrangements, stage.sides, strict=True)])}
    sides = tuple(stored[n] for n in range(len(inputs)))
    tree = stage.tree
    root = JoinForm(
        "inner",
        tuple(map(Leaf, range(len(inputs)))),
        tuple(equal),
        tree.bounds,
        tree.predicate,
        tree.where,
        sides,
        False,
    )
    last = next(n for n, s in above.items() if s.last)
    return Level(number, last, inputs, stage.homes, root, stage.timed)
