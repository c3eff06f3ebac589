"""Join graphs for tests: at random, and those of TPC-H with its sizes at scale 1."""

from collections.abc import Sequence

from hypothesis import strategies as st

from joinlib.path.cost import PathCosts
from joinlib.path.estimate import Sizes
from joinlib.path.graph import Arrangement, JoinGraph


@st.composite
def join_graphs(draw: st.DrawFn, least: int = 2, most: int = 5) -> JoinGraph:
    """Each input shares a class with one before it, an old class or a new one; more members close cycles."""
    n = draw(st.integers(least, most))
    classes: list[set[int]] = []
    for one in range(1, n):
        other = draw(st.integers(0, one - 1))
        near = [c for c in classes if other in c]
        if near and draw(st.booleans()):
            draw(st.sampled_from(near)).add(one)
        else:
            classes.append({other, one})
    for _ in range(draw(st.integers(0, 2))):
        draw(st.sampled_from(classes)).add(draw(st.integers(0, n - 1)))
    return JoinGraph(n, tuple(map(frozenset, classes)))


@st.composite
def costs(draw: st.DrawFn, inputs: int, arrangements: Sequence[Arrangement]) -> PathCosts:
    def line(of: list[float]) -> tuple[float, ...]:
        return tuple(draw(st.sampled_from(of)) for _ in arrangements)

    seconds = [0.0, 1.0, 2.0, 7.0]
    return PathCosts(
        tuple(line(seconds) for _ in range(inputs)),
        draw(st.sampled_from(seconds)),
        tuple(line([0.0, 0.1, 0.5, 1.0]) for _ in range(inputs)),
        tuple(line([1.0, 1.5, 20.0]) for _ in range(inputs)),
        draw(st.sampled_from(seconds)),
        draw(st.booleans()),
    )


ROWS = {
    "customer": 150_000, "orders": 1_500_000, "lineitem": 6_000_000, "supplier": 10_000, "nation": 25, "region": 5,
    "part": 200_000, "partsupp": 800_000,
}  # fmt: skip
KEYS = {
    "custkey": 150_000,
    "orderkey": 1_500_000,
    "suppkey": 10_000,
    "partkey": 200_000,
    "nationkey": 25,
    "regionkey": 5,
}

QUERIES = {
    "Q3": (
        {"customer": 0.2, "orders": 0.49, "lineitem": 0.54},
        {"custkey": ("customer", "orders"), "orderkey": ("orders", "lineitem")},
    ),
    "Q5": (
        {"customer": 1, "orders": 0.15, "lineitem": 1, "supplier": 1, "nation": 1, "region": 0.2},
        {
            "custkey": ("customer", "orders"),
            "orderkey": ("orders", "lineitem"),
            "suppkey": ("lineitem", "supplier"),
            "nationkey": ("customer", "supplier", "nation"),
            "regionkey": ("nation", "region"),
        },
    ),
    "Q9": (
        {"part": 0.055, "supplier": 1, "lineitem": 1, "partsupp": 1, "orders": 1, "nation": 1},
        {
            "suppkey": ("supplier", "lineitem", "partsupp"),
            "partkey": ("part", "lineitem", "partsupp"),
            "orderkey": ("lineitem", "orders"),
            "nationkey": ("supplier", "nation"),
        },
    ),
    "Q10": (
        {"customer": 1, "orders": 0.038, "lineitem": 0.25, "nation": 1},
        {
            "custkey": ("customer", "orders"),
            "orderkey": ("orders", "lineitem"),
            "nationkey": ("customer", "nation"),
        },
    ),
}  # fmt: skip


def sizes(query: str, width: int = 60) -> Sizes:
    """A query of TPC-H at scale 1: the rows that pass its filters, each class with its distinct values."""
    passing, classes = QUERIES[query]
    names = list(passing)
    rows = tuple(ROWS[name] * share for name, share in passing.items())
    graph = JoinGraph(len(names), tuple(frozenset(map(names.index, members)) for members in classes.values()))
    distinct = tuple(
        tuple(min(float(KEYS[key]), have) if name in members else 0.0 for key, members in classes.items())
        for name, have in zip(names, rows)
    )
    return Sizes(graph, rows, (width,) * len(names), distinct)


def spoken(query: str, arrangement: Arrangement) -> str:
    """An arrangement by its names."""
    passing, classes = QUERIES[query]
    return f"{list(passing)[arrangement.input]} by {', '.join(list(classes)[c] for c in arrangement.key)}"
