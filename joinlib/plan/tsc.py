"""Which joins may be one operator? Two-Step-Convert (UMJoin, section 3.2, algorithms 1 to 3), on the logical graph.

    multi(a, b, c)  ◄─  join(project(join(a, b)), c)

The first step groups nodes that form a tree of joins; the second replaces each group by one node. What can be a
member of a group is a parameter (`Pattern`): `joins` is that of algorithm 2, `projected` that of section 4.3.
What such a node becomes - one operator, a path join, stages - is decided by cost, not here.

Law: the converted plan reads the same inputs, and a node outside of all groups stays as it was.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from joinlib.sql.logical import PlanNode, every_node

Pattern = Callable[[PlanNode], bool]  # can it be a member of a group? (canBeMultiJoinGroupMember)


@dataclass(frozen=True, eq=False)
class JoinGroup:
    """Nodes that one operator may replace; `members` has the root too, in the order in which they were found."""

    root: PlanNode
    members: tuple[PlanNode, ...]

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        """What members read of nodes that are none, from left to right."""
        return tuple(self._read(self.root))

    def _read(self, node: PlanNode) -> Iterator[PlanNode]:
        for below in node.inputs:
            if below in self.members:
                yield from self._read(below)
            else:
                yield below


def joins(node: PlanNode) -> bool:
    """Return whether a node is an inner join: the pattern of algorithm 2, without its exchanges, which come later."""
    return node.kind == "join"


def projected(node: PlanNode) -> bool:
    """Return whether a node is an inner join, or computes columns of one: the pattern of section 4.3."""
    while node.kind == "project":
        node = node.inputs[0]
    return joins(node)


def convert(root: PlanNode, pattern: Pattern = projected) -> PlanNode:
    """Return the plan with one node for each group (algorithm 1). O(nodes + edges)."""
    return _replaced(root, {group.root: group for group in groups(root, pattern)}, {})


def groups(root: PlanNode, pattern: Pattern = projected) -> tuple[JoinGroup, ...]:
    """Return the groups of a plan, from the root on (algorithm 2)."""
    outputs = _outputs(root)
    found: dict[PlanNode, list[PlanNode]] = {}  # by root
    home: dict[PlanNode, PlanNode] = {}  # the root of the group that a node is in
    for node in _ordered(root, outputs):
        if not pattern(node):
            continue
        shared = _shared(outputs[node], home)
        if shared is None and joins(node):
            shared, found[node] = node, []
        if shared is not None:
            found[shared].append(node)
            home[node] = shared
    return tuple(JoinGroup(first, tuple(members)) for first, members in found.items())


def _shared(outputs: list[PlanNode], home: dict[PlanNode, PlanNode]) -> PlanNode | None:
    """Return the group that all readers of a node are in, if there is one (canBeInSameGroupWithOutputs).

    A node that a group reads twice is none of its members: it would be joined twice, with other rows each time.
    """
    homes = {home.get(output) for output in outputs}
    return homes.pop() if len(homes) == 1 and len(outputs) == 1 else None


def _replaced(
    node: PlanNode, roots: dict[PlanNode, JoinGroup], visited: dict[PlanNode, PlanNode]
) -> PlanNode:
    """Return what a node becomes (algorithm 3, getMultiJoinNode; `visited` is its visitedMap)."""
    if node not in visited:
        group = roots.get(node)
        below = tuple(_replaced(i, roots, visited) for i in (group.inputs if group else node.inputs))
        if group is not None:
            visited[node] = PlanNode("multi", below, node.label)
        else:
            visited[node] = node if below == node.inputs else replace(node, inputs=below)
    return visited[node]


def _outputs(root: PlanNode) -> dict[PlanNode, list[PlanNode]]:
    """Return who reads each node; who reads it twice is named twice."""
    found: dict[PlanNode, list[PlanNode]] = {node: [] for node in every_node(root)}
    for node in found:
        for below in node.inputs:
            found[below].append(node)
    return found


def _ordered(root: PlanNode, outputs: dict[PlanNode, list[PlanNode]]) -> Iterator[PlanNode]:
    """Yield all nodes breadth first, each after all that read it (getOrderedNodes)."""
    unread = {node: len(readers) for node, readers in outputs.items()}
    todo = deque([root])
    while todo:
        node = todo.popleft()
        yield node
        for below in node.inputs:
            unread[below] -= 1
            if not unread[below]:
                todo.append(below)


def drawn(root: PlanNode, named: Callable[[str], str] = str) -> Iterator[str]:
    """Yield the lines of a drawing of the graph; a node that was drawn before is only named.

    named: what a label is called; empty: it has no name.
    """
    seen: set[PlanNode] = set()
    yield from _drawn(root, "", seen, named)


def _drawn(node: PlanNode, indent: str, seen: set[PlanNode], named: Callable[[str], str]) -> Iterator[str]:
    again, label = node in seen and bool(node.inputs), named(node.label)
    yield f"{indent}{node.kind}{f' {label}' if label else ''}{' (as above)' if again else ''}"
    seen.add(node)
    for below in () if again else node.inputs:
        yield from _drawn(below, indent + "  ", seen, named)
