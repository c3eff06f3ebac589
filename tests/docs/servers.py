"""What pages talk to, at the addresses that they write: the real servers of the tests, and the programs of their makers."""

import os
from collections.abc import Mapping
from pathlib import Path

from tests.docs.play import PATHS
from tests.kafka.broker import Broker
from tests.kafka.registry import Registry
from tests.postgres.database import Database

REGISTRY = "https://registry.example:8081"
REGISTRY_LOGIN = {"REGISTRY_USERNAME": "app", "REGISTRY_PASSWORD": "app-password"}
KAFKA, POSTGRES = "localhost:9092", "localhost:5432"
PASSWORD = "app-password"  # of the user `app`, whom pages log in as
_SHIPMENT = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Shipment { int64 order_id = 1; string carrier = 2; google.protobuf.Timestamp sent_at = 3; }
"""
_TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}


def kafka_addresses(broker: Broker) -> Mapping[str, str]:
    """Where its broker is."""
    return {KAFKA: broker.servers}


def kafka_tools(broker: Broker, folder: Path) -> Mapping[str, str]:
    """The commands of Kafka's distribution on the path, made of the tests' jars."""
    folder.mkdir()
    for name, main in _TOOLS.items():
        script = folder / name
        java = "exec java -Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        script.write_text(f"#!/bin/sh\n{java} -cp '{broker.jars}/*' {main} \"$@\"\n")
        script.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{PATHS['PATH']}"}


def registry_addresses(registry: Registry) -> Mapping[str, str]:
    """Where it is; it has the schemas of the pages' orders, shipments and customers, and asks for no login."""
    columns = [{"name": "order_id", "type": "long"}, {"name": "customer", "type": "string"}]
    registry.register("orders-value", {"type": "record", "name": "Order", "fields": columns})
    customer = [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]
    registry.register("customers-value", {"type": "record", "name": "Customer", "fields": customer})
    registry.register("customers-key", {"type": "record", "name": "Key", "fields": customer[:1]})
    registry.register("shipments-value", _SHIPMENT)
    registry.register("shipments-key", 'syntax = "proto3"; message Key { int64 order_id = 1; }')
    return {REGISTRY: registry.url}


def postgres_addresses(database: Database) -> Mapping[str, str]:
    """Where it is, in a connection string and in a spec."""
    return {POSTGRES: f"localhost:{database.port}", "port: 5432": f"port: {database.port}"}


def login(database: Database) -> None:
    """The user and the rights that pages take for granted."""
    known = database.execute("SELECT 1 FROM pg_roles WHERE rolname = 'app'", as_superuser=True)
    if known is None or not known.num_rows:  # pages share the server
        database.execute(f"CREATE ROLE app LOGIN PASSWORD '{PASSWORD}'", as_superuser=True)
    database.execute("GRANT ALL ON SCHEMA public TO app")
