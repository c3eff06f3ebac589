"""What is chosen for a join without equality, why, and what `plan` says of it."""

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from joinlib.checkpoint.identity import identify
from joinlib.checkpoint.planned import plan_of
from joinlib.errors import SpecError
from joinlib.model.fingerprint import compare, fingerprint
from joinlib.model.inputs import Group
from joinlib.model.stage import Pipeline
from joinlib.plan import JoinOptions, SourceInput, Stage, build
from joinlib.plan.explain import explain
from joinlib.plan.spec import pipeline_of
from joinlib.spec import parse

TIMESTAMP = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("k", pa.int64()), ("x", pa.float64()), ("name", pa.string()), ("at", TIMESTAMP)])
INPUTS = {
    "r": SourceInput(SCHEMA, "at", numbered=True),
    "s": SourceInput(SCHEMA, "at", numbered=True),
    "plain": SourceInput(pa.schema([("k", pa.int64())])),
}
MINUTE = 60_000_000
OUTER = ("LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")


def plan(on: str, join: str = "JOIN", units: int = 8, **options: object) -> Stage:
    shown = "s" if join.startswith("RIGHT") else "r"
    return build(
        f"SELECT {shown}.k AS k FROM r {join} s ON {on}", INPUTS, JoinOptions(units=units, **options)
    )  # type: ignore[arg-type]


def met(stage: Stage) -> list[tuple[str, str, str, float]]:
    return [(m.left.sql, m.sign, m.right.sql, m.shift) for m in stage.tree.index_conditions]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("on", "expected", "residual"),
    [
        ("r.k < s.k", [("r.k", "<", "s.k", 0)], False),
        ("s.k < r.k", [("r.k", ">", "s.k", 0)], False),
        ("r.k <> s.k", [("r.k", "<>", "s.k", 0)], False),
        ("r.name < s.name", [("r.name", "<=", "s.name", 0)], True),
        ("r.name <> s.name AND r.k >= s.k", [("r.k", ">=", "s.k", 0)], True),
        ("ABS(r.k - s.k) <= 3", [("r.k", "<=", "s.k", 3), ("r.k", ">=", "s.k", -3)], True),
        ("3 >= ABS(s.k - r.k)", [("r.k", "<=", "s.k", 3), ("r.k", ">=", "s.k", -3)], True),
        ("r.k BETWEEN s.k AND s.k + 1", [("r.k", ">=", "s.k", 0), ("r.k", "<=", "s.k", 1)], True),
        ("r.k + 3 < s.k - 1 AND 2 + s.k > r.k", [("r.k", "<=", "s.k", -5), ("r.k", "<=", "s.k", 1)], True),
        (
            "r.k <> s.k + 1 AND r.x < s.x + 1",
            [("r.k", "<>", "(s.k + 1)", 0), ("r.x", "<", "(s.x + 1)", 0)],
            False,
        ),
        (
            "s.at BETWEEN r.at AND r.at + INTERVAL 1 MINUTE AND r.x < s.x",
            [("r.x", "<", "s.x", 0), ("r.at", "<=", "s.at", 0), ("r.at", ">=", "s.at", -MINUTE)],
            False,
        ),
        ("r.k - s.k < 3", [("r.k", "<=", "s.k", 3)], True),
        ("r.k - s.k > -2.5", [("r.k", ">=", "s.k", -2)], True),
        ("2 >= s.k - r.k", [("r.k", ">=", "s.k", -2)], True),
        ("s.k - r.k BETWEEN -1 AND 4", [("r.k", "<=", "s.k", 1), ("r.k", ">=", "s.k", -4)], True),
        ("r.k - s.k = 7", [("r.k", "<=", "s.k", 7), ("r.k", ">=", "s.k", 7)], True),
        ("r.k - s.k <> 7", [], True),
        ("r.k - r.x > 7 AND r.k < s.k", [("r.k", "<", "s.k", 0)], False),
        ("r.x - s.x < 0", [("r.x", "<=", "s.x", 5e-324)], True),
        ("r.x - s.x > 0", [], True),  # NaN is more than 0: a number has the partner NaN
        ("r.x - s.x > 0 AND r.x < s.x", [("r.x", "<", "s.x", 0)], True),
        ("r.x - s.x >= 0 AND s.x - r.x >= 0", [], True),
        (
            "r.x - s.x >= 0 AND r.x - s.x <= 0",
            [("r.x", ">=", "s.x", -5e-324), ("r.x", "<=", "s.x", 5e-324)],
            True,
        ),
        ("(r.k + s.k) % 2 = 0", [], True),
        ("ABS(r.k - s.x * r.x) <= 3", [], True),
    ],
)
def test_what_an_index_finds(on: str, expected: list[tuple[str, str, str, float]], residual: bool) -> None:
    """Comparisons of one input with the other, bands and time bounds; what they do not say exactly is checked."""
    stage = plan(on)

    assert met(stage) == expected
    assert stage.index == ("sorted" if expected else "scan")
    assert (stage.tree.residual is not None) == residual  # type: ignore[union-attr]
    assert pickle.loads(pickle.dumps(stage)) == stage


def test_the_strategy_overrides() -> None:
    """Biclique looks at every row even where it could sort; with an equality it is ContRand."""
    assert plan("r.k < s.k", strategy="biclique").index == "scan"
    keyed = plan("r.k = s.k", strategy="biclique", subgroups=4)
    assert keyed.index == "hash"
    assert keyed.route is not None and keyed.route.groups == (Group(0, 8, 4), Group(0, 8, 4))
    assert plan("r.k = s.k").route is None
    assert Pipeline((keyed,)).hashed == frozenset(), "a key may lie over several units"
    assert Pipeline((plan("r.k = s.k"),)).hashed == {"r", "s"}


def test_comparisons_within_a_key_are_sorted_on_demand() -> None:
    """Strategy inequality keeps a key's rows sorted in the key's own unit; auto follows hash chains and checks each row."""
    sorts, chains = (plan("r.k = s.k AND r.x < s.x", strategy=s) for s in ("inequality", "auto"))

    assert (sorts.index, sorts.route, met(sorts)) == ("sorted", None, [("r.x", "<", "s.x", 0)])
    assert sorts.tree.residual is None  # type: ignore[union-attr]
    assert chains.index == "hash" and met(chains) == []
    assert "the rows of a key are kept sorted, and found by permutation" in explain(sorts)
    assert "strategy" not in explain(chains)


@pytest.mark.parametrize(
    ("on", "join", "options", "message"),
    [
        ("r.k = s.k", "JOIN", {}, "needs a comparison"),
        ("r.k = s.k AND r.x < s.x", "LEFT JOIN", {}, "for the INNER join of two inputs"),
        ("r.k = s.k AND r.x < s.x", "JOIN", {"subgroups": 2}, "is for join.strategy biclique"),
    ],
)
def test_what_cannot_be_sorted_within_a_key(
    on: str, join: str, options: dict[str, object], message: str
) -> None:
    """Refused with the reason."""
    with pytest.raises(SpecError, match=message):
        plan(on, join, strategy="inequality", **options)


def test_rows_that_match_nothing_are_not_stored() -> None:
    """A NULL that is compared is dropped where it is read."""
    stage = plan("r.k < s.k AND r.x <> s.x")

    assert stage.inputs[0].filter is not None
    assert stage.inputs[0].filter.sql == "((NOT (r.k IS NULL)) AND (NOT (r.x IS NULL)))"


def test_the_plan_says_what_it_costs_and_why() -> None:
    """Equations 1, 2, 5 and 6 with the numbers of units put in, the estimate, and the warning."""
    text = explain(plan("r.k < s.k", units=16))

    assert "r is stored in one of units 0 to 7, at random, and probes 8 units, all of them" in text
    assert "state      r + s (eq. 1); in a join-matrix of 4 x 4: 4 r + 4 s (eq. 2)" in text
    assert "traffic    9 r + 9 s (eq. 5); in the matrix 4 r + 4 s (eq. 6)" in text
    assert "about 33% of all pairs are expected to match" in text
    assert "about 33% of all pairs may match: the result may be much larger" in text
    assert "may be much larger" not in explain(plan("ABS(r.k - s.k) <= 1"))
    assert "a probe reads every stored row" in explain(plan("(r.k + s.k) % 2 = 0"))
    assert "hot key" in explain(plan("r.k = s.k", strategy="biclique"))


def test_windows_of_rows() -> None:
    """Row numbers stand for times: stored, bounded, and told as rows."""
    stage = plan("r.k < s.k", window_rows=100)
    text = explain(stage)

    assert [i.time for i in stage.inputs] == ["r.$ordinal", "s.$ordinal"]
    assert "rows whose numbers in r and s differ by at most 99" in text
    assert "keeps   r until 99 more rows have arrived" in text


@pytest.mark.parametrize(
    ("on", "join", "options", "message"),
    [
        *(("r.k = s.k", f"{kind} JOIN", {"window_rows": 5}, "is for INNER joins") for kind in OUTER),
        ("r.k = s.k", "JOIN", {"window_rows": -5}, "it must be positive"),
        ("r.k = s.k AND s.at >= r.at", "JOIN", {"window_rows": 5}, "rows would expire by two clocks"),
        ("r.k = s.k", "JOIN", {"window_rows": 5, "retention_us": 9}, "rows would expire by two clocks"),
        ("r.k = s.k", "JOIN", {"window_rows": 0}, "it must be positive"),
        ("r.k < s.k", "JOIN", {"retention_us": -1}, "it must be positive"),
        ("r.k = s.k", "JOIN", {"strategy": "biclique", "subgroups": 3}, "power of two"),
    ],
)
def test_windows_that_make_no_sense(on: str, join: str, options: dict[str, object], message: str) -> None:
    """Refused with the reason."""
    with pytest.raises(SpecError, match=message):
        plan(on, join, **options)


def test_a_window_that_nothing_lies_in_is_warned_of() -> None:
    """Its ends are exchanged, or it lies before what it begins at."""
    text = explain(plan("s.at BETWEEN r.at AND r.at - INTERVAL 1 MINUTE AND r.x < s.x"))

    assert "no pair of rows can match" in text


def test_a_window_needs_numbers_or_times() -> None:
    """An input that has neither is named."""
    sql = "SELECT r.k AS k FROM r JOIN plain p ON r.k < p.k"
    with pytest.raises(SpecError, match="plain has none"):
        build(sql, INPUTS, JoinOptions(units=2, window_rows=5))
    with pytest.raises(SpecError, match="give input plain an eventTime"):
        build(sql, INPUTS, JoinOptions(units=2, retention_us=5))


@pytest.mark.parametrize(
    ("on", "low", "high", "width"),
    [
        ("ABS(r.k - s.k) <= 1", -1, 1, 16),
        ("r.k BETWEEN s.k + 100 AND s.k + 103", 100, 103, 16),
        ("r.x < s.x AND ABS(r.k - s.k) <= 0", 0, 0, 1),
        ("r.k < s.k", None, None, None),
        ("r.k BETWEEN s.k AND s.k - 1", None, None, None),
        ("ABS(r.k - s.k) <= 4611686018427387904", None, None, None),
        ("s.at BETWEEN r.at AND r.at + INTERVAL 1 MINUTE AND r.x < s.x", None, None, None),
    ],
)
def test_a_band_is_cut_into_cells(on: str, low: int | None, high: int | None, width: int | None) -> None:
    """At least four times as wide as what a row reaches; what has one end, matches nothing or is time is spread at random."""
    route = plan(on).route
    assert route is not None
    cells = route.cells and (route.cells.low, route.cells.high, route.cells.width)

    assert cells == (None if width is None else (low, high, width))
    assert route.groups == ((Group(0, 4, 1), Group(4, 4, 1)) if width is None else (Group(0, 8, 8),) * 2)


def test_cells_of_doubles() -> None:
    """Their width is a power of two, however narrow the band is."""
    widths = [plan(f"ABS(r.x - s.x) <= CAST('{by}' AS DOUBLE)").route for by in ("0.03", "0", "1e300")]

    assert [r.cells and r.cells.width for r in widths if r] == [0.25, 2.0**-30, None]


def test_subgroups_of_a_band() -> None:
    """One is random routing; a single unit needs no cells."""
    band = "ABS(r.k - s.k) <= 1"

    assert plan(band, subgroups=1).route == plan("r.k < s.k").route
    assert plan(band, units=1).route == plan("r.k < s.k", units=1).route
    assert plan(band, subgroups=2).route.groups == (Group(0, 8, 2),) * 2  # type: ignore[union-attr]
    with pytest.raises(SpecError, match="power of two"):
        plan(band, subgroups=3)
    text = explain(plan(band))
    assert "r is stored in one of units 0 to 7, by its cell of r.k; a hot cell in several of them" in text
    assert "traffic    at most 1.25 r + 1.25 s where cells are many; in the matrix 4 r + 2 s (eq. 6)" in text
    assert "rows lie by the cells of their values, each 16 wide" in text


@pytest.mark.parametrize(
    "on", ["r JOIN s ON ABS(r.k - s.k) <= 1", "r JOIN r s ON r.k - s.k BETWEEN -1 AND 1"]
)
def test_a_checkpoint_of_a_band_keeps_where_its_rows_lie(on: str, tmp_path: Path) -> None:
    """One of an earlier version has them at random, and goes on so; no plan puts rows of cells at random."""
    inputs = {n: {"schema": "k BIGINT", "files": {"path": n, "format": "parquet"}} for n in "rs"}
    said = {
        "sql": f"SELECT r.k FROM {on}",
        "inputs": {name: one for name, one in inputs.items() if f" {name} ON" in on or name == "r"},
        "output": {"noop": {}},
        "join": {"units": 8},
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "band"}}
    text = json.dumps({**head, "spec": {**said, "checkpoint": {"path": "checkpoint"}}})
    document = parse(text, "band.yaml", tmp_path)
    new, earlier = plan_of(document), pipeline_of(document, cells=False)
    assert new.last.route != earlier.last.route

    (tmp_path / "checkpoint").mkdir()
    identify(tmp_path / "checkpoint", "band", earlier)
    assert plan_of(document).last.route == earlier.last.route
    identify(tmp_path / "checkpoint", "band", plan_of(document))
    assert compare(fingerprint(earlier), fingerprint(new)) == []
    assert any("routed in another way" in why for why in compare(fingerprint(new), fingerprint(earlier)))


def test_a_checkpoint_keeps_its_route() -> None:
    """Rows that lie elsewhere would not be found; another index is made anew and finds them."""
    hashed, split = (fingerprint(plan("r.k = s.k", strategy=s)) for s in ("auto", "biclique"))
    assert any("routed in another way" in why for why in compare(hashed, split))
    sorts, scans = (fingerprint(plan("r.k < s.k", strategy=s)) for s in ("inequality", "biclique"))
    assert compare(sorts, scans) == []
