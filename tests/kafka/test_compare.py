"""The results of a job in a topic of a real broker, compared with those of its fork in files."""

from typing import Any

import pytest
from confluent_kafka import Producer

from jobs.cli.compare import compared
from jobs.cli.fork import fork
from joinlib.checkpoint import batches
from joinlib.compiled import compiled
from joinlib.errors import SpecError, StateError
from joinlib.spec import StreamJoin
from tests.kafka.broker import Broker
from tests.spark.trial import CORES, Trial

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
JOIN = "SELECT o.k AS k, o.s AS s, p.v AS v, p.at AS at FROM orders o JOIN payments p ON o.k = p.k"
SUMS = "SELECT o.k % 4 AS k, count(*) AS n, max(o.s) AS s FROM orders o GROUP BY o.k % 4"


@pytest.fixture
def jobs(trial: Trial) -> Trial:
    """Two files of each input."""
    trial.input("orders", "k BIGINT, s STRING", orderBy="name", maxFilesPerBatch=1)
    trial.input("payments", "k BIGINT, v BIGINT, at TIMESTAMP", orderBy="name", maxFilesPerBatch=1)
    more(trial)
    return trial


def more(trial: Trial) -> None:
    """Two files of each input."""
    start = len(list((trial.folder / "orders").iterdir()))
    for file in range(start, start + 2):
        keys = range(8 * file, 8 * file + 8)
        trial.write("orders", f"{file:03d}", [(k, ('b"ee, ', None, "ape")[k % 3]) for k in keys])
        rows = [(k - k % 2, k, 1_767_225_600_000_000 + k) for k in keys]
        trial.write("payments", f"{file:03d}", rows)


def job(jobs: Trial, broker: Broker, topic: str, sql: str, format: str = "json", **more: Any) -> StreamJoin:
    kafka = {"bootstrapServers": broker.servers, "topic": topic, "format": format}
    return jobs.spec(sql, output={"kafka": kafka, **more}, checkpoint={"path": f"{topic}-first"})


def tried(jobs: Trial, topic: str, sql: str, **more: Any) -> StreamJoin:
    output = {"files": {"path": f"{topic}-out"}, **more}
    return jobs.spec(sql, output=output, checkpoint={"path": f"{topic}-tried"})


def run(jobs: Trial, *documents: StreamJoin) -> None:
    for document in documents:
        jobs.run_plan(compiled(document, CORES))


def test_rows_behind_the_fork(jobs: Trial, broker: Broker) -> None:
    """Of each format, and of several partitions; an aborted transaction is nothing, a foreign row is found."""
    formats = ("json", "csv", "arrow")
    firsts = [job(jobs, broker, broker.topic(f"compared-{f}", 3), JOIN, f) for f in formats]
    news = [tried(jobs, f"compared-{f}", JOIN) for f in formats]
    run(jobs, *firsts)
    before = {f: len(broker.read(f"compared-{f}")) for f in formats}
    for first, new in zip(firsts, news, strict=True):
        assert "`compare`" not in fork(first, new)
    more(jobs)
    run(jobs, *firsts, *news)
    told = set()
    for format, first, new in zip(formats, firsts, news, strict=True):
        found = compared(first, new)
        head, where, verdict = found.text.splitlines()
        assert head.startswith("A: batches")
        assert where == f"compared with the rows of topic compared-{format} behind the fork"
        told.add(verdict)
    rows = len(broker.read("compared-json")) - before["json"]
    assert before["json"]
    assert told == {f"equal, {rows} rows"}

    left = Producer({"bootstrap.servers": broker.servers, "transactional.id": "foreign"})
    left.init_transactions()
    left.begin_transaction()
    left.produce("compared-json", b'{"k": -1, "s": "aborted", "v": null, "at": null}', partition=0)
    left.flush()
    with pytest.raises(StateError, match="topic compared-json: a transaction is open"):
        compared(firsts[0], news[0])
    left.abort_transaction()
    assert compared(firsts[0], news[0]).equal
    broker.send("compared-json", [b'{"k": -1, "s": "foreign", "v": null, "at": null}'], 2)
    found = compared(firsts[0], news[0])
    assert "- {k: -1, s: 'foreign', v: null, at: null}" in found.text
    broker.send("compared-csv", [b"no,number"])
    with pytest.raises(SpecError, match="topic compared-csv, partition 0, offset"):
        compared(firsts[1], news[1])


def test_results_that_change(jobs: Trial, broker: Broker) -> None:
    """What changes come to, and of replaced rows those that are there now; both also in Debezium's envelopes."""
    outputs = [(m, f) for m in ("changelog", "upsert") for f in ("json", "debezium")]
    names = {(m, f): broker.topic(f"changed-{m}-{f}", 2) for m, f in outputs}
    firsts = [job(jobs, broker, names[m, f], SUMS, f, mode=m, key=["k"]) for m, f in outputs]
    news = [tried(jobs, names[one], SUMS, mode="changelog", key=["k"]) for one in outputs]
    run(jobs, *firsts)
    for first, new in zip(firsts, news, strict=True):
        fork(first, new)
    jobs.write("orders", "900", [(1, "x")])
    jobs.write("orders", "901", [(1, "y"), (5, None)])
    run(jobs, *firsts, *news)
    for one, first, new in zip(outputs, firsts, news, strict=True):
        found = compared(first, new)
        assert found.equal, (one, found.text)
        assert ("of the 1 key that B has changed" in found.text) == (one[0] == "upsert")
        assert f"topic {names[one]}" in found.text
    broker.send(names["upsert", "json"], [b'{"k": 1, "n": 0, "s": "y"}'], _partition(broker, "json"), b"1")
    assert "different, first in column n of a row" in compared(firsts[2], news[2]).text
    broker.send(names["upsert", "json"], [None], _partition(broker, "json"), b"1")
    assert "different, first in a row that A has not" in compared(firsts[2], news[2]).text


def _partition(broker: Broker, format: str) -> int:
    """Where the messages of key 1 are."""
    return next(s.partition for s in broker.read(f"changed-upsert-{format}") if s.key == b"1")


def test_messages_that_are_gone(jobs: Trial, broker: Broker) -> None:
    """A topic that no longer has the rows behind the fork is not compared."""
    first, new = job(jobs, broker, broker.topic("compared-old"), JOIN), tried(jobs, "expired", JOIN)
    run(jobs, first)
    fork(first, new)
    more(jobs)
    run(jobs, first, new)
    broker.forget("compared-old", 0, max(s.offset for s in broker.read("compared-old")))
    with pytest.raises(
        StateError, match=r"topic compared-old, partition 0: messages behind offset .* are gone; fork again"
    ):
        compared(first, new)


def test_a_fork_in_the_middle_of_a_batch(jobs: Trial, broker: Broker) -> None:
    """Where the topic ended then is not known, which is said at once, and again."""
    first, new = job(jobs, broker, broker.topic("busy"), JOIN), tried(jobs, "busy", JOIN)
    run(jobs, first)
    logs = first.spec.checkpoint.folder / "spark"
    (logs / "commits" / f"{batches.done(logs)}").unlink()
    assert "output: the first job was writing to topic busy, so `compare` cannot tell" in fork(first, new)
    run(jobs, first, new)
    with pytest.raises(StateError, match="A: output: where topic busy ended was not noted"):
        compared(first, new)
