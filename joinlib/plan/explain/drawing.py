"""Draws a plan as a tree of operators: each line an operator, below it what it reads.

result: changes
└─ inner join AuctionBids ⋈ MaxBids on starttime, endtime  if num >= maxn   stage 2, changes
   ├─ AuctionBids: group by auction, window_start: count(*)                 stage 0, changes
   │  └─ bid
   └─ MaxBids: group by starttime: max(num)                                 stage 1, changes
      └─ AuctionBids: drawn above                                           stage 0, changes
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from joinlib.expr import Expr
from joinlib.model.bounds import describe
from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Leaf, Lookup
from joinlib.model.operator import Operator
from joinlib.model.stage import AnyStage, GroupStage, HopStage, OverStage, PathStage, Pipeline, Stage
from joinlib.plan.explain.asof import asof
from joinlib.plan.explain.groups import by_keys
from joinlib.plan.explain.over import summary
from joinlib.plan.explain.paths import equalities, origins
from joinlib.plan.explain.stage import called, filters, key, named, related, spoken
from joinlib.plan.explain.texts import bare
from joinlib.plan.explain.words import parts, plain

_LONGEST = 80  # characters of an operator with its conditions; those of a longer one have lines of their own
_MOST = 160  # characters of what the part about its stage tells whole
_WIDEST = 100  # what stands on the right begins there, or behind a longer line
_SIGNS = {"inner": "⋈", "left": "⟕", "full": "⟗", "semi": "⋉", "anti": "▷"}


@dataclass(frozen=True)
class Drawn:
    """An operator, its conditions, what stands to the right of it, and what it reads."""

    text: str
    conditions: tuple[str, ...] = ()
    side: str = ""
    below: tuple["Drawn", ...] = ()


def drawing(plan: Pipeline) -> str:
    """Draw the whole plan: of several outputs one after the other, and what they share once."""
    drawn = _Drawing(plan)
    trees = [list(_rows(drawn.stage(result.stage, ""), "└─ ", "   ")) for result in plan.results]
    width = min(max(len(text) for rows in trees for text, _ in rows), _WIDEST)
    found = []
    for result, rows in zip(plan.results, trees, strict=True):
        rows_are = "changes" if plan.stages[result.stage].changes else "final rows"
        head = f"output {result.name}" if result.name else "result"
        lines = (f"{text:{width}}   {side}".rstrip() for text, side in rows)
        found.append("\n".join([f"{head}: {rows_are}", *lines]))
    return "\n\n".join(found)


def _rows(drawn: Drawn, branch: str, indent: str) -> Iterator[tuple[str, str]]:
    whole = "  ".join([drawn.text, *drawn.conditions])
    apart = () if len(whole) <= _LONGEST else drawn.conditions
    yield f"{branch}{_short(drawn.text if apart else whole)}", drawn.side
    for condition in apart:
        yield f"{indent}{'│  ' if drawn.below else '   '}{_short(condition)}", ""
    for at, child in enumerate(drawn.below):
        last = at == len(drawn.below) - 1
        yield from _rows(child, f"{indent}{'└─ ' if last else '├─ '}", f"{indent}{'   ' if last else '│  '}")


def _short(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]} …"


class _Drawing:
    """Draws each stage once."""

    def __init__(self, plan: Pipeline) -> None:
        self.plan = plan
        self.parts = parts(plan)
        self.seen: set[int] = set()

    def stage(self, number: int, name: str) -> Drawn:
        """Draw a stage, which its reader calls `name`, and all below it."""
        stage, head = self.plan.stages[number], f"{name}: " if name else ""
        side = f"stage {number}{', changes' if stage.changes else ''}"
        if number in self.seen:
            return Drawn(f"{head}drawn above", (), side)
        self.seen.add(number)
        if isinstance(stage, GroupStage) and _of_constants(stage):
            return Drawn(f"{head}one row", (), side)
        if isinstance(stage, GroupStage):
            text, *conditions = _group(stage)
            return Drawn(head + text, tuple(conditions), side, self._inputs(stage))
        if isinstance(stage, OverStage):
            text = summary(stage)
            return Drawn(head + text, (), side, self._inputs(stage))
        drawn = self._joined(stage, number)
        for asked in stage.lookups:
            table = Drawn(named(asked.table), tuple(filters(asked.table)))
            drawn = Drawn(_lookup(asked), _decided(asked.predicate, asked.where), side, (drawn, table))
        return replace(drawn, text=head + drawn.text)

    def _joined(self, stage: Stage | PathStage | HopStage, number: int) -> Drawn:
        if isinstance(stage, Stage):
            return self._tree(stage, stage.root, number)
        at = self.plan.store_of(number)
        store = self.plan.stages[at]
        assert isinstance(store, PathStage)
        side = f"stages {at} to {number}{', changes' if store.changes else ''}"
        text = (
            f"join by paths of {' ⋈ '.join(map(called, origins(store)))} on {' and '.join(equalities(store))}"
        )
        decided = (*map(describe, store.tree.bounds), *_decided(store.tree.predicate, store.tree.where))
        return Drawn(text, decided, side, tuple(map(self._input, origins(store))))

    def _inputs(self, stage: AnyStage) -> tuple[Drawn, ...]:
        below = tuple(map(self._input, stage.inputs))
        apart = len(below) == 1 or (isinstance(stage, OverStage) and asof(stage))
        return below if apart else (Drawn("union all", below=below),)

    def _input(self, given: InputPlan) -> Drawn:
        if given.upstream is None:
            return Drawn(named(given), tuple(filters(given)), "changes" if given.changes else "")
        name = "" if given.alias.startswith("$") else given.alias
        part = self.parts.get(name, name)
        drawn = self.stage(given.upstream, name if part == name else f"{name} = {part}")
        return replace(drawn, conditions=(*drawn.conditions, *filters(given)))

    def _tree(self, stage: Stage, tree: Operator | Leaf, number: int) -> Drawn:
        if isinstance(tree, Leaf):
            below = self._inputs(stage) if tree is stage.root else (self._input(stage.inputs[tree.input]),)
            if tree is not stage.root or stage.lookups:
                return below[0]
            if len(stage.inputs) > 1:
                return replace(below[0], side=f"stage {number}{', changes' if stage.changes else ''}")
            return Drawn(_project(stage), (), f"stage {number}{', changes' if stage.changes else ''}", below)
        below = tuple(self._tree(stage, child, number) for child in tree.children)
        side = f"stage {number}{', changes' if tree.changes else ''}"
        bounds = tuple(describe(bound) for bound in tree.bounds)
        return Drawn(_join(stage, tree), (*bounds, *_decided(tree.predicate, tree.where)), side, below)


def _of_constants(stage: GroupStage) -> bool:
    """Return whether a stage gives the one row that VALUES, or SELECT without FROM, are made of."""
    return not stage.grouping.keys and all(
        given.upstream is None and given.filter is not None and given.filter.sql == "FALSE"
        for given in stage.inputs
    )


def _project(stage: Stage) -> str:
    names = [c.name for c in stage.select if not c.name.startswith("$")]
    return f"project {', '.join(names) or 'rows, which only count'}"


def _group(stage: GroupStage) -> Iterator[str]:
    alias = stage.inputs[0].alias
    by, calls = by_keys(stage.grouping, alias), [plain(c.sql, alias) for c in stage.grouping.every]
    yield f"group by {by}:" if by and calls else f"distinct {by}" if by else "aggregate:"
    if calls:
        yield ", ".join(calls)
    if stage.grouping.having is not None:
        yield f"having {plain(stage.grouping.having.sql, alias)}"


def _decided(predicate: Expr | None, where: Expr | None) -> tuple[str, ...]:
    told = (("if", predicate), ("where", where))
    return tuple(f"{word} {bare(value.sql)}" for word, value in told if value is not None)


def _join(stage: Stage, join: Operator) -> str:
    if join.kind == "upsert":
        return f"last row of each {', '.join(key(stage, k) for k in join.sides[0].keys)}"
    names = [spoken(stage, child) for child in join.children]
    on = ", ".join(_equality([key(stage, k) for k in keys]) for keys in related(stage, join))
    own = all(
        isinstance(c, Leaf) and called(stage.inputs[c.input]) == stage.inputs[c.input].alias
        for c in join.children
    )
    of = (
        f" {f' {_SIGNS[join.kind]} '.join(names)}" if own else ""
    )  # others are drawn below, and have no names
    return f"{join.kind} join{of}" + (f" on {on}" if on else "")


def _equality(columns: list[str]) -> str:
    """Name a column once that is called the same in all inputs."""
    names = {"" if "(" in c else c.partition(".")[2] for c in columns}  # what is computed has no name
    return names.pop() if len(names) == 1 and "" not in names else " = ".join(columns)


def _lookup(asked: Lookup) -> str:
    on = [f"{probe.sql} = {column}" for probe, column in zip(asked.probe, asked.table.keys, strict=True)]
    return f"{asked.kind} lookup of {asked.table.alias}" + (f" on {', '.join(on)}" if on else "")
