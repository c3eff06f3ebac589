"""Says which inner joins are to be done by paths, and what became of all of them.

    said by              when
    a hint               /*+ PATHS(a, b, c) */, /*+ STAGES(a, b, c) */ name inputs of the join
    join.strategy        it is paths: all joins by several keys; auto: the cost decides (`order`); otherwise none

A hint that cannot be followed is a note of the plan that says why.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from joinlib.model.decided import Became, Conversion, JoinDecision
from joinlib.model.order import Shape, StageOrder
from joinlib.path.choice import PathPlan
from joinlib.plan.considered import PATHS, STAGES, one_key
from joinlib.plan.order import Decide
from joinlib.plan.sizes import Inputs
from joinlib.plan.tsc import convert, drawn
from joinlib.sql import JoinNode, KeyClass, Query, Result
from joinlib.sql.graph import Tree
from joinlib.sql.hints import HintWord, JoinHint
from joinlib.sql.logical import PlanNode, logical
from joinlib.sql.order import InnerGroup, Order, leaf
from joinlib.sql.rewrite.block import Block

_ONE_KEY = "these inputs share a key, so one operator joins them without storing anything between"
_ASKED: Mapping[str, HintWord | None] = {"auto": None, "paths": "paths"}


@dataclass
class PathChooser:
    """What is said of one query; it remembers what became of its joins, and which hints could be followed."""

    strategy: str = "auto"
    hints: Sequence[JoinHint] = ()
    decisions: list[JoinDecision] = field(default_factory=list)
    _whys: dict[JoinHint, str | None] = field(default_factory=dict)  # None: it was followed

    def asked(self, group: InnerGroup) -> HintWord | None:
        """Return what a hint or join.strategy says of inner joins by several keys; None: the planner may choose."""
        hint = self._hint(group)
        return _ASKED.get(self.strategy, "stages") if hint is None else hint.word

    def decided(self, group: InnerGroup, order: StageOrder) -> None:
        """Hear what became of inner joins by several keys."""
        hint = self._hint(group)
        became: HintWord = "stages" if order.paths is None else "paths"
        said = f"join.strategy is {became}" if became == self.strategy else ""
        if hint is not None:
            unfollowed = _ONE_KEY if one_key(group.known.graph) else "no paths join its inputs"
            self._whys[hint], said = None if became == hint.word else unfollowed, f"the hint {hint.text}"
        why = said if said and order.paths else "; ".join(filter(None, (said, order.why)))
        self._told(group.parts, group.known.classes, became, why, tuple(_prices(order)))

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
                self._told(query.scans, query.classes, "one operator", _ONE_KEY)

    def notes(self) -> Iterator[str]:
        """Say of each hint that could not be followed why."""
        for hint in self.hints:
            if why := self._whys.get(hint, f"no INNER JOIN by several equalities has {_listed(hint.inputs)}"):
                yield f"the hint {hint.text} is not followed: {why}"

    def _hint(self, group: InnerGroup) -> JoinHint | None:
        return next((hint for hint in self.hints if hint.of(group.tree.aliases)), None)

    def _told(
        self,
        parts: Iterable[Tree],
        classes: Iterable[KeyClass],
        became: Became,
        why: str,
        prices: tuple[str, ...] = (),
    ) -> None:
        names = tuple(map(leaf, parts))
        keys = tuple(" = ".join(value.sql for value in one.members.values()) for one in classes)
        if len(names) > 2:
            self.decisions.append(JoinDecision(names, keys, became, why, prices))


@dataclass
class JoinAnswers:
    """Answers what the inner joins of one SELECT by several keys become."""

    chooser: PathChooser
    decide: Decide
    inputs: Inputs
    answers: list[tuple[InnerGroup, StageOrder]] = field(default_factory=list)

    def anew(self, paths: bool) -> Order:
        """Begin with another form of the joins: what was answered before does not count.

        paths: whether they may be taken where nobody asks for them.
        """
        self.answers.clear()
        return partial(self._answer, None if paths else "stages")

    def _answer(self, otherwise: HintWord | None, group: InnerGroup) -> Shape | PathPlan:
        order = self.decide(group, self.inputs, self.chooser.asked(group) or otherwise)
        self.answers.append((group, order))
        return order.shape if order.paths is None else order.paths.plan


def _prices(order: StageOrder) -> Iterator[str]:
    """Say what paths and stages are expected to take until all rows have come."""
    for found in order.alternatives:
        taking = (
            f"{found.seconds:.3g} s, {found.bytes / 1e6:.3g} MB of state, {found.levels} exchanges of a batch"
        )
        if found.name == PATHS:
            yield f"paths, {len(found.arrangements)} times an input by a key: {taking}"
        elif found.name == STAGES:
            yield f"stages: {taking}"


def conversion(parts: Sequence[Block], decisions: Sequence[JoinDecision]) -> Conversion:
    """Return what the text says, the same with each group of joins as one node, and what became of these."""
    titles = {part.name: part.title for part in parts if part.title or part.name.startswith("$")}
    titles |= {called.alias: called.name for part in parts for called in part.called if called.name}
    titles = {alias: title.removeprefix("$") for alias, title in titles.items()}
    before = [logical(_below(parts, n)) for n, part in enumerate(parts) if part.output is not None]

    def lines(roots: Iterable[PlanNode]) -> tuple[str, ...]:
        return tuple(line for root in roots for line in drawn(root, lambda label: titles.get(label, label)))

    return Conversion(lines(before), lines(map(convert, before)), tuple(dict.fromkeys(decisions)))


def _below(parts: Sequence[Block], number: int) -> tuple[Block, ...]:
    """Return a block behind all that come before it, but for the results of other outputs."""
    return (*(part for part in parts[:number] if part.output is None), parts[number])


def _listed(names: frozenset[str]) -> str:
    *first, last = sorted(names)
    return f"{', '.join(first)} and {last}" if first else last
