"""Checks and describes where results land: whether readers can see all columns, and how fast a folder fills."""

from collections.abc import Iterator

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr.types import name as type_name
from joinlib.model.changelog import BATCH, CHANGE_TYPE
from joinlib.model.stage import Pipeline
from joinlib.spec.avro import record_name, schema_of
from joinlib.spec.duration import text as duration
from joinlib.spec.model import Spec
from joinlib.spec.nearest import hint
from joinlib.spec.output import Mode, Output
from joinlib.spec.protobuf import RowMessage, message_of

_DAY_US = 86_400_000_000
# Readers of folders such as batch=7 turn the name into a column, which hides one of that name in the files.
_FOLDER = "batch"


def check(plan: Pipeline, output: Output) -> None:
    """Check that the result fits its output.

    Raises:
        SpecError: A column has a name that readers would not see, or that the output adds itself, a key names a
            column that the result does not have, or Avro or Protobuf has no such name or type.
    """
    if output.files is not None:
        _check_folder(plan)
    check_columns(plan, output.mode if output.adds_columns else "append", output.key)
    if output.kafka is not None:
        _check_key("output.kafka.key", output.kafka.key, plan)
        if output.kafka.format == "avro":
            schema_of(plan.schema, record_name(output.kafka.topic))
        if output.kafka.format == "protobuf":
            message_of(plan.schema, RowMessage(record_name(output.kafka.topic)))


def _check_folder(plan: Pipeline) -> None:
    for name in plan.schema.names:
        if name.casefold() == _FOLDER:
            raise SpecError(
                f"the result has a column {name!r}, and readers of output.files would take the number in the"
                f" folders' names, {_FOLDER}=7, for it; rename it, such as AS {_FOLDER}_id"
            )


def check_columns(plan: Pipeline, shown: Mode, key: tuple[str, ...]) -> None:
    """Check that the result has the columns of the key, and none that an output of mode `shown` adds.

    Raises:
        SpecError: It has not, or has.
    """
    for name in plan.schema.names if shown != "append" else ():
        if name.casefold() in (CHANGE_TYPE, BATCH):
            raise SpecError(
                f"output.mode: {shown} adds a column {name.casefold()}, and the result has one of that name;"
                f" rename it in the SQL, such as AS {name.strip('_')}"
            )
    _check_key("output.key", key, plan)


def _check_key(place: str, key: tuple[str, ...], plan: Pipeline) -> None:
    for name in key:
        if name not in plan.schema.names:
            near = hint(name, plan.schema.names, "columns")
            raise SpecError(f"{place}: the result has no column {name!r}; {near}")
        kind = plan.schema.field(name).type
        if place == "output.key" and pa.types.is_nested(kind):
            raise SpecError(
                f"{place}: column {name!r} is of type {type_name(kind)}, by which rows are not told apart; name"
                " columns of single values"
            )


def describe(spec: Spec, name: str = "") -> Iterator[str]:
    """Describe an output in lines for people; `name`: which of several."""
    output = spec.results[name]
    yield from _mode(output)
    files = output.files
    if files is None:
        return
    most = "one after the other" if not spec.pace_us else f"at most one in {duration(spec.pace_us)}"
    batches = f"batches: {most} (batch.interval)"
    if files.compact is None:
        yield (
            f"a folder for each batch with results, {_FOLDER}=N, and in it a {files.format} file for each"
            " task that has some"
        )
        yield f"{batches}{_a_day(spec.pace_us)}; output.files.compact gathers small ones"
        return
    yield (
        f"a folder for batches of {duration(files.compact.every_us)}, or for {files.compact.size_bytes:,}"
        " bytes (compact),"
    )
    yield (
        f"  named after the last, {_FOLDER}=N, with one {files.format} file for all that are small; readers"
        " see them all then"
    )
    yield (
        f"{batches}{_a_day(max(spec.pace_us, files.compact.every_us))}, and one for each time that so many"
        " bytes are there"
    )


def _mode(output: Output) -> Iterator[str]:
    """Say what a change of the result is in the output."""
    key = ", ".join(output.key)
    if output.adds_columns:
        paired = f"; a row that replaces another of its key ({key}) is an update, of two rows" if key else ""
        yield f"changes: a row for each, with {CHANGE_TYPE} and {BATCH}{paired}"
    if output.kafka is not None and output.mode == "upsert":
        gone = "a message of op d and a tombstone" if output.kafka.format == "debezium" else "a tombstone"
        yield f"topic {output.kafka.topic}: the last message of a key ({key}) is its row, and {gone} deletes it"
    if output.postgres is not None:
        how = f"the row of a key ({key}) is replaced or deleted" if key else "rows are added"
        yield (
            f"table {output.postgres.table}: {how}, a batch at once; table streamjoin_batches beside it has the number"
            " of the last"
        )


def _a_day(pace_us: int) -> str:
    return f", so up to {_DAY_US // pace_us:,} folders a day" if pace_us else ", as many folders as batches"
