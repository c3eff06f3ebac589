"""Splits a join whose inputs share no key into stages; the rows of a
finished stage are an input of a later one.

    a.k = b.k AND b.j = c.j AND a.k = d.k     stage 0 joins a, b, d by k; stage 1 joins its rows with c by j

An `Order` decides about inner joins by several keys (`order`). Without one, inputs are taken in the order of the
text, as far as equalities relate them. Before a stage with another key
begins, a stage takes the remaining inputs that have its key, unless that has a cost: no class of a composite
key is given up for a further input, and no input is taken out of order if a condition with an input in
between would have reduced it.

    n.k = s.k AND s.j = l.j AND l.i = o.i AND o.h = c.h AND c.k = s.k   c waits for o: k alone multiplies it

An outer join is finished first where its rows, as those of a stage, meet more inputs by one key than without.

    a LEFT JOIN b ON a.j = b.j JOIN c ON c.k = a.k JOIN d ON d.k = c.k    stage 0 joins a, b; stage 1 its rows, c, d

Inputs that no equality relates are joined last, in one unit (`Joined.single`).

An inner join may also be done by paths (`joinlib.path`), if the planner says so: then it is one stage, as if all
its inputs shared a key, and what is above it reads its rows.

Law: every clause is decided in the earliest stage that sees its inputs. Cost: quartic in the number of
inputs.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from joinlib.errors import SqlError
from joinlib.expr.compare import Comparison
from joinlib.path.choice import PathPlan
from joinlib.sql.graph import At, Clause, Joined, Result, Scan, Table, Tree, clauses_of, inputs, preserved
from joinlib.sql.keys import key_count
from joinlib.sql.order import Order, Ordered, group_of, of_the_text


def staged(
    tree: Joined, at: At, order: Order = of_the_text, reads: frozenset[str] = frozenset()
) -> tuple[Joined, ...]:
    """Return the trees of the stages, in order, each with a class of its own, or with paths.

    `at` returns the place where the text names an input. `order` decides in which order inner joins by several keys
    become stages, or that they are done by paths. `reads`: the columns that are read of the result.

    Raises:
        SqlError: if no condition relates some inputs, or an alias begins with $.
    """
    for scan in inputs(tree):
        if re.fullmatch(r"\$\d+", scan.alias):
            raise SqlError(
                f"the alias {scan.alias} begins with $, as the rows of stages do; use another", *at(scan)
            )
    stages = _Stages(order, reads.union(*(c.value.columns for c in clauses_of(tree))))
    last = stages.below(tree)
    return (*stages.done, last) if isinstance(last, Joined) else tuple(stages.done)


class _Stages:
    def __init__(self, order: Order, reads: frozenset[str]) -> None:
        self.order, self.reads, self.done = order, reads, list[Joined]()

    def below(self, tree: Tree) -> Tree:
        """Put a Result wherever a class ends: the remaining tree has one class, or is an input or a Result."""
        if isinstance(tree, Scan):
            return tree
        children = [self.below(c) for c in tree.children]
        return self._inner(tree, children) if tree.kind == "inner" else self._two_sided(tree, children)

    def _two_sided(self, tree: Joined, children: list[Tree]) -> Joined:
        """Finish as few sides of an outer, semi or anti join first as possible."""
        trees = [i for i, c in enumerate(children) if isinstance(c, Joined)]
        for ends in ([], *([i] for i in trees), trees):
            before = len(self.done)
            found = tuple(self._finished(c) if i in ends else c for i, c in enumerate(children))
            if key_count(whole := replace(tree, children=found)):
                return whole
            del self.done[before:]
        met = tuple(c if _meets(c) else self._finished(c) for c in children)
        return replace(tree, children=met, right="keyed", apart=None, single=True)

    def _inner(self, tree: Joined, parts: list[Tree]) -> Tree:
        """Join inputs by several keys as is asked for, if a choice is left."""
        before = len(self.done)
        text = self._of_the_text(tree, parts)
        if text.single or len(parts) < 3 or len(self.done) == before:
            return text
        group = group_of(tree, parts, text, self.reads)
        if not group.known.graph.connected or not group.whole:
            return text
        asked = self.order(group)
        if isinstance(asked, PathPlan):
            del self.done[before:]
            return self._by_paths(tree, parts, asked)
        if (shape := group.ordered(asked)) == group.text:
            return text
        del self.done[before:]
        return Ordered(group, self._finished).joined(shape)

    def _by_paths(self, tree: Joined, parts: list[Tree], paths: PathPlan) -> Result:
        """Finish an inner join as one stage that is done by paths; what it joins are then inputs, or rows of stages."""
        children = tuple(part if isinstance(part, Scan) else self._finished(part) for part in parts)
        return self._finished(replace(tree, children=children, paths=paths))

    def _of_the_text(self, tree: Joined, parts: list[Tree]) -> Joined:
        clauses = tree.on
        while (group := _group(parts, clauses)) is None or len(group) < len(parts):
            if more := _waiting(parts, clauses, len(group or ())):
                parts = [self._finished(p) if i in more else p for i, p in enumerate(parts)]
                continue
            if group is None and all(map(_meets, parts)):
                return replace(tree, children=tuple(parts), on=clauses, single=True)
            if group is None:
                parts = self._one_finished(parts)
                continue
            joined = replace(_joined([parts[i] for i in group], clauses), place=tree.place)
            clauses = tuple(c for c in clauses if c not in joined.on)
            result = self._finished(joined)
            parts = [result if i == group[0] else p for i, p in enumerate(parts) if i not in group[1:]]
        return replace(tree, children=tuple(parts), on=clauses)

    def _one_finished(self, parts: list[Tree]) -> list[Tree]:
        """Finish a part that is an outer join where no two parts share a key.

        More is known of a stage's rows than of an outer join's within a stage, so a key may then be found.
        """
        at = next(i for i, p in enumerate(parts) if not _meets(p))
        return [self._finished(p) if i == at else p for i, p in enumerate(parts)]

    def _finished(self, tree: Tree) -> Result:
        assert isinstance(tree, Joined)
        number = len(self.done)
        self.done.append(tree)
        return Result(f"${number}", Table(f"$stage{number}", pa.schema([]), None), below=tree, stage=number)


def _meets(tree: Tree) -> bool:
    """Whether all rows of a tree can meet in one unit, without a stage of its own.

    Those of a FULL JOIN cannot: none of its inputs is in all of its rows, to say where they are.
    """
    return isinstance(tree, Scan) or (tree.single and bool(preserved(tree)))


def _waiting(parts: Sequence[Tree], clauses: Sequence[Clause], size: int) -> set[int]:
    """The positions of outer joins whose rows, as those of a stage, would be joined with so many others that
    there are more than `size`: more than without them.
    """
    found = _group([p if _meets(p) else _as_rows(p) for p in parts], clauses) or []
    return {i for i in found if not _meets(parts[i])} if len(found) > size else set()


def _as_rows(tree: Tree) -> Result:
    assert isinstance(tree, Joined)
    return Result(inputs(tree)[0].alias, Table("", pa.schema([]), None), below=tree, stage=-1)


def _group(parts: Sequence[Tree], clauses: Sequence[Clause]) -> list[int] | None:
    """The positions of the first part that shares a key with another, and of
    those that share it; None if there are none.
    """
    for start in range(len(parts)):
        members = [start]
        while (more := _next(members, parts, clauses)) is not None:
            members.append(more)
        if len(members) > 1:
            return sorted(members)
    return None


def _next(members: list[int], parts: Sequence[Tree], clauses: Sequence[Clause]) -> int | None:
    least = max(key_count(_joined([parts[i] for i in members], clauses)), 1)
    for at in range(len(parts)):
        if at in members or key_count(_joined([parts[i] for i in (*members, at)], clauses)) < least:
            continue
        if len(members) == 1 or not _held_back(at, members, parts, clauses):
            return at
    return None


def _held_back(at: int, members: list[int], parts: Sequence[Tree], clauses: Sequence[Clause]) -> bool:
    """Whether an earlier part in the text is equated with this part, and will
    be joined to the members without it too.
    """
    outside = [i for i in range(len(parts)) if i not in members and i != at]
    reached = [i for m in members for i in outside if _equated(parts[m], parts[i], clauses)]
    for one in reached:
        reached += [i for i in outside if i not in reached and _equated(parts[one], parts[i], clauses)]
    return any(i < at and _equated(parts[i], parts[at], clauses) for i in reached)


def _equated(one: Tree, two: Tree, clauses: Iterable[Clause]) -> bool:
    equalities = (c for c in clauses if isinstance(c.value.node, Comparison) and c.value.node.sign == "=")
    return any(c.aliases & one.aliases and c.aliases & two.aliases for c in equalities)


def _joined(parts: Sequence[Tree], clauses: Iterable[Clause]) -> Joined:
    seen = frozenset().union(*(p.aliases for p in parts))
    return Joined("inner", tuple(parts), tuple(c for c in clauses if c.aliases <= seen), (), (1, 1))
