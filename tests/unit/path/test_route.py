"""Routes, run by hand over tiny tables, find the increment of the join: no row is missed, none is found twice."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from joinlib.path.graph import Arrangement, JoinGraph, Key, Path, every_path, possible_arrangements
from joinlib.path.route import JoinColumns, JoinCondition, Route, RouteHop, member_of, route
from joinlib.path.search import search
from tests.unit.path.graphs import costs, join_graphs

Row = tuple[int, ...]  # a value for each class, then one more
Rows = Counter[Row]  # with weights
Tuple = Mapping[str, int]


def columns(
    graph: JoinGraph, conditions: Sequence[JoinCondition] = (), selected: Sequence[str] | None = None
) -> JoinColumns:
    """Input 0 has columns 0.0, 0.1, … of its classes, and 0.v."""
    members = tuple(
        tuple(f"{one}.{c}" if one in members else None for c, members in enumerate(graph.classes))
        for one in range(graph.inputs)
    )
    inputs = tuple(frozenset([f"{one}.v", *filter(None, names)]) for one, names in enumerate(members))
    chosen = [f"{one}.v" for one in range(graph.inputs)] if selected is None else selected
    return JoinColumns(inputs, members, frozenset(chosen), tuple(conditions))


def named(read: JoinColumns, one: int, row: Row) -> dict[str, int]:
    values = {name: row[c] for c, name in enumerate(read.members[one]) if name is not None}
    return {**values, f"{one}.v": row[-1]}


def holds(condition: JoinCondition, known: Tuple) -> bool:
    return sum(known[name] for name in condition.columns) % 3 != 0


@dataclass(frozen=True)
class Batch:
    """Each input before the batch, and what it brings; −1: the row goes."""

    before: tuple[Rows, ...]
    change: tuple[Rows, ...]

    def seen(self, one: int, after: bool) -> Rows:
        found = self.before[one].copy()
        if after:
            found.update(self.change[one])
        return found


def run(
    graph: JoinGraph, arrangements: Sequence[Arrangement], found: Route, batch: Batch, read: JoinColumns
) -> Counter[Row]:
    """What the new rows of one input find; between legs a tuple keeps what it carries, and nothing else."""
    tuples = [(named(read, found.start, row), n) for row, n in batch.change[found.start].items()]
    bound = [found.start]
    for leg in found.legs:
        for hop in leg.hops:
            tuples = [
                pair for t in tuples for pair in _probed(graph, arrangements, hop, t, bound, batch, read)
            ]
            bound.append(arrangements[hop.probe.arrangement].input)
        tuples = [({name: known[name] for name in leg.carried}, n) for known, n in tuples]
    result: Counter[Row] = Counter()
    for known, n in tuples:
        result[tuple(known[name] for name in sorted(read.selected))] += n
    return result


def _probed(
    graph: JoinGraph, arrangements: Sequence[Arrangement], hop: RouteHop, one: tuple[Tuple, int], bound: Sequence[int],
    batch: Batch, read: JoinColumns,
) -> Iterator[tuple[Tuple, int]]:  # fmt: skip
    known, n = one
    aim = arrangements[hop.probe.arrangement]
    for row, count in batch.seen(aim.input, hop.after).items():
        if all(row[c] == known[member_of(graph, c, bound, read)] for c in (*aim.key, *hop.equal)):
            longer = {**known, **named(read, aim.input, row)}
            if all(holds(read.conditions[c], longer) for c in hop.decided):
                yield longer, n * count


def joined(graph: JoinGraph, tables: Sequence[Rows], read: JoinColumns) -> Counter[Row]:
    """The definition."""
    result: Counter[Row] = Counter()
    for rows in product(*(table.items() for table in tables)):
        known = {name: v for one, (row, _) in enumerate(rows) for name, v in named(read, one, row).items()}
        values = [{rows[one][0][c] for one in members} for c, members in enumerate(graph.classes)]
        if all(len(each) == 1 for each in values) and all(holds(c, known) for c in read.conditions):
            n = 1
            for _, weight in rows:
                n *= weight
            result[tuple(known[name] for name in sorted(read.selected))] += n
    return result


@st.composite
def batches(draw: st.DrawFn, graph: JoinGraph) -> Batch:
    """Rows come, and some that were there go: in every input at once."""
    rows = st.tuples(*[st.integers(0, 1)] * (len(graph.classes) + 1))
    before, change = [], []
    for _ in range(graph.inputs):
        had: Rows = Counter(draw(st.lists(rows, max_size=3)))
        moves: Rows = Counter(draw(st.lists(rows, max_size=2)))
        for row in sorted(had):
            moves[row] -= draw(st.integers(0, had[row]))
        before.append(had)
        change.append(Counter({row: n for row, n in moves.items() if n}))
    return Batch(tuple(before), tuple(change))


@st.composite
def conditions(draw: st.DrawFn, graph: JoinGraph) -> list[JoinCondition]:
    found = []
    for _ in range(draw(st.integers(0, 2))):
        read = draw(st.sets(st.integers(0, graph.inputs - 1), min_size=1, max_size=3))
        found.append(JoinCondition(frozenset(read), frozenset(f"{i}.v" for i in read), draw(st.booleans())))
    return found


@given(st.data())
def test_routes_find_the_increment(data: st.DataObject) -> None:
    """Any graph, paths, homes, conditions; rows that come and rows that go in all inputs of one batch."""
    graph = data.draw(join_graphs(most=4))
    arrangements = possible_arrangements(graph)
    batch, found = data.draw(batches(graph)), Counter[Row]()
    read = columns(graph, data.draw(conditions(graph)), data.draw(st.sampled_from([None, ["0.v"]])))
    for start in range(graph.inputs):
        path = data.draw(st.sampled_from(list(every_path(graph, arrangements, start))[:50]))
        home = data.draw(st.sampled_from([a.key for a in arrangements if a.input == start]))
        found.update(run(graph, arrangements, route(graph, arrangements, path, home, read), batch, read))
    expected = joined(graph, [batch.seen(i, True) for i in range(graph.inputs)], read)
    expected.subtract(joined(graph, batch.before, read))

    assert {row: n for row, n in found.items() if n} == {row: n for row, n in expected.items() if n}


@given(st.data())
def test_a_route_decides_all_and_carries_no_more(data: st.DataObject) -> None:
    """Each condition once, at the earliest probe; what fails, at the last. No column leaves that nothing reads later."""
    graph = data.draw(join_graphs())
    arrangements = possible_arrangements(graph)
    read = columns(graph, data.draw(conditions(graph)), ["1.v"])
    path = data.draw(st.sampled_from(list(every_path(graph, arrangements, 0))[:50]))
    made = route(graph, arrangements, path, arrangements[path.probes[0].arrangement].key, read)
    hops = [hop for leg in made.legs for hop in leg.hops]
    visits = path.visits(arrangements)

    assert [hop.probe for hop in hops] == list(path.probes)
    assert sorted(c for hop in hops for c in hop.decided) == list(range(len(read.conditions)))
    for at, hop in enumerate(hops, 1):
        for c in hop.decided:
            needs = read.conditions[c]
            before = needs.inputs <= set(visits[:at])
            assert at == len(hops) or (not needs.fails and needs.inputs <= set(visits[: at + 1]))
            assert needs.fails or not before or at == 1
    assert made.legs[-1].carried == ("1.v",)
    assert all(list(leg.carried) == sorted(set(leg.carried)) for leg in made.legs)


CHAIN = JoinGraph(3, (frozenset([0, 1]), frozenset([1, 2])))
FOUR = (Arrangement(0, (0,)), Arrangement(1, (0,)), Arrangement(1, (1,)), Arrangement(2, (1,)))


def test_the_chain_of_the_design() -> None:
    """lineitem comes by orderkey, meets the orders of before (they are before it: after the batch), and carries custkey."""
    read = columns(CHAIN, [JoinCondition(frozenset([1, 2]), frozenset(["1.v", "2.v"]))], ["2.v", "0.v"])
    (path,) = every_path(CHAIN, FOUR, 2)
    made = route(CHAIN, FOUR, path, (1,), read)

    assert [leg.key for leg in made.legs] == [(1,), (0,)]
    assert [(hop.after, hop.decided) for leg in made.legs for hop in leg.hops] == [(True, (0,)), (True, ())]
    assert made.legs[0].carried == ("1.0", "2.v")
    (of_customer,) = every_path(CHAIN, FOUR, 0)
    back = route(CHAIN, FOUR, of_customer, (0,), read)
    assert [hop.after for leg in back.legs for hop in leg.hops] == [False, False]


def test_a_home_by_another_key_is_a_leg_without_a_probe() -> None:
    """Orders that come by custkey and meet lineitem first move once before they meet anything."""
    path = next(p for p in every_path(CHAIN, FOUR, 1) if p.visits(FOUR) == (1, 2, 0))
    made = route(CHAIN, FOUR, path, (0,), columns(CHAIN))

    assert [(leg.key, len(leg.hops)) for leg in made.legs] == [((0,), 0), ((1,), 1), ((0,), 1)]
    assert made.legs[0].carried == ("1.0", "1.1", "1.v")


@given(st.data())
def test_homes_bound_the_legs(data: st.DataObject) -> None:
    """With homes the search counts the leg that only moves, and pays for it: it is the cheapest of all routes that fit."""
    graph = data.draw(join_graphs(most=4))
    arrangements = possible_arrangements(graph)
    model = data.draw(costs(graph.inputs, arrangements))
    legs = data.draw(st.sampled_from([1, 2, 3]))
    homes: list[Key] = [
        data.draw(st.sampled_from([a.key for a in arrangements if a.input == one]))
        for one in range(graph.inputs)
    ]
    for start in range(graph.inputs):
        paths = list(every_path(graph, arrangements, start))
        fitting = [
            p for p in paths if len(route(graph, arrangements, p, homes[start], columns(graph)).legs) <= legs
        ]
        found = search(graph, arrangements, model, legs, homes)(start)
        if found is None:
            assert not fitting
            continue
        assert found in fitting

        def price(path: Path, home: Key = homes[start]) -> float:
            moved = arrangements[path.probes[0].arrangement].key != home
            return model.cost(path, arrangements) + (model.exchange if moved else 0.0)

        assert abs(price(found) - min(map(price, fitting))) <= 1e-9 * max(1.0, price(found))
