"""Configurations as the spec makes them: what a test does not name has the default of the spec."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from joinlib import compiled
from joinlib.postgres import PostgresConfig
from joinlib.scale.policy import Policy, policy_of
from joinlib.sink.config import KafkaSinkConfig
from joinlib.source import CsvFormat, FilesConfig, GeneratorConfig, KafkaConfig, RowChanges
from joinlib.spec.inputs import Csv, Files, Generator, KafkaTopics, Postgres
from joinlib.spec.model import Executors, Scaling
from joinlib.spec.output import KafkaOutput, Mode

CSV = CsvFormat(**Csv().model_dump())


def folder(path: Path, format: str, **fields: Any) -> FilesConfig:
    """A folder of files."""
    return replace(compiled.files_of(Files(path=path)), format=format, **fields)


def generator(**fields: Any) -> GeneratorConfig:
    """Generated rows."""
    return replace(compiled.generator(Generator(), None), **fields)


def topics(
    name: str,
    servers: str,
    *names: str,
    changes: RowChanges | None = None,
    schemas: Path = Path("schemas"),
    **fields: Any,
) -> KafkaConfig:
    """An input over topics; `fields` are those of the spec."""
    kafka = KafkaTopics(bootstrap_servers=servers, topics=names, **fields)
    return compiled.topics(name, kafka, schemas, changes)


def table(name: str, **fields: Any) -> PostgresConfig:
    """A table of a database."""
    spec = Postgres(host="h", database="d", user="u", table="t")
    nowhere = dict.fromkeys(("host", "database", "user", "table"))
    return replace(compiled.database(name, spec), **{**nowhere, **fields})


def results(
    servers: str,
    topic: str,
    job: str = "",
    mode: Mode = "append",
    key: tuple[str, ...] = (),
    **fields: Any,
) -> KafkaSinkConfig:
    """A topic that takes results; `fields` are those of the spec."""
    return KafkaSinkConfig(KafkaOutput(bootstrap_servers=servers, topic=topic, **fields), mode, key, job)


def policy(**fields: Any) -> Policy:
    """When executors are added or removed."""
    return replace(policy_of(Executors(), Scaling()), **fields)
