"""Turns a stage's joins into operators with numbered sides: which columns each side keeps, and for how long.

How long: let hi(x, y) be the most that event time y may exceed x in a match that matters (`reach`). A row of
input X is needed until no row of any other input Y that matches it can still arrive: watermark > x + hold,

    hold = max over Y of min over y in Y of hi(x, y) + delay(y).

A column of a base input has delay 0 (late rows are dropped). A column of a join's output arrives as late as
that join may hold its row back: delay = hold. So the watermark is forwarded through outer joins, without a
second one. Rows of an earlier stage arrive as late as the plan says.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa

from joinlib.expr import Expr
from joinlib.model.inputs import HASH, WEIGHT, InputPlan
from joinlib.model.joins import Index, Join, Leaf
from joinlib.model.keys import hash_is_key
from joinlib.model.operator import Operator
from joinlib.model.side import SideConfig
from joinlib.model.time import ALWAYS
from joinlib.plan.reach import Bounds, Holding, Reach, all_bounds, closure, columns

Joined = Mapping[frozenset[str], frozenset[str]]  # columns, by the aliases of the rows that have them


def layout(
    tree: Join | Leaf,
    inputs: tuple[InputPlan, ...],
    above: tuple[Expr, ...],
    index: Index = "hash",
    eager: bool = False,
    stored: Joined = MappingProxyType({}),
) -> Operator | Leaf:
    """Return the operators of a stage. Sides are numbered in the order of the tree, children first.

    `above`: all expressions that are evaluated on the rows that the tree emits. `eager`: rows without a partner
    are emitted at once, and taken back when one comes. `stored`: columns to store of joined rows, by the aliases
    in them, besides what is read.
    """
    if isinstance(tree, Leaf):
        return tree
    maker = _Maker(inputs, columns(all_bounds(tree)), index, eager, stored)
    return maker.make(tree, {c for e in above for c in e.columns}, ())


def lateness(tree: Join | Leaf, inputs: tuple[InputPlan, ...], above: tuple[Expr, ...]) -> dict[str, int]:
    """Return how many µs event times may be behind the watermark as rows are emitted by the tree.

    Times that may be behind by any amount are left out, as are times that an outer join may have filled with
    NULL.
    """
    if isinstance(tree, Leaf):
        return {}
    maker = _Maker(inputs, columns(all_bounds(tree)), "hash")
    root = maker.make(tree, {c for e in above for c in e.columns}, ())
    sure = _certain(root, root.schema)
    return {y: us for y, us in maker.delays.items() if y in sure and us < ALWAYS // 2}


class _Maker:
    def __init__(
        self,
        inputs: tuple[InputPlan, ...],
        timed: set[str],
        index: Index,
        eager: bool = False,
        stored: Joined = MappingProxyType({}),
    ) -> None:
        self.index: Index = index
        self.eager, self.stored = eager, stored
        self.inputs, self.timed = inputs, timed
        self.types = {c.name: c.value.type for i in inputs for c in i.columns}
        self.holding = Holding(inputs)
        self.delays = dict(pair for i in inputs for pair in _behind(i, timed))  # of columns of joins' outputs
        self.sides = 0

    def make(self, join: Join, above: set[str], outside: Bounds) -> Operator:
        """Make the operator of a join. `outside`: bounds that hold for each output row that matters."""
        needed = above | _read(join)
        inside = [self.holding.inside(join, at, outside) for at in range(len(join.inputs))]
        children = tuple(
            c if isinstance(c, Leaf) else self.make(c, needed | self._stored(c), known)
            for c, known in zip(join.inputs, inside, strict=True)
        )
        schemas = [self._schema(c, needed) for c in children]
        times = [
            [n for n in s.names if n in self.timed & _certain(c, s)]
            for s, c in zip(schemas, children, strict=True)
        ]
        known = (*outside, *join.bounds)
        hi = closure((*known, *(b for c in join.inputs for b in self.holding.of(c, known))))
        changing = [self._changes(c) for c in children]
        sides = tuple(self._side(join, at, schemas, times, hi, changing) for at in range(len(children)))
        eager = join.kind != "inner" and (any(changing) or (self.eager and join.kind != "semi"))
        if eager:
            sides = _longer(sides, changing)
        if any(isinstance(c, Leaf) and self.inputs[c.input].twin is not None for c in children):
            sides = _once(*sides)
        for side, own, child, known in zip(sides, times, join.inputs, inside, strict=True):
            self._delay(side, own, closure((*known, *self.holding.of(child, known))))
        names = dict.fromkeys(
            n for s in (schemas[:1] if join.kind in ("semi", "anti") else schemas) for n in s.names
        )
        changes = eager or any(changing)
        schema = pa.schema(
            [pa.field(HASH, pa.uint64())]
            + [pa.field(n, self.types[n]) for n in names if n in above]
            + ([pa.field(WEIGHT, pa.int64())] if changes else [])
        )
        unique = hash_is_key([self.types[k] for k in join.keys[0]])
        index: Index = "scan" if join.everywhere else self.index
        return Operator(
            join.kind,
            children,
            sides,
            unique,
            join.bounds,
            join.predicate,
            join.where,
            schema,
            index,
            join.index_conditions,
            join.predicate if index == "hash" else join.residual,
            changes=changes,
            eager=eager,
        )

    def _stored(self, child: Join) -> frozenset[str]:
        """Return what is to be stored of the rows of a child, whoever reads it."""
        return self.stored.get(frozenset(self.inputs[leaf].alias for leaf in _leaves(child)), frozenset())

    def _changes(self, child: Operator | Leaf) -> bool:
        """Return whether the rows of a child come with weights."""
        return child.changes if isinstance(child, Operator) else self.inputs[child.input].changes

    def _schema(self, child: Operator | Leaf, needed: set[str]) -> pa.Schema:
        if isinstance(child, Operator):
            return pa.schema([field for field in child.schema if field.name != WEIGHT])
        return pa.schema([pa.field(HASH, pa.uint64()), *self.inputs[child.input].schema])

    def _side(
        self,
        join: Join,
        at: int,
        schemas: list[pa.Schema],
        times: list[list[str]],
        hi: Reach,
        changing: list[bool],
    ) -> SideConfig:
        holds = {x: self._hold(x, hi, [t for o, t in enumerate(times) if o != at]) for x in times[at]}
        bounded = {x: h for x, h in holds.items() if h is not None}
        time = min(bounded, key=lambda x: bounded[x], default=None)
        marked = (join.kind != "inner" and at == 0) or join.kind == "full"
        self.sides += 1
        hold = bounded.get(time) if time else None
        compared = _compared(join) if self.index == "sorted" else ""
        mutable = changing[at] or (marked and changing[1 - at])
        # chains have the marks
        chained = mutable or (self.index == "hash" and (marked or not join.everywhere))
        return SideConfig(
            self.sides - 1, schemas[at], join.keys[at], time, hold, marked, compared, chained, mutable
        )

    def _delay(self, side: SideConfig, times: list[str], hi: Reach) -> None:
        """Record how far behind the watermark the event times of `side` can be in the join's output."""
        for y in times:
            known = (
                side.time is not None
                and side.hold_us is not None
                and (y == side.time or (y, side.time) in hi)
            )
            late = side.hold_us + hi.get((y, side.time), 0) if known else ALWAYS  # type: ignore[operator,arg-type]
            self.delays[y] = max(self.delays.get(y, 0), late)

    def _hold(self, x: str, hi: Reach, others: list[list[str]]) -> int | None:
        """How many µs after `x` a row is needed; None means forever."""
        longest = 0
        for times in others:
            reach = [hi[x, y] + self.delays.get(y, 0) for y in times if (x, y) in hi]
            if not reach or min(reach) >= ALWAYS // 2:
                return None
            longest = max(longest, min(reach))
        return longest


def _leaves(tree: Join | Leaf) -> Iterator[int]:
    if isinstance(tree, Leaf):
        yield tree.input
    else:
        for child in tree.inputs:
            yield from _leaves(child)


def _longer(sides: tuple[SideConfig, ...], changing: list[bool]) -> tuple[SideConfig, ...]:
    """Keep rows of a side for as long as a stored partner, where its rows may be deleted.

    Otherwise the partner of an expired and of a deleted row would look like one that has none.
    """
    holds = [side.hold_us for side in sides]
    whole = None if None in holds else sum(h for h in holds if h is not None)
    return tuple(
        replace(side, hold_us=whole, time=side.time if whole is not None else None) if changes else side
        for side, changes in zip(sides, changing, strict=True)
    )


def _once(first: SideConfig, second: SideConfig) -> tuple[SideConfig, ...]:
    """Let the first of two sides have the rows of both, for as long as one of them needs a row."""
    hold = None if None in (first.hold_us, second.hold_us) else max(first.hold_us or 0, second.hold_us or 0)
    both = (replace(s, hold_us=hold, time=None if hold is None else s.time) for s in (first, second))
    one, other = both
    return one, replace(other, of=one.number, compared="")


def _behind(plan: InputPlan, timed: set[str]) -> Iterator[tuple[str, int]]:
    """The event times of an earlier stage's rows and how many µs late they may be; ALWAYS: without limit."""
    if plan.upstream is not None or plan.behind:
        known = dict(plan.behind)
        yield from ((c.name, known.get(c.name, ALWAYS)) for c in plan.columns if c.name in timed)


def _compared(join: Join) -> str:
    """A text that changes whenever stored rows would have to be sorted differently."""
    predicate = "" if join.predicate is None else join.predicate.sql
    bounds = sorted((b.left, b.right, b.low_us is None, b.high_us is None) for b in join.bounds)
    keyed = " by key" if join.keys[0] else ""
    return f"1{keyed} {[(m.sign, str(m.left.type)) for m in join.index_conditions]} {bounds} {predicate}"


def _certain(child: Operator | Leaf, schema: pa.Schema) -> set[str]:
    """The columns that no outer join has filled with NULLs."""
    if isinstance(child, Leaf):
        return set(schema.names)
    inside = [_certain(c, side.schema) for c, side in zip(child.children, child.sides, strict=True)]
    if child.kind == "inner":
        return set().union(*inside)
    return set() if child.kind == "full" else inside[0]


def _read(join: Join) -> set[str]:
    """The columns that a join itself reads."""
    exprs = [e for e in (join.predicate, join.where) if e is not None]
    exprs += [value for meet in join.index_conditions for value in (meet.left, meet.right)]
    return (
        {c for e in exprs for c in e.columns}
        | {k for ks in join.keys for k in ks}
        | {c for b in join.bounds for c in (b.left, b.right)}
    )
