"""A backlog adds executors though the state is small, and its end removes them unless the state has grown; no row is lost.

What a batch costs grows with the rows that are there, so that one executor falls behind what comes for a minute.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests import prometheus
from tests.cluster.jobs import Store, expected, job
from tests.cluster.kube import Kube, Object
from tests.cluster.scaled import changes_in, decisions_in, scaling_of, scraped
from tests.cluster.test_runs import running

NAME = "backlog"
SQL = """SELECT o.k AS k, o.v AS ov, p.v AS pv FROM orders o JOIN payments p
ON o.k = p.k AND (o.v + p.v) % 5003 = 0"""
ROWS, RATE = 160_000, 4_000  # of each input, the latter per second
VOTES, PERIOD_S = 2, 5


def test_a_backlog_of_a_small_state(
    space: Kube, store: Store, watched: prometheus.Prometheus, tmp_path: Path
) -> None:
    """As many periods in a row as have votes want more for the lag, while the state wants one; all rows are joined."""
    document = _document("1600Mi")
    seen = _begun(space, document, tmp_path)
    _looked(space, seen, lambda: len(changes_in(seen)) == 2)
    decisions, changes = decisions_in(seen), changes_in(seen)
    assert [d["verdict"] for d in changes] == ["ScaleOut", "ScaleIn"], space.picture()
    out = decisions.index(changes[0])
    voted = decisions[out - VOTES + 1 : out]
    assert {d["verdict"] for d in voted} == {"Voting"}
    assert all("rows wait" in d["reason"] and "state wants 1" in d["reason"] for d in [*voted, changes[0]])
    assert any(each.get("wants", {}).get("by") == "lag" for each in seen)
    _complete(space, store, document)


def test_a_backlog_while_the_state_grows(
    space: Kube, store: Store, watched: prometheus.Prometheus, tmp_path: Path
) -> None:
    """The larger of both wants wins: the lag adds an executor, and the state keeps it when no row waits any more."""
    document = _document("978Mi")  # of its state, one executor holds 16 MiB
    seen = _begun(space, document, tmp_path)
    _looked(space, seen, lambda: len(changes_in(seen)) == 1)
    assert "rows wait" in changes_in(seen)[0]["reason"]
    _complete(space, store, document)
    _looked(space, seen, lambda: _wanted(seen) == (2, 1))
    enough = time.time() + 2 * VOTES * PERIOD_S  # to vote for fewer, and again
    _looked(space, seen, lambda: time.time() > enough)
    assert seen[-1]["wants"]["by"] == "state"
    assert [d["verdict"] for d in changes_in(seen)] == ["ScaleOut"], space.picture()


def _document(memory: str) -> Object:
    inputs = {
        name: {
            "schema": "k BIGINT, v BIGINT",
            "generator": {"rows": ROWS, "keys": 16, "rowsPerSecond": RATE, "seed": seed},
        }
        for seed, name in enumerate(("orders", "payments"))
    }
    return job(
        NAME,
        sql=SQL,
        inputs=inputs,
        batch={"interval": "1s", "maxRows": 4 * RATE},
        executors={"min": 1, "max": 2, "spare": 1, "cores": 1, "memory": memory},
        scaling={"period": f"{PERIOD_S}s", "votes": VOTES, "coolDown": "5s", "lag": {"catchUp": "10s"}},
    )


def _begun(space: Kube, document: Object, folder: Path) -> list[Object]:
    """The job runs on one executor; returns the list into which its statuses go."""
    space.apply(document)
    scraped(space, NAME, folder)
    running(space, NAME, 1)
    return []


def _looked(space: Kube, seen: list[Object], done: Callable[[], bool]) -> None:
    """Add what the status says of scaling, until it is enough."""
    began = time.time()
    while not done():
        assert time.time() - began < 400, [d["reason"] for d in decisions_in(seen)]
        time.sleep(2)
        seen.append(scaling_of(space, NAME))
    print(*(f"{d['at']} {d['verdict']} {d['wanted']}: {d['reason']}" for d in decisions_in(seen)), sep="\n")


def _wanted(seen: Sequence[Object]) -> tuple[int | None, int | None]:
    """How many executors state and lag want."""
    wants = seen[-1].get("wants", {}) if seen else {}
    return wants.get("state"), wants.get("lag")


def _complete(space: Kube, store: Store, document: Object) -> None:
    rows = expected(document)
    space.until("the output is complete", lambda: store.output(NAME) == rows)
