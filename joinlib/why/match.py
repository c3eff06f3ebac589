"""Joins a few rows as the engine would, and notes at which clause each of them is lost.

    rows that are asked for ─► partners by key ─► time bounds ─► conditions ─► with or without a partner ─► WHERE

The rows that are asked for lie in one input. All rows of other inputs that have their keys are there, so a row that finds
nothing here has found nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr.bound import Bound
from joinlib.expr.logic import conjuncts
from joinlib.expr.total import total
from joinlib.model.bounds import describe
from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Leaf
from joinlib.model.side import SideConfig
from joinlib.why.few import Few, made_of
from joinlib.why.node import JoinForm, Level
from joinlib.why.sift import Sifted
from joinlib.why.verdict import (
    Excluded,
    Excludes,
    Failed,
    KeyIsNull,
    Limit,
    NoPartner,
    SourceRow,
    TooFar,
    Unmatched,
    Values,
    Verdict,
    Waiting,
)

MOST_PAIRS = 2_000_000
_PLACES = ("$left", "$right")  # columns with the positions of rows in the inputs of a join
_SHOWN = 5  # rows that have the key and do not count
Say = Callable[[Few, int], Verdict]
Nearest = Mapping[object, tuple[str, ...]]  # by what was looked for


@dataclass
class Matching:
    """The joins of one level over a few rows. After `run`, `lost` says what became of rows that are not in its result."""

    level: Level
    leaves: Mapping[int, Sifted]
    asked: frozenset[int]
    nearest: Mapping[int, Nearest]  # by leaf
    row_of: Callable[[int], SourceRow]
    limit: Callable[[SideConfig, Few, int], Limit]  # of a row of a side
    dead: str | None  # the folder of joined rows for which a condition fails; None: they stop the job
    lost: dict[int, Verdict] = field(default_factory=dict)
    missed: dict[int, Verdict] = field(default_factory=dict)  # why rows have no partner that may do without

    def run(self) -> Few:
        """Return the rows that the joins emit; without a join, those that came in by any of its inputs."""
        if isinstance(self.level.root, Leaf):
            [only] = self.leaves.values()
            return only.kept
        return self._of(self.level.root)

    def _of(self, node: JoinForm | Leaf) -> Few:
        if isinstance(node, Leaf):
            return self.leaves[node.input].kept
        children = list(map(self._of, node.children))
        made = self._inner(node, children) if node.kind == "inner" else self._other(node, *children)
        return self._passing(made, node.where)

    # --- kinds -------------------------------------------------------------------------------------

    def _inner(self, node: JoinForm, children: list[Few]) -> Few:
        found, *rest = self._ordered(children)
        joined = children[found]
        for at in rest:
            pairs = self._paired(node, found, joined, at, children[at], self.lost)
            joined = _joined(joined, children[at], pairs)
            joined = self._bounded(node, found, joined, children[at], self.lost)
        return self._passing(joined, node.predicate)

    def _other(self, node: JoinForm, left: Few, right: Few) -> Few:
        """Join two inputs of which some rows are emitted without a partner, or for having one."""
        from_left = self._ordered([left, right])[0] == 0
        left, right = _numbered(left, _PLACES[0]), _numbered(right, _PLACES[1])
        # Where a row of the left has no partner it may still be emitted; one of the right only of a full join.
        free = node.kind == "full" or (from_left and node.kind != "semi")
        noted = self.missed if free else self.lost
        me, own, other = (0, left, right) if from_left else (1, right, left)
        both = _joined(own, other, self._paired(node, me, own, 1 - me, other, noted))
        both = self._bounded(node, me, both, other, noted)
        both = self._passing(both, node.predicate, noted)
        if node.kind == "anti":
            return _plain(self._anti(node, left, right, both, from_left))
        if node.kind == "semi":
            return _plain(_semi(left, both))
        if from_left or node.kind == "full":
            both = both.also(self._released(node, me, own, both, other))
        return _plain(both)

    def _anti(self, node: JoinForm, left: Few, right: Few, both: Few, from_left: bool) -> Few:
        if not from_left:
            for one in self.asked:
                if right.positions(one):
                    at = next(iter(both.positions(one)), None)
                    self.lost[one] = Excludes(None if at is None else self._other_of(both, at))
            return left.take([])
        for one in self.asked:
            if found := both.positions(one):
                self.lost[one] = Excluded(self._other_of(both, found[0]))
        return self._released(node, 0, left, both, None)

    def _released(self, node: JoinForm, side: int, own: Few, both: Few, other: Few | None) -> Few:
        """Return the rows of a side that are emitted without a partner; others wait."""
        matched = set(both.rows.column(_PLACES[side]).to_pylist())
        out = []
        for at, origin in enumerate(own.origins):
            if self.asked.isdisjoint(origin) or at in matched:
                continue
            limit = self.limit(node.sides[side], own, at)
            if node.eager or limit.over or None in own.take([at]).values(_needed(node, side))[0]:
                out.append(at)
                continue
            for one in self.asked.intersection(origin):
                self.lost[one] = Waiting(limit, self.missed.get(one))
        return own.take(out) if other is None else own.alone(out, other.rows.schema)

    # --- steps -------------------------------------------------------------------------------------

    def _ordered(self, children: Sequence[Few]) -> list[int]:
        """Return the children in an order in which each is found by those before it; that with the asked rows first."""
        whose = [not self.asked.isdisjoint(child.origin) for child in children]
        first = whose.index(True) if True in whose else 0
        order, left = [first], [n for n in range(len(children)) if n != first]
        while left:
            known = {name for n in order for name in children[n].rows.column_names}
            near = [n for n in left if self._keys(known, children[n])]
            order.append((near or left)[0])
            left.remove(order[-1])
        return order

    def _keys(self, known: set[str], other: Few) -> list[tuple[str, str]]:
        """Return the columns that are equal in a match of rows with the columns `known` and of others."""
        names, both = set(other.rows.column_names), self.level.equal
        turned = [(right, left) for left, right in both]
        return list(dict.fromkeys((a, b) for a, b in [*both, *turned] if a in known and b in names))

    def _paired(
        self, node: JoinForm, me: int, own: Few, at: int, other: Few, noted: dict[int, Verdict]
    ) -> list[tuple[int, int]]:
        """Return the positions of rows with equal keys."""
        keys = self._keys(set(own.rows.column_names), other)
        places = other.places([b for _, b in keys])
        mine = own.values([a for a, _ in keys])
        pairs = [
            (n, there) for n, value in enumerate(mine) if None not in value for there in places.get(value, ())
        ]
        if len(pairs) > MOST_PAIRS:
            raise SpecError(f"more than {MOST_PAIRS:,} pairs are to be compared; narrow the condition")
        left = own.take(sorted({n for n, _ in pairs}))
        self._lose(own, left, lambda few, n: self._none(node, me, few, n, node.children[at], keys), noted)
        return pairs

    def _none(
        self, node: JoinForm, me: int, own: Few, at: int, other: JoinForm | Leaf, keys: list[tuple[str, str]]
    ) -> Verdict:
        """Say what there is of the other input in place of a partner."""
        value = own.take([at]).values([a for a, _ in keys])[0]
        if None in value:
            return KeyIsNull(
                tuple(_said(self.level.inputs, a) for (a, _), v in zip(keys, value, strict=True) if v is None)
            )
        leaves = [leaf for leaf in _leaves(other) if leaf in self.leaves]
        lost = [
            (self.row_of(one.origin[0]), one.verdict)
            for leaf in leaves
            for one in self.leaves[leaf].lost
            if one.row and tuple(one.row.get(b) for _, b in keys) == value
        ]
        name = " and ".join(dict.fromkeys(_called(self.level.inputs[leaf]) for leaf in leaves))
        shown = ", ".join(
            f"{_said(self.level.inputs, b)} = {v}" for (_, b), v in zip(keys, value, strict=True)
        )
        near = (
            next((self.nearest[leaf].get(value[0], ()) for leaf in leaves if leaf in self.nearest), ())
            if value
            else ()
        )
        return NoPartner(name, shown, near, tuple(lost[:_SHOWN]), self._limit(node, me, own, at))

    def _limit(self, node: JoinForm, me: int, few: Few, at: int) -> Limit:
        return self.limit(node.sides[me], few, at)

    def _bounded(self, node: JoinForm, me: int, joined: Few, other: Few, noted: dict[int, Verdict]) -> Few:
        """Return the pairs within the time bounds that concern what was joined last."""
        names, new = set(joined.rows.column_names), set(other.rows.column_names)
        for bound in node.bounds:
            if {bound.left, bound.right} <= names and new & {bound.left, bound.right}:
                beyond = _beyond(joined, bound)
                kept = joined.where([by == 0 for by in beyond])

                def far(few: Few, at: int, bound: Bound = bound, beyond: list[int] = beyond) -> Verdict:
                    one = next(n for n in few.origins[at] if n in self.asked)
                    near = min(few.positions(one), key=lambda n: beyond[n])
                    limit = self._limit(node, me, few, near)
                    return TooFar(self._other_of(few, near), describe(bound), beyond[near], limit)

                self._lose(joined, kept, far, noted)
                joined = kept
        return joined

    def _passing(self, few: Few, condition: Expr | None, noted: dict[int, Verdict] | None = None) -> Few:
        """Return the rows for which a condition is true, clause by clause; as in the engine, those first that never fail."""
        clauses = conjuncts(condition) if condition is not None else []
        for clause in sorted(clauses, key=lambda one: not total(one.node)):
            sound, errors = few.sound(clause)

            def failed(_: Few, at: int, errors: Mapping[int, str] = errors) -> Verdict:
                return Failed(errors[at], self.dead)

            self._lose(few, sound, failed, noted)
            few = sound
            kept = few.where(few.truth(clause))

            def refused(few: Few, at: int, clause: Expr = clause) -> Verdict:
                return Unmatched(self._other_of(few, at), clause.sql, self._made_values(clause, few, at))

            self._lose(few, kept, refused, noted)
            few = kept
        return few

    def _made_values(self, clause: Expr, few: Few, at: int) -> Values:
        """Return the values that a condition reads of rows that an earlier stage has made: nothing else shows them."""
        inputs = self.level.inputs
        made = {name for plan in inputs if plan.upstream is not None for name in plan.schema.names}
        names = [name for name in clause.columns if name in made]
        return tuple((_said(inputs, name), few.rows.column(name)[at].as_py()) for name in names)

    def _lose(self, before: Few, after: Few, say: Say, noted: dict[int, Verdict] | None = None) -> None:
        """Note of the asked rows that were there before and are not after why that is."""
        noted = self.lost if noted is None else noted
        for one in self.asked.difference(after.origin, noted):
            if at := before.positions(one):
                noted[one] = say(before, at[0])

    def _other_of(self, few: Few, at: int) -> SourceRow | None:
        """Return a row that was joined with the asked one: the last."""
        others = [n for n in made_of(few.origins[at]) if n not in self.asked]
        return self.row_of(others[-1]) if others else None


def _semi(left: Few, both: Few) -> Few:
    """Return each row of the left that has partners once, made of all of them."""
    found: dict[int, dict[int, None]] = defaultdict(dict)
    for at, origin in zip(both.rows.column(_PLACES[0]).to_pylist(), both.origins, strict=True):
        found[at] |= dict.fromkeys((*left.origins[at], *origin))
    return Few(left.take(list(found)).rows, tuple(map(tuple, found.values())))


def _numbered(few: Few, name: str) -> Few:
    """Return rows with their positions."""
    return Few(few.rows.append_column(name, pa.array(range(few.rows.num_rows), pa.int64())), few.origins)


def _plain(few: Few) -> Few:
    """Return rows without positions."""
    return Few(few.rows.select([name for name in few.rows.column_names if name not in _PLACES]), few.origins)


def _joined(own: Few, other: Few, pairs: list[tuple[int, int]]) -> Few:
    return own.beside([a for a, _ in pairs], other, [b for _, b in pairs])


def _leaves(node: JoinForm | Leaf) -> list[int]:
    return [node.input] if isinstance(node, Leaf) else [n for child in node.children for n in _leaves(child)]


def _needed(node: JoinForm, side: int) -> list[str]:
    """Return the columns of a side without which a row never matches, so that it does not wait."""
    own = node.sides[side]
    bounded = (
        name for bound in node.bounds for name in (bound.left, bound.right) if name in own.schema.names
    )
    return [*own.keys, *bounded]


def _called(plan: InputPlan) -> str:
    return plan.source if plan.upstream is None else f"the rows of stage {plan.upstream}"


def _said(inputs: Sequence[InputPlan], column: str) -> str:
    """Return a column of the key as the SQL has it."""
    return next((c.value.sql for plan in inputs for c in plan.columns if c.name == column), column)


def _beyond(few: Few, bound: Bound) -> list[int]:
    """Return by how much each pair is outside of a bound, µs; 0: it is within."""
    left, right = (pc.cast(few.read(name), "int64").to_pylist() for name in (bound.left, bound.right))
    found = []
    for one, two in zip(left, right, strict=True):
        if one is None or two is None:
            found.append(1)
            continue
        low = 0 if bound.low_us is None else max(bound.low_us - (two - one), 0)
        high = 0 if bound.high_us is None else max((two - one) - bound.high_us, 0)
        found.append(max(low, high))
    return found
