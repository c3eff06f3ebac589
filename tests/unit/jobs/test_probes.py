"""Probe orders as they are shown: the commonest of all units, and means of what they measured."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from jobs.exported import values
from jobs.figures import beginning
from jobs.probes import Chooser, asks, choosers, spoken
from jobs.view import Moment, status
from joinlib.engine.receipt import Receipt, decode
from joinlib.join.order.orders import Orders
from joinlib.join.order.statistics import nothing
from joinlib.model.stage import Pipeline
from joinlib.model.tuning import Tuning
from joinlib.plan.build import build
from joinlib.plan.options import JoinOptions
from joinlib.plan.source import SourceInput
from tests.laws.harness import Flow
from tests.unit.jobs.test_figures import RECEIPT, Report
from tests.unit.plan.three import three

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])
SQL = "SELECT a.v AS av, b.v AS bv, c.v AS cv FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k"
STAGE = build(SQL, dict.fromkeys("abc", SourceInput(SCHEMA)), JoinOptions(units=1))
JOINS = choosers(Pipeline((replace(STAGE, units=4),)))


def receipt(folder: Path, unit: int, **keys: list[int]) -> Receipt:
    """What a unit says after a batch of these keys, `a` last."""
    flow = Flow(STAGE, folder, Tuning(probe_cycle=1, probe_order="selectivity"))  # by no clock
    for name in "bcaaaaa":  # cycles grow: not every batch is counted
        table = pa.record_batch([pa.array(keys[name]), pa.array(keys[name])], SCHEMA)
        flow.batch({name: table})
    (raw,) = flow.manifests[0].probes
    return decode(replace(RECEIPT, unit=unit, probes=(Orders(**raw).figures(),)).encode())


def test_names() -> None:
    """Joins of three inputs or more have orders; one below another is named by its inputs."""
    two = build(
        "SELECT a.v AS v FROM a JOIN b ON a.k = b.k",
        dict.fromkeys("ab", SourceInput(SCHEMA)),
        JoinOptions(units=1),
    )
    below = (
        SQL.replace("JOIN c", "LEFT JOIN c").replace("SELECT", "SELECT d.v AS dv,") + " JOIN d ON d.k = a.k"
    )

    many = build(below, dict.fromkeys("abcd", SourceInput(SCHEMA)), JoinOptions(units=1))
    assert list(JOINS) == [Chooser(0, 0, 4, ("a", "b", "c"))] and choosers(Pipeline((two,))) == ()
    assert all(len(join.inputs) > 2 for join in choosers(Pipeline((many,))))


def test_stages_are_told_apart() -> None:
    """Units of a later stage lie behind those of the first, and speak of its joins only."""
    known = {0: ("first",), 1: ("other",), 2: ("later",)}
    (first, later) = choosers(Pipeline((replace(STAGE, units=2), replace(STAGE, units=2))))
    assert first.reported(known) == ["first", "other"] and later.reported(known) == ["later"]


def test_what_units_say(tmp_path: Path) -> None:
    """Two of three units ask c first, in which few find anything; all figures have two labels or fewer."""
    few = [receipt(tmp_path / str(u), u, b=[1, 2, 3, 3], c=[3], a=[1, 2, 3]) for u in (0, 1)]
    many = receipt(tmp_path / "2", 2, b=[3], c=[1, 2, 3, 3], a=[1, 2, 3])
    figures = beginning(2, 0.0).after(Report(1, (*few, many)), 1.0).after(Report(2, (RECEIPT,)), 2.0)
    moment = Moment(("a", "b"), figures=figures, probes=JOINS)
    (a, b, c) = asks(JOINS, figures.probes)

    assert (a.name, a.others, a.share) == ("a", ("c", "b"), 2 / 3)
    assert a.position == (4 / 3, 5 / 3)
    assert a.keys is not None and b.keys is not None and b.keys > 0
    assert spoken(JOINS, figures.probes).startswith("a > c > b, b > ")
    found = values(moment, 4, 2.0)
    assert found["streamjoin_probe_position"]["a", "c"] == 4 / 3
    assert (found["streamjoin_probe_measured_seconds"]["a",] or 0) > 0
    assert status(moment, 4, 2.0)["probeOrders"]["a"]["order"] == ["c", "b"]
    assert c.name in status(moment, 4, 2.0)["probeOrders"]


def test_routes_of_a_join_by_paths() -> None:
    """What is asked is named by its key where an input is stored by several; γ is that of the key that asks."""
    plan = three(2)
    joins = choosers(plan)
    known = nothing(3, 4).plain()
    known[0][1][0], known[0][2][0], known[2][3] = [0.25, 0.0], [0.5, 0.0], [7.0, 0.0]
    unit = {
        "orders": [[1, 3], [0, 3], [2, 0]],
        "known": known,
        "predicted": [1.0] * 3,
        "measured": [None] * 3,
    }
    (_, _, lines) = asks(joins, {0: (unit,), 1: (unit,)})

    assert (lines.name, lines.others) == ("l", ("o by o.k", "c"))
    assert lines.rate == (None, 0.25)  # orders ask customers, not lines
    assert (lines.position, lines.keys, lines.predicted) == ((1.0, 2.0), 14.0, 1.0)
    assert spoken(joins, {0: (unit,)}) == "c > o by o.c > l, o > c > l, l > o by o.k > c"


def test_nothing_is_known_yet() -> None:
    """Before the first cycle has ended, and where no join has a choice, nothing is said."""
    assert asks(JOINS, {}) == [] and spoken((), {0: ()}) == ""
    assert values(Moment(("a",), probes=JOINS), 4, 0.0)["streamjoin_probe_keys"] == {}
