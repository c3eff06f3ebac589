"""A driver that asks a real registry for columns, and an operator that learns them from it alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from joinop.admission import Admitted, Pinned, Rejected, validate
from joinop.scrape import Scrape

from jobs.driver.driver import DriverProcess, begun, drive
from jobs.driver.environment import DriverEnvironment, driver_environment
from joinlib.errors import NotReady, SpecError
from joinlib.model.fingerprint import as_json
from joinlib.source import make
from tests.kafka.broker import Broker
from tests.kafka.registry import Registry
from tests.kafka.test_avro import FIRST, ROW, SECOND, message, spec
from tests.kafka.test_avro_keys import ID

LATER = {**SECOND, "fields": SECOND["fields"][:-1]}
GONE = "http://127.0.0.1:9"
KEYED = {"keyFormat": "avro", "metadata": {"key": "k", "offset": "at_offset"}}


def asking(file: Path, sql: str = "SELECT i.id, i.price FROM i") -> Path:
    """The spec as an operator takes it: paths are absolute, and on a volume."""
    given = json.loads(file.read_text())
    folder = f"/data{file.parent}"
    given["metadata"]["namespace"] = "shop"
    given["spec"] |= {"sql": sql, "output": {"noop": {}}, "checkpoint": {"path": f"{folder}/checkpoint"}}
    given["spec"]["volumes"] = [{"mountPath": "/data", "claim": "shared"}]
    file.write_text(json.dumps(given))
    return file


def local(file: Path) -> DriverProcess:
    """A driver of the same job, whose volume is this machine's disk."""
    given = json.loads(file.read_text())
    given["spec"]["checkpoint"]["path"] = given["spec"]["checkpoint"]["path"].removeprefix("/data")
    file.write_text(json.dumps(given))
    return begun(file, around())


def around(**variables: str) -> DriverEnvironment:
    return driver_environment(variables)


def told(driver: DriverProcess) -> dict[str, Any]:
    """What it tells the operator, as that reads it."""
    return Scrape(0.0, json.loads(json.dumps(driver.answers().status()))).columns


def begin(driver: DriverProcess) -> None:
    """Begin to read, so that the checkpoint keeps the schemas."""
    source = driver.plan.source
    make("i", source.sources[0].config, source.sources[0].schema, source.logs).discover()


def verdict(file: Path, columns: dict[str, Any]) -> Admitted | Rejected:
    given = json.loads(file.read_text())
    return validate(given, Pinned(given["spec"]["checkpoint"]["path"], None, columns))


def test_the_operator_plans_what_the_driver_runs(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """With the columns that the driver tells it; a newer schema changes neither, once the checkpoint has begun."""
    topic = broker.topic("driver_columns")
    id, key = registry.register(f"{topic}-value", FIRST), registry.register(f"{topic}-key", ID)
    broker.send(topic, [message(id, FIRST, ROW)], key=message(key, ID, {"id": 1}))
    sql = "SELECT i.price, i.k.id, i.at_offset FROM i"
    file = asking(spec(tmp_path, broker, registry.url, topic, **KEYED), sql)
    text = file.read_text()
    unknown = verdict(file, {})
    assert isinstance(unknown, Admitted) and unknown.plan is None

    driver = local(file)
    columns = told(driver)
    assert columns == {
        "i": {
            "values": "id INT NOT NULL, customer STRING NOT NULL, price DECIMAL(9, 2) NOT NULL, on DATE NOT NULL",
            "keys": "key STRUCT<id: BIGINT NOT NULL> NOT NULL",
        }
    }
    file.write_text(text)
    known = verdict(file, columns)
    assert isinstance(known, Admitted) and known.fingerprint is not None
    ours, theirs = known.fingerprint, as_json(driver.pipeline)
    assert {**ours, "units": 0} == {**theirs, "units": 0}  # how many there are depends on the cores

    registry.register(f"{topic}-value", SECOND)
    assert told(local(file)) != columns  # nothing has been read: it begins with the newest
    file.write_text(text)
    again = local(file)
    begin(again)
    registry.register(f"{topic}-value", LATER)
    file = asking(spec(tmp_path, broker, GONE, topic, **KEYED), "SELECT i.price, i.k.id, i.at_offset FROM i")
    assert told(local(file)) == told(again)


def test_a_mistake_is_told_alike_by_both(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """The driver finds it while the operator cannot; its words are those of the operator, later."""
    topic = broker.topic("driver_mistakes")
    registry.register(f"{topic}-value", FIRST)
    columns = told(local(asking(spec(tmp_path, broker, registry.url, topic))))
    given: dict[str, Any] = {"eventTime": {"column": "price"}}
    for sql, more in (("SELECT i.totl, i.x FROM i", {}), ("SELECT i.id FROM i", given)):
        file = asking(spec(tmp_path, broker, registry.url, topic), sql)
        document = json.loads(file.read_text())
        document["spec"]["inputs"]["i"] |= more
        file.write_text(json.dumps(document))
        assert isinstance(verdict(file, {}), Admitted)
        later = verdict(file, columns)
        assert isinstance(later, Rejected)
        with pytest.raises(SpecError) as found:
            local(file)
        assert str(found.value) == "\n".join(later.problems)
        assert str(found.value).startswith(
            ("spec.sql: line 1, column 8: i has no column totl", "spec.inputs.i.")
        )

        log = tmp_path / "log"
        assert drive(file, around(STREAMJOIN_TERMINATION_LOG=str(log))) == 2
        assert log.read_text() == " ".join(str(found.value).split()) + "\n"


def test_what_only_the_driver_finds(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """A subject that is not there is the user's mistake; a registry that is away may come back."""
    topic = broker.topic("driver_nothing")
    with pytest.raises(SpecError, match=f"^spec.inputs.i.kafka.registry: subject {topic}-value of registry"):
        local(asking(spec(tmp_path, broker, registry.url, topic)))
    with pytest.raises(NotReady, match=f"registry {GONE}: no answer"):
        local(asking(spec(tmp_path, broker, GONE, topic)))
