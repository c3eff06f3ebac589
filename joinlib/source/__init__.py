"""Where do rows come from? An input is an append-only list of slices, and its offset a number of slices
read.

    config ──make──► Input    discover() -> n, slices(a, b)         in the driver; its log outlives a restart
    config ─reader─► Reader   read_many(slices, columns) -> rows    in any process
             admit(...)       how far the next batch reads          pure

Law: every row comes exactly once and in one order, however discovering and reading are cut up and restarted.
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
from joinlib.source.slices import SLICE_ROWS, Input, Reader, Slice

Config = FilesConfig | GeneratorConfig | KafkaConfig

__all__ = [
    "SLICE_ROWS",
    "Config",
    "CsvFormat",
    "FilesConfig",
    "GeneratorConfig",
    "Input",
    "KafkaConfig",
    "Reader",
    "Slice",
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
) -> Input:
    """The input `name`, which keeps its log in `log_folder`. Relative paths start at `base`. Reads nothing yet."""
    if not len(schema):
        raise SpecError(f"input {name}: the schema has no columns")
    log = Log(log_folder / f"{name}.jsonl")
    if isinstance(config, GeneratorConfig):
        return GeneratorInput(config, schema, log, now)
    if isinstance(config, KafkaConfig):
        from joinlib.source.kafka.input import KafkaInput  # the client is loaded where there is a topic

        return KafkaInput(config, schema, log)
    return FileInput(replace(config, path=base / config.path), schema, log)


def reader(config: Config, schema: pa.Schema) -> Reader:
    """The reader that `make(...)` has, without its log."""
    if isinstance(config, GeneratorConfig):
        return GeneratorReader(config, schema)
    if isinstance(config, KafkaConfig):
        from joinlib.source.kafka.reader import KafkaReader

        return KafkaReader(config, schema)
    return FileReader(config, schema)
