"""Which binary joins become one multi-way join? Two-Step-Convert (UMJoin, section 3.2, Algorithms 1 to 3), on any plan.

    multi(a, b, c) <- join(hash(join(hash a, hash b)), hash c)

A plan is a graph of nodes, whose inputs are nodes; one node may be the input of several. What can be a member of a group is a
parameter (`Pattern`): the paper's patterns are `joins` and, with projections in between (section 4.3), `projected`. Law: the
converted plan computes what the plan computed, of the same inputs; a node outside of all groups stays as it was.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

JOIN, HASH, PROJECT, MULTI = "join", "hash", "project", "multi"


@dataclass(frozen=True, eq=False)
class Node:
    """One operator. Equal only to itself: a plan may hold two that look alike."""

    kind: str
    inputs: tuple["Node", ...] = ()
    label: str = ""


@dataclass(frozen=True, eq=False)
class Group:
    """Nodes that one multi-way join replaces; `members` holds the root too, in the order in which they were found."""

    root: Node
    members: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        """What members read of nodes that are none, left to right."""
        return tuple(self._inputs(self.root))

    def _inputs(self, node: Node) -> Iterator[Node]:
        for below in node.inputs:
            if below in self.members:
                yield from self._inputs(below)
            else:
                yield below


Pattern = Callable[[Node], bool]  # can it be a member of a group? (canBeMultiJoinGroupMember)
# Of a group and its converted inputs (createMultiJoinNodeByGroup).
Make = Callable[[Group, tuple[Node, ...]], Node]


def joins(node: Node) -> bool:
    """The pattern of Algorithm 2: joins, and the exchanges between them."""
    return node.kind == JOIN or (node.kind == HASH and node.inputs[0].kind == JOIN)


def projected(node: Node) -> bool:
    """The pattern of section 4.3: between two joins columns may be dropped too, before and after the exchange."""
    while node.kind in (HASH, PROJECT):
        node = node.inputs[0]
    return node.kind == JOIN


def multi_join(group: Group, inputs: tuple[Node, ...]) -> Node:
    """One node that reads all inputs of the group."""
    return Node(MULTI, inputs, group.root.label)


def convert(root: Node, pattern: Pattern = projected, make: Make = multi_join) -> Node:
    """The plan with a multi-way join for each group (Algorithm 1). O(nodes + edges)."""
    return _replaced(root, {g.root: g for g in groups(root, pattern)}, make, {})


def groups(root: Node, pattern: Pattern = projected) -> tuple[Group, ...]:
    """The groups of a plan, from the root on (Algorithm 2)."""
    outputs = _outputs(root)
    found: dict[Node, list[Node]] = {}  # by root
    home: dict[Node, Node] = {}  # root of the group that a node is in
    for node in _ordered(root, outputs):
        if not pattern(node):
            continue
        homes = {home.get(output) for output in outputs[node]}
        shared = homes.pop() if len(homes) == 1 else None  # canBeInSameGroupWithOutputs
        if shared is None and node.kind == JOIN:
            shared, found[node] = node, []
        if shared is not None:
            found[shared].append(node)
            home[node] = shared
    return tuple(Group(first, tuple(members)) for first, members in found.items())


def split(group: Group, together: Callable[[Node, Node], bool]) -> tuple[Group, ...]:
    """The second pass: groups that end where `together(join, join below)` says no, from the root on.

    Exchanges and projections between two joins of one group stay in it; between two groups they are left to the plan.
    """
    found, todo = [], deque([group.root])
    while todo:
        root = todo.popleft()
        members = list(_within(root, group, together, todo))
        found.append(Group(root, tuple(members)))
    return tuple(found)


def _within(
    node: Node, group: Group, together: Callable[[Node, Node], bool], cut: deque[Node]
) -> Iterator[Node]:
    yield node
    for below in node.inputs:
        passed = []
        while below in group.members and below.kind != JOIN:
            passed.append(below)
            below = below.inputs[0]
        if below not in group.members:
            continue
        if together(node, below):
            yield from passed
            yield from _within(below, group, together, cut)
        else:
            cut.append(below)


def _replaced(node: Node, roots: dict[Node, Group], make: Make, seen: dict[Node, Node]) -> Node:
    """Algorithm 3; `seen` is its visitedMap."""
    if node not in seen:
        group = roots.get(node)
        below = tuple(_replaced(i, roots, make, seen) for i in (group.inputs if group else node.inputs))
        if group is not None:
            seen[node] = make(group, below)
        else:
            seen[node] = node if below == node.inputs else replace(node, inputs=below)
    return seen[node]


def _outputs(root: Node) -> dict[Node, list[Node]]:
    """Who reads each node."""
    found: dict[Node, list[Node]] = {root: []}
    todo = [root]
    while todo:
        node = todo.pop()
        for below in node.inputs:
            if below not in found:
                found[below] = []
                todo.append(below)
            found[below].append(node)
    return found


def _ordered(root: Node, outputs: dict[Node, list[Node]]) -> Iterator[Node]:
    """Breadth first, each node after all that read it (getOrderedNodes)."""
    unread = {node: len(readers) for node, readers in outputs.items()}
    todo = deque([root])
    while todo:
        node = todo.popleft()
        yield node
        for below in node.inputs:
            unread[below] -= 1
            if not unread[below]:
                todo.append(below)
