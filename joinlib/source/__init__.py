"""Inputs and their offsets. An input is an append-only list of slices; its offset is a number of slices.

    config ──make──► StreamInput    discover() -> n, slices(a, b)         in the driver; with a log on disk
    config ─reader─► SliceReader    read_many(slices, columns) -> rows    in any process
             admit(...)       how far the next batch reads          pure

Law: every row is read exactly once and in one order, no matter how discovering and reading are divided and
restarted.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.source.admit import admit
from joinlib.source.changes import RowChanges
from joinlib.source.files import FileInput, FileReader, FilesConfig
from joinlib.source.generator import GeneratorConfig, GeneratorInput, GeneratorReader
from joinlib.source.kafka import KafkaConfig
from joinlib.source.log import Log
from joinlib.source.parse import CsvFormat
from joinlib.source.postgres import PostgresLogConfig
from joinlib.source.slices import Refused, Slice, SliceReader, StreamInput

if TYPE_CHECKING:
    from joinlib.source.postgres.feed import Feed

Config = FilesConfig | GeneratorConfig | KafkaConfig | PostgresLogConfig

__all__ = [
    "Config",
    "CsvFormat",
    "FilesConfig",
    "GeneratorConfig",
    "KafkaConfig",
    "PostgresLogConfig",
    "Refused",
    "RowChanges",
    "Slice",
    "SliceReader",
    "StreamInput",
    "admit",
    "feeds",
    "make",
    "opened",
    "reader",
]


def make(
    name: str,
    config: Config,
    schema: pa.Schema,
    log_folder: Path,
    base: Path = Path(),
    now: Callable[[], int] = time.time_ns,
    mends: bool = True,
) -> StreamInput:
    """Return the input `name`. Nothing is read yet.

    Args:
        name: The input's name in the spec.
        config: Where its rows come from.
        schema: The declared columns.
        log_folder: The folder of its log.
        base: The folder at which relative paths start.
        now: Returns nanoseconds since 1970.
        mends: Whether its log is repaired after a crash; False for who only looks.

    Raises:
        SpecError: The schema has no columns, or the generator cannot make them.
    """
    if not len(schema):
        raise SpecError(f"input {name}: the schema has no columns")
    assert not isinstance(
        config, PostgresLogConfig
    )  # `opened` makes those, because they share what they read
    log = Log(log_folder / f"{name}.jsonl", mends)
    if isinstance(config, GeneratorConfig):
        return GeneratorInput(config, schema, log, now)
    if isinstance(config, KafkaConfig):
        from joinlib.source.kafka.input import KafkaInput  # the client is loaded where there is a topic

        return KafkaInput(config, schema, log)
    return FileInput(replace(config, path=base / config.path), schema, log)


def reader(config: Config, schema: pa.Schema, refused: list[Refused] | None = None) -> SliceReader:
    """Return the reader of an input, without the input's log.

    refused: takes rows that cannot be read; None: they are an error, or what the configuration says.
    """
    if isinstance(config, GeneratorConfig):
        return GeneratorReader(config, schema)
    if isinstance(config, KafkaConfig):
        from joinlib.source.kafka.reader import KafkaReader

        return KafkaReader(config, schema, refused)
    if isinstance(config, PostgresLogConfig):
        from joinlib.source.postgres.reader import SpoolReader

        return SpoolReader(config, schema)
    return FileReader(config, schema, refused)


def fetch_ahead(reads: Iterable[tuple[Config, Sequence[Slice]]]) -> None:
    """Begin to fetch slices of several inputs that will be read next: few rows, and only where they wait for a server."""
    topics = [(config, slices) for config, slices in reads if isinstance(config, KafkaConfig)]
    if topics:
        from joinlib.source.kafka.reader import fetch_ahead as fetch

        fetch(topics)


class Plan(Protocol):
    """What an input is made from."""

    @property
    def name(self) -> str: ...
    @property
    def config(self) -> Config: ...
    @property
    def schema(self) -> pa.Schema: ...


def opened(plans: Sequence[Plan], log_folder: Path, whole: bool = False) -> dict[str, StreamInput]:
    """Return the inputs of a query by name. Nothing is read yet.

    Args:
        plans: The inputs.
        log_folder: The folder of their logs.
        whole: Whether a look at a long log takes in all that is there by then, and not only what comes next.
    """
    shared = {config.server.name: feed for feed in feeds(plans, log_folder, whole) for config in feed.configs}
    return {p.name: _opened(p, shared, log_folder) for p in plans}


def _opened(plan: Plan, shared: Mapping[str, "Feed"], log_folder: Path) -> StreamInput:
    if isinstance(plan.config, PostgresLogConfig):
        from joinlib.source.postgres.input import PostgresLogInput

        return PostgresLogInput(plan.config, plan.schema, shared[plan.name])
    return make(plan.name, plan.config, plan.schema, log_folder)


def feeds(plans: Iterable[Plan], log_folder: Path, whole: bool = False) -> list["Feed"]:
    """Return what reads the logs of databases: one for each slot, which several inputs may share.

    Raises:
        SpecError: Inputs of one slot differ in their database or publication.
    """
    slots: dict[str, list[tuple[PostgresLogConfig, pa.Schema]]] = {}
    for plan in plans:
        if isinstance(plan.config, PostgresLogConfig):
            slots.setdefault(plan.config.slot, []).append((plan.config, plan.schema))
    if not slots:
        return []
    from joinlib.source.postgres.feed import Feed

    return [Feed(members, log_folder / "postgres" / slot, whole) for slot, members in slots.items()]
