"""All key classes of an inner join, whichever inputs they relate; `keys` has those that relate all of them.

    c.custkey = o.custkey AND o.orderkey = l.orderkey AND o.date < l.date

    classes {c.custkey, o.custkey}, {o.orderkey, l.orderkey}; the rest: o.date < l.date

Law: rows match if and only if they agree in every class and the rest is true. An equality that means less in the
type of its class than where it is written, or that names a second expression of one input, stays in the rest.
"""

from dataclasses import dataclass

from joinlib.path.graph import JoinGraph
from joinlib.sql.graph import Clause, Joined, KeyClass, Scan
from joinlib.sql.keys import equalities, grouped, key_type, lossless


@dataclass(frozen=True)
class KeyClasses:
    """The classes of a join, and what they leave to be decided. Inputs are numbered as the join's children are."""

    classes: tuple[KeyClass, ...]
    graph: JoinGraph
    rest: tuple[Clause, ...]


def key_classes(tree: Joined) -> KeyClasses:
    """Return the classes of an inner join of inputs, in the order in which the text names them."""
    aliases = [child.alias for child in tree.children if isinstance(child, Scan)]
    assert tree.kind == "inner"
    assert len(aliases) == len(tree.children), "its parts are inputs, or rows of stages"
    found = [(linked, key_type(linked)) for linked in grouped(equalities(tree))]
    said = [clause for linked, kind in found for clause in linked.edges if lossless(clause, kind)]
    rest = tuple(clause for clause in tree.on if not any(clause is one for one in said))
    classes = tuple(KeyClass(linked.members, kind) for linked, kind in found)
    graph = JoinGraph(len(aliases), tuple(frozenset(map(aliases.index, c.members)) for c in classes))
    return KeyClasses(classes, graph, rest)
