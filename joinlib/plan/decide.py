"""Decides which inner joins are done by paths.

    decided by           when
    a hint               /*+ PATHS(a, b, c) */, /*+ STAGES(a, b, c) */ name inputs of the join
    join.strategy        it is paths: all joins by several keys; otherwise none

A hint that cannot be followed is a note of the plan that says why.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from joinlib.path.choice import PathPlan, by_paths
from joinlib.path.estimate import Prices, Sizes
from joinlib.path.graph import JoinGraph
from joinlib.sql import JoinNode, Query
from joinlib.sql.classes import key_classes
from joinlib.sql.graph import Joined
from joinlib.sql.hints import JoinHint

_ROWS = 1e6  # of an input of which nothing is known
_WIDTH = 60


@dataclass
class PathChooser:
    """Decides for one query, and remembers which hints it could follow."""

    strategy: str = "auto"
    hints: Sequence[JoinHint] = ()
    _whys: dict[JoinHint, str | None] = field(default_factory=dict)  # None: it was followed

    def __call__(self, tree: Joined) -> PathPlan | None:
        """Return the paths of an inner join of inputs by several keys; None if it is done by stages."""
        hint = next((h for h in self.hints if h.of(tree.aliases)), None)
        if hint is None:
            return _paths(tree)[0] if self.strategy == "paths" else None
        if hint.word == "stages":
            self._whys[hint] = None
            return None
        found, self._whys[hint] = _paths(tree)
        return found

    def planned(self, queries: Sequence[Query]) -> None:
        """Hear how a SELECT is joined."""
        for query in queries:
            names = frozenset(scan.alias for scan in query.scans)
            one_key = isinstance(query.tree, JoinNode) and query.tree.kind == "inner" and bool(query.classes)
            for hint in self.hints if one_key else ():
                if hint not in self._whys and hint.of(names):
                    self._whys[hint] = _ONE_KEY if hint.word == "paths" else None

    def notes(self) -> Iterator[str]:
        """Say of each hint that could not be followed why."""
        for hint in self.hints:
            if why := self._whys.get(hint, f"no INNER JOIN has {_listed(hint.inputs)}"):
                yield f"the hint {hint.text} is not followed: {why}"


_ONE_KEY = "these inputs share a key, so one operator joins them without storing anything between"


def _paths(tree: Joined) -> tuple[PathPlan | None, str | None]:
    """Return the paths of an inner join, or why there are none."""
    graph = key_classes(tree).graph
    if not graph.connected:
        return None, "no equality relates some of these inputs to the others"
    if any(len(members) == graph.inputs for members in graph.classes):
        return None, _ONE_KEY
    return by_paths(_unknown(graph), Prices()), None


def _unknown(graph: JoinGraph) -> Sizes:
    """Return sizes of which nothing is known: all inputs are alike."""
    every = range(graph.inputs)
    distinct = tuple(tuple(_ROWS if one in c else 0.0 for c in graph.classes) for one in every)
    return Sizes(graph, (_ROWS,) * graph.inputs, (_WIDTH,) * graph.inputs, distinct)


def _listed(names: frozenset[str]) -> str:
    *first, last = sorted(names)
    return f"{', '.join(first)} and {last}" if first else last
