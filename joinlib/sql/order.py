"""The stages of inner joins in a given order.

    a.k = b.k AND b.k = c.k AND c.j = d.j      in the order (("a", "c"), "b"), "d"

    stage 0   a, c   on a.k = c.k, which follows from the text
    stage 1   its rows, b   on a.k = b.k
    stage 2   its rows, d   on c.j = d.j

A shape names a join of another kind by its first input.

Law: a result agrees in every class and in the rest (`classes`). Each stage therefore compares one member of a class
for each of its parts, in the type of the class, and decides what of the rest it is the first to see.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.compare import compare
from joinlib.model.order import Shape, leaves
from joinlib.path.choice import PathPlan
from joinlib.sql.classes import KeyClasses, key_classes
from joinlib.sql.graph import Clause, Joined, Result, Scan, Table, Tree, inputs
from joinlib.sql.keys import key_count


@dataclass(frozen=True)
class InnerGroup:
    """Inner joins by several keys that are not yet in an order."""

    tree: Joined
    parts: tuple[Tree, ...]  # inputs, and joins of other kinds, in the order of the text
    known: KeyClasses  # inputs are numbered as parts
    text: Shape  # the order of the text
    reads: frozenset[str]  # columns that are read above

    @property
    def names(self) -> tuple[str, ...]:
        """The parts by the first alias below each."""
        return tuple(map(leaf, self.parts))

    @property
    def whole(self) -> bool:
        """Whether the text's order leaves the parts as they are: it may end an outer join among them first."""
        return self._joins(self.text)

    def fits(self, shape: Shape) -> bool:
        """Whether a shape joins all parts of the group, each stage by some key."""
        return self._joins(shape) and self._keyed(shape)

    def _joins(self, shape: Shape) -> bool:
        return sorted(leaves(shape)) == sorted(self.names)

    def ordered(self, shape: Shape) -> Shape:
        """Return a shape with the parts of each stage in the order of the text."""
        if isinstance(shape, str):
            return shape
        at = {name: number for number, name in enumerate(self.names)}
        parts = map(self.ordered, shape)
        return tuple(sorted(parts, key=lambda part: min(at[name] for name in leaves(part))))

    def _keyed(self, shape: Shape) -> bool:
        if isinstance(shape, str):
            return True
        bound = [[self.names.index(name) for name in leaves(part)] for part in shape]
        shared = frozenset.intersection(*map(self.known.graph.held, bound))
        return bool(shared) and len(shape) > 1 and all(map(self._keyed, shape))


Order = Callable[[InnerGroup], Shape | PathPlan]  # stages in an order, or paths


def of_the_text(group: InnerGroup) -> Shape:
    """Take inputs as the text names them."""
    return group.text


def leaf(tree: Tree) -> str:
    """Return the name of a part of a group."""
    return inputs(tree)[0].alias


def group_of(tree: Joined, parts: Sequence[Tree], text: Joined, reads: frozenset[str]) -> InnerGroup:
    """Return a group, whose stages in the order of the text end with `text`."""
    known = key_classes(replace(tree, children=tuple(map(_as_input, parts))))
    return InnerGroup(tree, tuple(parts), known, shape(text), reads)


def _as_input(tree: Tree) -> Scan:
    """Return a join as though its rows came from a stage: more keys are then known of them."""
    if isinstance(tree, Scan):
        return tree
    return Result(leaf(tree), Table("", pa.schema([]), None), below=tree, stage=-1)


def shape(tree: Tree) -> Shape:
    """Return the order in which the inputs of a tree are joined."""
    below = tree.below if isinstance(tree, Result) else tree
    if isinstance(below, Joined) and below.kind == "inner":
        return tuple(map(shape, below.children))
    return leaf(tree)


class Ordered:
    """Joins the parts of a group in a given order."""

    def __init__(self, group: InnerGroup, finished: Callable[[Joined], Result]) -> None:
        """Store what there is to decide. `finished` makes a stage of a join."""
        self.group, self.finished = group, finished
        self.rest = list(group.known.rest)
        self.parts = dict(zip(group.names, group.parts, strict=True))
        aliases = [_as_input(part).alias for part in group.parts]
        self.members = [
            {group.names[aliases.index(alias)]: value for alias, value in one.members.items()}
            for one in group.known.classes
        ]

    def joined(self, shape: Shape) -> Tree:
        """Return the last stage of a shape; those before it are finished."""
        if isinstance(shape, str):
            return self.parts[shape]
        children = [self._part(part) for part in shape]
        bound = [sorted(leaves(part), key=self.group.names.index) for part in shape]
        seen = frozenset().union(*(child.aliases for child in children))
        decided = [clause for clause in self.rest if clause.aliases <= seen]
        self.rest = [clause for clause in self.rest if clause not in decided]
        on = (*self._equalities(bound), *decided)
        return self._met(replace(self.group.tree, children=tuple(children), on=on))

    def _part(self, shape: Shape) -> Tree:
        made = self.joined(shape)
        return made if isinstance(shape, str) else self._finished(made)

    def _finished(self, tree: Tree) -> Result:
        assert isinstance(tree, Joined)
        return self.finished(tree)

    def _met(self, tree: Joined) -> Joined:
        """Finish joins of other kinds first if a key of the stage is not the key of their rows."""
        as_inputs = replace(tree, children=tuple(map(_as_input, tree.children)))
        if key_count(tree) == key_count(as_inputs):
            return tree
        met = (c if isinstance(c, Scan) else self.finished(c) for c in tree.children)
        return replace(tree, children=tuple(met))

    def _equalities(self, bound: Sequence[Sequence[str]]) -> Iterator[Clause]:
        """Compare one member of each class in each part with that of the first part that has one."""
        for members, known in zip(self.members, self.group.known.classes, strict=True):
            known_of = ([members[name] for name in names if name in members] for names in bound)
            held = [values[0] for values in known_of if values]
            for other in held[1:]:
                yield Clause(_equal(held[0], other, known.type), self.group.tree.place)


def _equal(left: Expr, right: Expr, kind: pa.DataType) -> Expr:
    """Compare two members of a class in its type: what is equal there may differ in a narrower one."""
    if t.exact(left.type, right.type) == kind:
        return compare("=", left, right)
    return compare("=", cast(left, kind), cast(right, kind))
