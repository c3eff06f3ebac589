"""Where do the results go?"""

from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from joinlib.spec.base import Folder, Model, Problem, one_of, refuse
from joinlib.spec.inputs import Format, Positive

SINKS = ("files", "kafka", "console", "noop")


class OutputFiles(Model):
    """A folder in which each batch appears at once and whole."""

    path: Folder = Field(description="The folder; relative to the folder of the spec file.")
    format: Format = Field(default="parquet", description="Format of the files.")


class KafkaOutput(Model):
    """A Kafka topic."""

    bootstrap_servers: str = Field(min_length=1, description="Host and port of brokers, separated by commas.")
    topic: str = Field(min_length=1, description="The topic to write.")
    format: Literal["json", "avro"] = Field(default="json", description="Format of the values.")


class Console(Model):
    """The first rows of each batch, on the terminal."""

    rows: Positive = Field(default=20, description="Rows shown per batch at most.")


class Noop(Model):
    """Nowhere: results are counted and dropped."""


class Output(Model):
    """Exactly one place that results go to."""

    model_config = ConfigDict(json_schema_extra=one_of(*SINKS))

    mode: Literal["append", "changelog"] = Field(
        default="append",
        description="append: rows are final; changelog: one row per changed group and batch.",
    )
    files: OutputFiles | None = Field(default=None, description="Files in a folder.")
    kafka: KafkaOutput | None = Field(default=None, description="A Kafka topic.")
    console: Console | None = Field(default=None, description="The terminal.")
    noop: Noop | None = Field(default=None, description="Nowhere; for measurements.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        given = [name for name in SINKS if getattr(self, name) is not None]
        if len(given) != 1:
            found = (
                f"has {' and '.join(given)}; keep one"
                if given
                else f"goes nowhere; add one of {', '.join(SINKS)}"
            )
            refuse([Problem((), found)])
        return self
