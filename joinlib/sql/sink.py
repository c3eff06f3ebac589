"""Moves an outer, semi or anti join that stands between inner joins below them, to the one input that its ON reads.

    a JOIN c ON a.k = c.k LEFT JOIN b ON a.j = b.j JOIN d ON d.k = c.k        a, c | b | d: three stages
    a LEFT JOIN b ON a.j = b.j JOIN c ON a.k = c.k JOIN d ON d.k = c.k        a, b | all by k: two

The inner joins above and below it are one then, with all their inputs. One that has no inner join above it
stays: it would not make an operator larger. With `edges` it moves, too: by paths nothing that the inner joins find is
stored then, which a join above them has to.

    a JOIN c ON a.k = c.k JOIN d ON d.j = c.j LEFT JOIN b ON a.j = b.j        by paths: a, b | c | d

Law: the rows are the same. A row of c neither takes a partner of a row of `a` away nor gives it one.
"""

from dataclasses import replace

from joinlib.sql.graph import Clause, Joined, Tree

MOVED = ("left", "semi", "anti")  # each keeps or fills the rows of its left side, one by one


def sunk(tree: Joined, edges: bool = False) -> Joined:
    """Return the same rows with larger inner joins; the tree itself where nothing can move.

    edges: also those above all inner joins move.
    """
    children = tuple(sunk(child, edges) if isinstance(child, Joined) else child for child in tree.children)
    if tree.kind != "inner":
        whole = replace(tree, children=children)
        return (_core(whole) if edges else None) or whole
    melted = [_core(child) for child in children]
    inputs = [core.children if core else (child,) for core, child in zip(melted, children, strict=True)]
    on = [clause for core in melted if core for clause in core.on]
    return replace(tree, children=tuple(i for some in inputs for i in some), on=(*on, *tree.on))


def _core(tree: Tree) -> Joined | None:
    """The inner join below some joins, with each of these at an input of its own; None where one of them cannot move."""
    if isinstance(tree, Joined) and tree.kind == "inner":
        return tree
    if not isinstance(tree, Joined) or tree.kind not in MOVED:
        return None
    if tree.right != "keyed" or tree.apart is not None:  # those of a NOT IN stay together
        return None
    left, right = tree.children
    if (core := _core(left)) is None:
        return None
    for at, child in enumerate(core.children):
        if all(clause.aliases <= child.aliases | right.aliases for clause in tree.on):
            return _moved(tree, core, at)
    return None


def _moved(tree: Joined, core: Joined, at: int) -> Joined:
    """What is asked of the rows of both alone is asked there, the rest in the inner join."""
    seen = core.children[at].aliases | tree.children[1].aliases
    here = tuple(clause for clause in tree.where if clause.aliases <= seen)
    rest: tuple[Clause, ...] = tuple(clause for clause in tree.where if not clause.aliases <= seen)
    below = replace(tree, children=(core.children[at], tree.children[1]), where=here)
    children = (*core.children[:at], below, *core.children[at + 1 :])
    return replace(core, children=children, on=(*core.on, *core.where, *rest), where=())
