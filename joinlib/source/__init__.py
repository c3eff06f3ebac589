"""Inputs and their offsets. An input is an append-only list of slices; its offset is a number of slices.

    config ──make──► StreamInput    discover() -> n, slices(a, b)         in the driver; with a log on disk
    config ─reader─► SliceReader    read_many(slices, columns) -> rows    in any process
             admit(...)       how far the next batch reads          pure

Law: every row is read exactly once and in one order, no matter how discovering and reading are divided and
restarted.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.source.admit import admit
from joinlib.source.files import FileInput, FileReader, FilesConfig
from joinlib.source.generator import GeneratorConfig, GeneratorInput, GeneratorReader
from joinlib.source.kafka import KafkaConfig
from joinlib.source.log import Log
from joinlib.source.parse import CsvFormat
from joinlib.source.slices import Slice, SliceReader, StreamInput

Config = FilesConfig | GeneratorConfig | KafkaConfig

__all__ = [
    "Config",
    "CsvFormat",
    "FilesConfig",
    "GeneratorConfig",
    "KafkaConfig",
    "Slice",
    "SliceReader",
    "StreamInput",
    "admit",
    "make",
    "reader",
]


def make(
    name: str,
    config: Config,
    schema: pa.Schema,
    log_folder: Path,
    base: Path = Path(),
    now: Callable[[], int] = time.time_ns,
) -> StreamInput:
    """Return the input `name`. Nothing is read yet.

    Args:
        name: The input's name in the spec.
        config: Where its rows come from.
        schema: The declared columns.
        log_folder: The folder of its log.
        base: The folder at which relative paths start.
        now: Returns nanoseconds since 1970.

    Raises:
        SpecError: The schema has no columns, or the generator cannot make them.
    """
    if not len(schema):
        raise SpecError(f"input {name}: the schema has no columns")
    log = Log(log_folder / f"{name}.jsonl")
    if isinstance(config, GeneratorConfig):
        return GeneratorInput(config, schema, log, now)
    if isinstance(config, KafkaConfig):
        from joinlib.source.kafka.input import KafkaInput  # the client is loaded where there is a topic

        return KafkaInput(config, schema, log)
    return FileInput(replace(config, path=base / config.path), schema, log)


def reader(config: Config, schema: pa.Schema) -> SliceReader:
    """Return the reader of an input, without the input's log."""
    if isinstance(config, GeneratorConfig):
        return GeneratorReader(config, schema)
    if isinstance(config, KafkaConfig):
        from joinlib.source.kafka.reader import KafkaReader

        return KafkaReader(config, schema)
    return FileReader(config, schema)
