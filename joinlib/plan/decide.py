"""Decides which inner joins are done by paths.

    decided by           when
    a hint               /*+ PATHS(a, b, c) */, /*+ STAGES(a, b, c) */ name inputs of the join
    join.strategy        it is paths: all joins by several keys; otherwise none

A hint that cannot be followed is a note of the plan that says why.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from joinlib.model.decided import Became, Conversion, JoinDecision
from joinlib.path.choice import PathPlan, by_paths
from joinlib.path.estimate import Prices, Sizes
from joinlib.path.graph import JoinGraph
from joinlib.plan.tsc import convert, drawn
from joinlib.sql import JoinNode, KeyClass, Query, Result
from joinlib.sql.classes import key_classes
from joinlib.sql.graph import Joined, Tree, inputs
from joinlib.sql.hints import JoinHint
from joinlib.sql.logical import logical
from joinlib.sql.rewrite.block import Block

_ROWS = 1e6  # of an input of which nothing is known
_WIDTH = 60


@dataclass
class PathChooser:
    """Decides for one query, and remembers which hints it could follow."""

    strategy: str = "auto"
    hints: Sequence[JoinHint] = ()
    decisions: list[JoinDecision] = field(default_factory=list)
    _whys: dict[JoinHint, str | None] = field(default_factory=dict)  # None: it was followed

    def __call__(self, tree: Joined) -> PathPlan | None:
        """Return the paths of an inner join of inputs by several keys; None if it is done by stages."""
        hint = next((h for h in self.hints if h.of(tree.aliases)), None)
        known, asked = key_classes(tree), self.strategy if hint is None else hint.word
        found, why = _paths(known.graph) if asked == "paths" else (None, None)
        if hint is not None:
            self._whys[hint] = why
        because = why or (f"the hint {hint.text}" if hint else _BY_STRATEGY.get(asked, _NO_FIGURES))
        self._decided(tree.children, known.classes, "paths" if found else "stages", because)
        return found

    def _decided(self, parts: Iterable[Tree], classes: Iterable[KeyClass], became: Became, why: str) -> None:
        names = [scan.alias for part in parts for scan in inputs(part)]
        keys = (" = ".join(value.sql for value in one.members.values()) for one in classes)
        if len(names) > 2:
            self.decisions.append(JoinDecision(tuple(names), tuple(keys), became, why))

    def planned(self, queries: Sequence[Query]) -> None:
        """Hear how a SELECT is joined."""
        for query in queries:
            names = frozenset(scan.alias for scan in query.scans)
            one_key = isinstance(query.tree, JoinNode) and query.tree.kind == "inner" and bool(query.classes)
            one_key = one_key and query.paths is None
            if one_key and not any(isinstance(scan, Result) for scan in query.scans):
                self._decided(query.scans, query.classes, "one operator", _ONE_KEY)
            for hint in self.hints if one_key else ():
                if hint not in self._whys and hint.of(names):
                    self._whys[hint] = _ONE_KEY if hint.word == "paths" else None

    def notes(self) -> Iterator[str]:
        """Say of each hint that could not be followed why."""
        for hint in self.hints:
            if why := self._whys.get(hint, f"no INNER JOIN has {_listed(hint.inputs)}"):
                yield f"the hint {hint.text} is not followed: {why}"


def conversion(parts: Sequence[Block], decisions: Sequence[JoinDecision]) -> Conversion:
    """Return what the text says, with each group of joins as one node, and what became of these."""
    titles = {part.name: part.title for part in parts if part.title or part.name.startswith("$")}
    titles |= {called.alias: called.name for part in parts for called in part.called if called.name}
    roots = [n for n, part in enumerate(parts) if part.output is not None]
    trees = [drawn(convert(logical(_below(parts, n))), lambda label: titles.get(label, label)) for n in roots]
    return Conversion(tuple(line for tree in trees for line in tree), tuple(dict.fromkeys(decisions)))


def _below(parts: Sequence[Block], number: int) -> tuple[Block, ...]:
    """Return a block behind all that come before it, but for the results of other outputs."""
    return (*(part for part in parts[:number] if part.output is None), parts[number])


_BY_STRATEGY = {"paths": "join.strategy is paths", "stages": "join.strategy is stages"}
_NO_FIGURES = "paths are taken where a hint or join.strategy asks for them"
_ONE_KEY = "these inputs share a key, so one operator joins them without storing anything between"


def _paths(graph: JoinGraph) -> tuple[PathPlan | None, str | None]:
    """Return the paths of an inner join, or why there are none."""
    if not graph.connected:
        return None, "no equality relates some of these inputs to the others"
    if any(len(members) == graph.inputs for members in graph.classes):
        return None, _ONE_KEY
    return cheapest_plan(graph), None


def cheapest_plan(graph: JoinGraph) -> PathPlan | None:
    """Return the arrangements and paths that are expected to cost least."""
    return by_paths(_unknown(graph), Prices())


def _unknown(graph: JoinGraph) -> Sizes:
    """Return sizes of which nothing is known: all inputs are alike."""
    every = range(graph.inputs)
    distinct = tuple(tuple(_ROWS if one in c else 0.0 for c in graph.classes) for one in every)
    return Sizes(graph, (_ROWS,) * graph.inputs, (_WIDTH,) * graph.inputs, distinct)


def _listed(names: frozenset[str]) -> str:
    *first, last = sorted(names)
    return f"{', '.join(first)} and {last}" if first else last
