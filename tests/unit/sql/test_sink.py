"""Joins between inner ones sink to the input that their ON reads: the inner joins are one, the rows the same."""

from random import Random

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.plan import JoinOptions, SourceInput, pipeline
from joinlib.sql.graph import Clause, Joined, Scan, Table, Tree
from joinlib.sql.parse import parse
from joinlib.sql.push import push
from joinlib.sql.sink import sunk
from joinlib.sql.tree import Builder
from tests.laws.oracle import Query, duckdb_rows
from tests.laws.test_graphs import between, graphs

COLUMNS = pa.schema([(name, pa.int64()) for name in "kjvt"])
TABLES = {name: Table(name, COLUMNS, None) for name in "abcdef"}
WORDS = {"inner": "JOIN", "left": "LEFT JOIN", "full": "FULL JOIN", "semi": "SEMI JOIN", "anti": "ANTI JOIN"}


def pushed(sql: str) -> Joined:
    """The tree as planning meets it."""
    built, _ = Builder(sql, TABLES).select(parse(sql))
    tree = push(built, [], [])
    assert isinstance(tree, Joined)
    return tree


def drawn(tree: Tree) -> str:
    """Kinds and inputs: inner(left(a, b), c)."""
    if isinstance(tree, Scan):
        return tree.alias
    return f"{tree.kind}({', '.join(map(drawn, tree.children))})"


def text(tree: Tree) -> str:
    """The tree as FROM clause; a filter is a join with one row."""
    if isinstance(tree, Scan):
        return _filtered(tree.alias, tree.filter)
    first, *others = map(text, tree.children)
    joins = "".join(f" {WORDS[tree.kind]} {other} ON TRUE" for other in others[:-1])
    return _filtered(f"({first}{joins} {WORDS[tree.kind]} {others[-1]} ON {_all(tree.on)})", tree.where)


def _filtered(source: str, clauses: tuple[Clause, ...]) -> str:
    return f"({source} SEMI JOIN (SELECT 1) AS one ON {_all(clauses)})" if clauses else source


def _all(clauses: tuple[Clause, ...]) -> str:
    return " AND ".join(f"({clause.value.sql})" for clause in clauses) or "TRUE"


def shape(source: str, edges: bool = False) -> str:
    return drawn(sunk(pushed(f"SELECT 1 FROM {source}"), edges))


def test_one_between_two_inner_joins() -> None:
    """It sinks to the input that its ON reads, whichever that is."""
    assert (
        shape("a JOIN c ON a.k = c.k LEFT JOIN b ON a.j = b.j JOIN d ON d.k = c.k")
        == "inner(left(a, b), c, d)"
    )
    assert (
        shape("a JOIN c ON a.k = c.k LEFT SEMI JOIN b ON c.j = b.j JOIN d ON d.k = c.k")
        == "inner(a, semi(c, b), d)"
    )


def test_several_between_two_inner_joins() -> None:
    """All sink, or none."""
    core = "a JOIN c ON a.k = c.k LEFT JOIN b ON a.j = b.j"
    assert (
        shape(f"{core} LEFT ANTI JOIN e ON c.v = e.v AND c.j = e.j JOIN d ON d.k = c.k")
        == "inner(left(a, b), anti(c, e), d)"
    )
    assert shape(f"{core} LEFT JOIN e ON b.v = e.v JOIN d ON d.k = c.k") == "inner(left(left(a, b), e), c, d)"
    assert (
        shape(f"{core} LEFT JOIN e ON c.v = e.v AND a.v = e.v JOIN d ON d.k = c.k")
        == "inner(left(left(inner(a, c), b), e), d)"
    )


def test_what_stays() -> None:
    """Nothing inner is above it, or its ON reads two inputs, or it is a FULL join."""
    for source, there in {
        "a JOIN c ON a.k = c.k LEFT JOIN b ON a.j = b.j": "left(inner(a, c), b)",
        "a JOIN c ON a.k = c.k LEFT JOIN b ON a.j = b.j AND c.v < b.v JOIN d ON d.k = c.k": (
            "inner(left(inner(a, c), b), d)"
        ),
        "a JOIN c ON a.k = c.k FULL JOIN b ON a.j = b.j JOIN d ON coalesce(d.k, 0) = coalesce(c.k, 0)": (
            "inner(full(inner(a, c), b), d)"
        ),
    }.items():
        assert shape(source) == there


def test_what_moves_at_the_edges() -> None:
    """Nothing inner need be above it; several move one after the other, those of a NOT IN and a FULL join stay."""
    core = "a JOIN c ON a.k = c.k JOIN d ON d.j = c.j"
    for source, there in {
        f"{core} LEFT JOIN b ON a.j = b.j": "inner(left(a, b), c, d)",
        f"{core} LEFT JOIN b ON a.j = b.j LEFT ANTI JOIN e ON e.k = d.k": "inner(left(a, b), c, anti(d, e))",
        f"{core} LEFT JOIN b ON a.j = b.j AND b.v < d.v LEFT SEMI JOIN e ON e.k = d.k": (
            "semi(left(inner(a, c, d), b), e)"
        ),
        f"{core} FULL JOIN b ON a.j = b.j": "full(inner(a, c, d), b)",
        f"{core} WHERE a.v NOT IN (SELECT v FROM b)": "anti(anti(anti(inner(a, c, d), b), b_2), b_3)",
        "a JOIN c ON a.k = c.k LEFT JOIN b ON a.j = b.j JOIN d ON d.k = c.k": "inner(left(a, b), c, d)",
    }.items():
        assert shape(source, edges=True) == there


def test_conditions_go_where_their_columns_are() -> None:
    """Those of WHERE above the LEFT JOIN: with its partners alone, or with others."""
    tree = sunk(
        pushed(
            "SELECT 1 FROM a JOIN c ON a.k = c.k LEFT JOIN b ON a.j = b.j JOIN d ON d.k = c.k"
            " WHERE b.v IS NULL AND (b.t IS NULL OR b.t < c.t)"
        )
    )
    assert isinstance(tree, Joined)
    left = tree.children[0]
    assert isinstance(left, Joined)

    assert [clause.value.sql for clause in left.where] == ["(b.v IS NULL)"]
    assert [clause.aliases for clause in tree.on] == [{"a", "c"}, {"b", "c"}, {"c", "d"}]


@settings(max_examples=100)
@given(graphs(("inner", "inner", "left", "semi", "anti"), least=4) | between(), st.integers(0, 10**6))
def test_the_rows_are_the_same(query: Query, seed: int) -> None:
    """Any tree, any rows: DuckDB reads the tree before and after, and the text."""
    tree = pushed(query.sql)
    random = Random(seed)
    tables = {name: _rows(random) for name in "abcdef"}
    forms = dict.fromkeys((tree, sunk(tree), sunk(tree, edges=True)))
    texts = [query.sql, *(f"SELECT {', '.join(query.select)} FROM {text(form)}" for form in forms)]
    expected, *others = (duckdb_rows(sql, tables) for sql in texts)

    assert all(found == expected for found in others)


def _rows(random: Random) -> pa.Table:
    count = random.randint(3, 7)
    found = [{name: random.choice((0, 0, 0, 1, 2, None)) for name in "kjvt"} for _ in range(count)]
    return pa.Table.from_pylist(found, COLUMNS)


def stages(source: str) -> list[list[str]]:
    plan = pipeline(f"SELECT a.v AS v {source}", dict.fromkeys("abcde", SourceInput(COLUMNS)), JoinOptions())
    return [[each.alias for each in stage.inputs] for stage in plan.stages]


def test_planned_where_an_operator_gets_larger() -> None:
    """By one key, c and d meet the rows of a and b at once; by two, the text's order takes as many stages."""
    source = "FROM a JOIN c ON a.k = c.k LEFT JOIN b ON a.j = b.j JOIN d ON d.{0} = c.{0}"

    assert stages(source.format("k")) == [["a", "b"], ["$0", "c", "d"]]
    assert stages(source.format("v")) == [["a", "c"], ["$0", "b"], ["$1", "d"]]


def test_rows_of_an_outer_join_meet_all_of_their_key() -> None:
    """Its own stage comes first where its rows make a later operator larger."""
    source = "FROM a LEFT JOIN b ON a.j = b.j JOIN c ON c.k = a.k JOIN d ON d.k = c.k"

    assert stages(source) == [["a", "b"], ["$0", "c", "d"]]
