"""Decides which inner joins are done by paths.

    decided by           when
    a hint               /*+ PATHS(a, b, c) */, /*+ STAGES(a, b, c) */ name inputs of the join
    join.strategy        it is paths: all joins by several keys; otherwise none

A hint that cannot be followed is a note of the plan that says why.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from joinlib.model.decided import Became, Conversion, JoinDecision
from joinlib.model.order import StageOrder
from joinlib.path.choice import PathPlan, by_paths, by_stages
from joinlib.path.estimate import PlanWork, Prices, Sizes
from joinlib.path.graph import JoinGraph
from joinlib.plan.sizes import Inputs, sizes_of
from joinlib.plan.tsc import convert, drawn
from joinlib.sql import JoinNode, KeyClass, Query, Result
from joinlib.sql.graph import Tree, inputs
from joinlib.sql.hints import JoinHint
from joinlib.sql.logical import logical
from joinlib.sql.order import InnerGroup
from joinlib.sql.rewrite.block import Block

_ROWS = 1e6  # of an input of which nothing is known
_WIDTH = 60
_MOST_PRICED = 8  # inputs of which plan tells what paths and stages take: it takes too long of more
_ONE_KEY = "these inputs share a key, so one operator joins them without storing anything between"
_BY_STRATEGY: Mapping[str, str] = {"paths": "join.strategy is paths", "stages": "join.strategy is stages"}


@dataclass
class PathChooser:
    """Decides for one query, and remembers what became of its joins, and which hints it could follow."""

    strategy: str = "auto"
    hints: Sequence[JoinHint] = ()
    decisions: list[JoinDecision] = field(default_factory=list)
    _whys: dict[JoinHint, str | None] = field(default_factory=dict)  # None: it was followed
    _prices: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)

    def paths(self, group: InnerGroup, given: Inputs) -> PathPlan | None:
        """Return the paths of inner joins by several keys; None if they are done by stages."""
        sizes = sizes_of(group, given)
        self._prices[group.names] = () if sizes is None else tuple(_priced(sizes))
        hint, one_key = self._hint(group), _one_key(group.known.graph)
        paths = (self.strategy if hint is None else hint.word) == "paths"
        if hint is not None:
            self._whys[hint] = _ONE_KEY if paths and one_key else None
        if not paths or one_key:
            return None
        self._decided(group.parts, group.known.classes, "paths", self._asked(hint), self._prices[group.names])
        return cheapest_plan(group.known.graph)

    def staged(self, group: InnerGroup, order: StageOrder) -> None:
        """Hear that inner joins are done by stages."""
        hint = self._hint(group)
        told = f"{self._asked(hint)}; " if hint is not None or self.strategy == "stages" else ""
        self._decided(
            group.parts, group.known.classes, "stages", f"{told}{order.why}", self._prices[group.names]
        )

    def planned(self, queries: Sequence[Query]) -> None:
        """Hear how a SELECT is joined."""
        for query in queries:
            inner = isinstance(query.tree, JoinNode) and query.tree.kind == "inner" and bool(query.classes)
            if not inner or query.paths or any(isinstance(scan, Result) for scan in query.scans):
                continue
            names = frozenset(scan.alias for scan in query.scans)
            hints = [h for h in self.hints if h not in self._whys and h.of(names)]
            self._whys |= {h: _ONE_KEY if h.word == "paths" else None for h in hints}
            if len(queries) == 1:
                self._decided(query.scans, query.classes, "one operator", _ONE_KEY)

    def notes(self) -> Iterator[str]:
        """Say of each hint that could not be followed why."""
        for hint in self.hints:
            if why := self._whys.get(hint, f"no INNER JOIN by several equalities has {_listed(hint.inputs)}"):
                yield f"the hint {hint.text} is not followed: {why}"

    def _hint(self, group: InnerGroup) -> JoinHint | None:
        return next((hint for hint in self.hints if hint.of(group.tree.aliases)), None)

    def _asked(self, hint: JoinHint | None) -> str:
        return f"the hint {hint.text}" if hint is not None else _BY_STRATEGY.get(self.strategy, "")

    def _decided(
        self,
        parts: Iterable[Tree],
        classes: Iterable[KeyClass],
        became: Became,
        why: str,
        prices: tuple[str, ...] = (),
    ) -> None:
        names = tuple(scan.alias for part in parts for scan in inputs(part))
        keys = tuple(" = ".join(value.sql for value in one.members.values()) for one in classes)
        if len(names) > 2:
            self.decisions.append(JoinDecision(names, keys, became, why, prices))


def _one_key(graph: JoinGraph) -> bool:
    """Return whether all inputs share a key: an outer join below one of them kept them apart, not the keys."""
    return any(len(having) == graph.inputs for having in graph.classes)


def cheapest_plan(graph: JoinGraph) -> PathPlan | None:
    """Return the arrangements and paths that cost least if all inputs are alike.

    What is stored must be the same whenever a checkpoint goes on, so it does not follow figures that change.
    """
    return by_paths(_alike(graph), Prices())


def _alike(graph: JoinGraph) -> Sizes:
    every = range(graph.inputs)
    distinct = tuple(tuple(_ROWS if one in c else 0.0 for c in graph.classes) for one in every)
    return Sizes(graph, (_ROWS,) * graph.inputs, (_WIDTH,) * graph.inputs, distinct)


def _priced(sizes: Sizes) -> Iterator[str]:
    """Say what paths and stages are expected to take until all rows have come, where inputs are few."""
    if sizes.graph.inputs > _MOST_PRICED:
        return
    if (paths := by_paths(sizes, Prices())) is not None:
        yield f"paths, {len(paths.arrangements)} times an input by a key: {_taking(paths.work)}"
    if (stages := by_stages(sizes, Prices())) is not None:
        yield f"stages: {_taking(stages.work)}"


def _taking(work: PlanWork) -> str:
    return f"{work.seconds(Prices()):.3g} s, {work.bytes / 1e6:.3g} MB of state, {work.levels} exchanges of a batch"


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


def _listed(names: frozenset[str]) -> str:
    *first, last = sorted(names)
    return f"{', '.join(first)} and {last}" if first else last
