"""What became of a message: by topic, partition and offset, read from the topics again."""

from jobs.cli.why import why, whynot
from tests.kafka.broker import Broker
from tests.laws.document import written
from tests.laws.product import own_folder
from tests.unit.why.lived import lived

SQL = "SELECT o.id, o.customer, p.paid FROM orders o JOIN payments p ON o.id = p.id WHERE o.customer > 5"
SCHEMAS = {"orders": "id BIGINT, customer BIGINT", "payments": "id BIGINT, paid BIGINT"}


def test_messages_are_named_by_their_offsets(broker: Broker) -> None:
    """Also behind one that cannot be decoded, and one that is no row."""
    topics = {name: broker.topic(f"why-{name}", 2) for name in SCHEMAS}
    broker.send(topics["orders"], [b'{"id":1,"customer":7}', b"{", None, b'{"id":2,"customer":8}'], 1)
    broker.send(topics["orders"], [b'{"id":3,"customer":1}'], 0)
    broker.send(topics["payments"], [b'{"id":9,"paid":5}', b'{"id":2,"paid":6}'], 0)
    with own_folder() as folder:
        job = written(spec(broker.servers, topics), folder)
        lived(job, folder)
        bad = list((folder / "bad").rglob("*"))
        orders, payments = topics["orders"], topics["payments"]
        assert f"topic {orders}, partition 1, offset 0, batch 0\n    no partner in payments" in whynot(
            job, "o.id = 1"
        )
        assert f"topic {orders}, partition 0, offset 0, batch 0\n    left out by `o.customer > 5`" in whynot(
            job, "o.id = 3"
        )
        assert why(job, "id = 2").splitlines() == [
            "id = 2, customer = 8, paid = 6",
            f"  from orders o: topic {orders}, partition 1, offset 3, batch 0",
            f"  from payments p: topic {payments}, partition 0, offset 1, batch 0",
        ]
        assert list((folder / "bad").rglob("*")) == bad, "dead letters were written again"


def spec(servers: str, topics: dict[str, str]) -> dict[str, object]:
    def input(name: str) -> dict[str, object]:
        bad = {"onBadMessage": "deadLetter", "deadLetters": {"path": f"bad/{name}"}}
        return {"schema": SCHEMAS[name], "kafka": {"bootstrapServers": servers, "topic": topics[name], **bad}}

    return {
        "sql": SQL,
        "inputs": {name: input(name) for name in SCHEMAS},
        "output": {"files": {"path": "out"}},
        "checkpoint": {"path": "ck", "sync": False},
        "join": {"units": 2},
    }
