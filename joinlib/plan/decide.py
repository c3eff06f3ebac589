"""Decides which joins are done by paths, and by which."""

from joinlib.path.choice import PathPlan, by_paths
from joinlib.path.estimate import Prices, Sizes
from joinlib.path.graph import JoinGraph
from joinlib.plan.options import JoinOptions
from joinlib.sql.classes import key_classes
from joinlib.sql.graph import Joined
from joinlib.sql.stages import Paths, no_paths

_ROWS = 1e6  # of an input of which nothing is known
_WIDTH = 60


def paths(options: JoinOptions) -> Paths:
    """Return what decides about the joins of a query."""
    return _forced if options.strategy == "paths" else no_paths


def _forced(tree: Joined) -> PathPlan | None:
    graph = key_classes(tree).graph
    if not graph.connected or any(len(members) == graph.inputs for members in graph.classes):
        return None
    return by_paths(_unknown(graph), Prices())


def _unknown(graph: JoinGraph) -> Sizes:
    """Return sizes of which nothing is known: all inputs are alike."""
    every = range(graph.inputs)
    distinct = tuple(tuple(_ROWS if one in c else 0.0 for c in graph.classes) for one in every)
    return Sizes(graph, (_ROWS,) * graph.inputs, (_WIDTH,) * graph.inputs, distinct)
