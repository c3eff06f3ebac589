"""A backlog adds executors though the state is small, and its end removes them; no row is lost.

What a batch costs grows with the rows that are there, so that one executor falls behind what comes for a minute.
"""

import time
from pathlib import Path

from tests import prometheus
from tests.cluster.jobs import Store, expected, job
from tests.cluster.kube import Kube
from tests.cluster.scaled import changes_in, decisions_in, scaling_of, scraped
from tests.cluster.test_runs import running

NAME = "backlog"
SQL = """SELECT o.k AS k, o.v AS ov, p.v AS pv FROM orders o JOIN payments p
ON o.k = p.k AND (o.v + p.v) % 5003 = 0"""
ROWS, RATE = 160_000, 4_000  # of each input, the latter per second
VOTES = 2


def test_a_backlog_of_a_small_state(
    space: Kube, store: Store, watched: prometheus.Prometheus, tmp_path: Path
) -> None:
    """As many periods in a row as have votes want more for the lag, while the state wants one; all rows are joined."""
    inputs = {
        name: {
            "schema": "k BIGINT, v BIGINT",
            "generator": {"rows": ROWS, "keys": 16, "rowsPerSecond": RATE, "seed": seed},
        }
        for seed, name in enumerate(("orders", "payments"))
    }
    document = job(
        NAME,
        sql=SQL,
        inputs=inputs,
        batch={"interval": "1s", "maxRows": 4 * RATE},
        executors={"min": 1, "max": 2, "spare": 1, "cores": 1, "memory": "1600Mi"},
        scaling={"period": "5s", "votes": VOTES, "coolDown": "5s", "lag": {"catchUp": "10s"}},
    )
    space.apply(document)
    scraped(space, NAME, tmp_path)
    running(space, NAME, 1)
    began, seen = time.time(), []
    while len(changes_in(seen)) < 2 and time.time() - began < 400:
        seen.append(scaling_of(space, NAME))
        time.sleep(2)
    decisions, changes = decisions_in(seen), changes_in(seen)
    print(*(f"{d['at']} {d['verdict']} {d['wanted']}: {d['reason']}" for d in decisions), sep="\n")

    assert [d["verdict"] for d in changes] == ["ScaleOut", "ScaleIn"], space.picture()
    out = decisions.index(changes[0])
    voted = decisions[out - VOTES + 1 : out]
    assert {d["verdict"] for d in voted} == {"Voting"}
    assert all("rows wait" in d["reason"] and "state wants 1" in d["reason"] for d in [*voted, changes[0]])
    assert any(each.get("wants", {}).get("by") == "lag" for each in seen)
    rows = expected(document)
    space.until("the output is complete", lambda: store.output(NAME) == rows)
