"""By which paths a group of inputs is joined, as a checkpoint keeps it.

    {"inputs": ["c", "o", "l"], "classes": [[0, 1], [1, 2]],
     "arrangements": [[0, [0]], [1, [0]], [1, [1]], [2, [1]]],
     "paths": [[0, [[0, 1], [1, 3]]], ...], "costs": {...}}

Law: what is stored, and between which routes units choose, follows from it and the query alone, whatever is known of
the inputs later.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from joinlib.path.choice import PathPlan
from joinlib.path.cost import PathCosts
from joinlib.path.estimate import PlanWork
from joinlib.path.graph import Arrangement, JoinGraph, Path, Probe


@dataclass(frozen=True)
class PathOrder:
    """The paths of inputs, which are numbered by their places in `inputs`."""

    inputs: tuple[str, ...]
    graph: JoinGraph
    plan: PathPlan  # what it costs is known where the figures are: with those of `costs` routes are compared

    def fits(self, names: tuple[str, ...], graph: JoinGraph) -> bool:
        """Return whether these are paths of such a group."""
        return (self.inputs, self.graph) == (names, graph)

    def plain(self) -> dict[str, Any]:
        """Return it as values for JSON."""
        return {
            "inputs": list(self.inputs),
            "classes": [sorted(members) for members in self.graph.classes],
            "arrangements": [[a.input, list(a.key)] for a in self.plan.arrangements],
            "paths": [[p.start, [[o.asker, o.arrangement] for o in p.probes]] for p in self.plan.paths],
            "costs": asdict(self.plan.costs),
        }


def path_order_of(raw: Mapping[str, Any]) -> PathOrder:
    """Return what was written as JSON."""
    inputs = tuple(map(str, raw["inputs"]))
    arrangements = tuple(Arrangement(one, tuple(key)) for one, key in raw["arrangements"])
    paths = tuple(Path(start, tuple(Probe(*probe) for probe in probes)) for start, probes in raw["paths"])
    tables = {name: tuple(map(tuple, raw["costs"][name])) for name in ("query", "rate", "per_hit")}
    costs = PathCosts(**{**raw["costs"], **tables})
    graph = JoinGraph(len(inputs), tuple(map(frozenset, raw["classes"])))
    return PathOrder(inputs, graph, PathPlan(arrangements, paths, PlanWork(), costs))
