"""A stage's tree of joins as operators with numbered sides: who keeps which columns, and for how long.

How long: let hi(x, y) be the most that event time y may exceed x in a match that matters (`reach`). A row of input X is
needed until no row of any other input Y can still come that matches it: watermark > x + hold,
hold = max over Y of min over y in Y of hi(x, y) + delay(y).
A column of a base input has delay 0 (late rows are left out); one of a join's output comes as late as that join may hold
its row back: delay = hold. This is the forwarded watermark of design §4, without a second watermark. An earlier stage's rows
come as late as the plan says.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from joinlib.expr import Expr
from joinlib.expr.bound import Bound
from joinlib.join.config import Index, Join, Kind, Leaf, Meet
from joinlib.join.reach import Bounds, Holding, Reach, all_bounds, closure, columns
from joinlib.route.config import HASH, InputPlan
from joinlib.route.hash import exact
from joinlib.state.config import SideConfig
from joinlib.state.manifest import ALWAYS


@dataclass(frozen=True)
class Operator:
    """One join of the tree, ready to run."""

    kind: Kind
    children: tuple["Operator | Leaf", ...]
    sides: tuple[SideConfig, ...]
    exact: bool  # equal hash is equal key
    bounds: tuple[Bound, ...]
    predicate: Expr | None
    where: Expr | None
    schema: pa.Schema  # what its parent, or the select list, reads of it; "$hash" first
    index: Index = "hash"
    meets: tuple[Meet, ...] = ()
    residual: Expr | None = None  # of the predicate, what is to be checked of pairs that were found

    def operators(self) -> Iterator["Operator"]:
        """This one and all below it, children first."""
        for child in self.children:
            if isinstance(child, Operator):
                yield from child.operators()
        yield self


def layout(
    tree: Join,
    inputs: tuple[InputPlan, ...],
    select: tuple[Expr, ...],
    hash_bits: int = 64,
    index: Index = "hash",
) -> Operator:
    """The operators of a stage. Side numbers count in the order of the tree, children first."""
    types = {c.name: c.value.type for i in inputs for c in i.columns}
    maker = _Maker(inputs, types, columns(all_bounds(tree)), hash_bits, index)
    return maker.make(tree, {c for e in select for c in e.columns}, ())


def lateness(tree: Join, inputs: tuple[InputPlan, ...], select: tuple[Expr, ...]) -> dict[str, int]:
    """How many µs event times may be behind the watermark as rows come out of the tree.

    Those without a limit are not among them, nor those that an outer join may have left NULL.
    """
    types = {c.name: c.value.type for i in inputs for c in i.columns}
    maker = _Maker(inputs, types, columns(all_bounds(tree)), 64, "hash")
    root = maker.make(tree, {c for e in select for c in e.columns}, ())
    sure = _certain(root, root.schema)
    return {y: us for y, us in maker.delays.items() if y in sure and us < ALWAYS // 2}


class _Maker:
    def __init__(
        self,
        inputs: tuple[InputPlan, ...],
        types: dict[str, pa.DataType],
        timed: set[str],
        hash_bits: int,
        index: Index,
    ) -> None:
        self.index: Index = index
        self.inputs, self.types, self.timed, self.hash_bits = inputs, types, timed, hash_bits
        self.holding = Holding(inputs)
        self.delays = dict(pair for i in inputs for pair in _behind(i, timed))  # of columns of joins' outputs
        self.sides = 0

    def make(self, join: Join, above: set[str], outside: Bounds) -> Operator:
        """`outside`: the bounds that hold of every row of the join's output that matters."""
        needed = above | _read(join)
        inside = [self.holding.inside(join, at, outside) for at in range(len(join.inputs))]
        children = tuple(
            c if isinstance(c, Leaf) else self.make(c, needed, known)
            for c, known in zip(join.inputs, inside, strict=True)
        )
        schemas = [self._schema(c, needed) for c in children]
        times = [
            [n for n in s.names if n in self.timed & _certain(c, s)]
            for s, c in zip(schemas, children, strict=True)
        ]
        known = (*outside, *join.bounds)
        hi = closure((*known, *(b for c in join.inputs for b in self.holding.of(c, known))))
        sides = tuple(self._side(join, at, schemas, times, hi) for at in range(len(children)))
        for side, own, child, known in zip(sides, times, join.inputs, inside, strict=True):
            self._delay(side, own, closure((*known, *self.holding.of(child, known))))
        names = dict.fromkeys(
            n for s in (schemas[:1] if join.kind in ("semi", "anti") else schemas) for n in s.names
        )
        schema = pa.schema(
            [pa.field(HASH, pa.uint64())] + [pa.field(n, self.types[n]) for n in names if n in above]
        )
        unique = exact([self.types[k] for k in join.keys[0]], self.hash_bits)
        return Operator(
            join.kind,
            children,
            sides,
            unique,
            join.bounds,
            join.predicate,
            join.where,
            schema,
            self.index,
            join.meets,
            join.predicate if self.index == "hash" else join.residual,
        )

    def _schema(self, child: Operator | Leaf, needed: set[str]) -> pa.Schema:
        if isinstance(child, Operator):
            return child.schema
        return pa.schema([pa.field(HASH, pa.uint64()), *self.inputs[child.input].schema])

    def _side(
        self, join: Join, at: int, schemas: list[pa.Schema], times: list[list[str]], hi: Reach
    ) -> SideConfig:
        holds = {x: self._hold(x, hi, [t for o, t in enumerate(times) if o != at]) for x in times[at]}
        bounded = {x: h for x, h in holds.items() if h is not None}
        time = min(bounded, key=lambda x: bounded[x], default=None)
        marked = (join.kind != "inner" and at == 0) or join.kind == "full"
        self.sides += 1
        hold = bounded.get(time) if time else None
        compared = _compared(join) if self.index == "sorted" else ""
        chained = self.index == "hash"
        return SideConfig(self.sides - 1, schemas[at], join.keys[at], time, hold, marked, compared, chained)

    def _delay(self, side: SideConfig, times: list[str], hi: Reach) -> None:
        """How far behind the watermark the event times of `side` can be in the join's output."""
        for y in times:
            known = (
                side.time is not None
                and side.hold_us is not None
                and (y == side.time or (y, side.time) in hi)
            )
            late = side.hold_us + hi.get((y, side.time), 0) if known else ALWAYS  # type: ignore[operator,arg-type]
            self.delays[y] = max(self.delays.get(y, 0), late)

    def _hold(self, x: str, hi: Reach, others: list[list[str]]) -> int | None:
        """How long after x a row is needed; None: for ever."""
        longest = 0
        for times in others:
            reach = [hi[x, y] + self.delays.get(y, 0) for y in times if (x, y) in hi]
            if not reach or min(reach) >= ALWAYS // 2:
                return None
            longest = max(longest, min(reach))
        return longest


def _behind(plan: InputPlan, timed: set[str]) -> Iterator[tuple[str, int]]:
    """How late the event times of an earlier stage's rows may be; ALWAYS: there is no limit."""
    if plan.upstream is not None:
        known = dict(plan.behind)
        yield from ((c.name, known.get(c.name, ALWAYS)) for c in plan.columns if c.name in timed)


def _compared(join: Join) -> str:
    """A text that is another one if stored rows would be sorted in another way."""
    predicate = "" if join.predicate is None else join.predicate.sql
    bounds = sorted((b.left, b.right, b.low_us is None, b.high_us is None) for b in join.bounds)
    keyed = " by key" if join.keys[0] else ""
    return f"1{keyed} {[(m.sign, str(m.left.type)) for m in join.meets]} {bounds} {predicate}"


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
    exprs += [value for meet in join.meets for value in (meet.left, meet.right)]
    return (
        {c for e in exprs for c in e.columns}
        | {k for ks in join.keys for k in ks}
        | {c for b in join.bounds for c in (b.left, b.right)}
    )
