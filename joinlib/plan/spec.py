"""Plans a spec: a thin adapter from the models of the file to the values of the planner."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa

from joinlib.errors import SpecError, of_output
from joinlib.expr.declared import PythonFunction, declaring
from joinlib.model.joins import Caching
from joinlib.model.order import Shape
from joinlib.model.pathorder import PathOrder
from joinlib.model.stage import Pipeline
from joinlib.model.stored import StoredColumns
from joinlib.path.choice import BYTE
from joinlib.plan.blocks import pipeline, pipeline_of_several
from joinlib.plan.changes import OutputMode
from joinlib.plan.landing import check
from joinlib.plan.letters import letters_of
from joinlib.plan.memory import budget
from joinlib.plan.options import JoinOptions
from joinlib.plan.order import Decide, as_written, cheapest, remembered
from joinlib.plan.source import InputStatistics, SourceInput
from joinlib.spec import ddl
from joinlib.spec.inputs import Input
from joinlib.spec.model import JoinSettings, Spec, StreamJoin
from joinlib.sql.depth import with_room
from joinlib.sql.mistakes import with_functions
from joinlib.sql.parse import parse_query
from joinlib.sql.reserved import RESERVED
from joinlib.sql.text import composed, program

SCARCE = 30 * BYTE  # what a byte of state is worth where memory is limited


def pipeline_of(
    spec: StreamJoin | Spec,
    orders: Sequence[Shape | PathOrder] | None = None,
    found: Mapping[str, InputStatistics] = MappingProxyType({}),
    *,
    cells: bool = True,
    once: bool = True,
    stored: StoredColumns | None = None,
) -> Pipeline:
    """Plan the pipeline that runs the spec's SQL.

    Args:
        spec: The spec.
        orders: What was decided when the checkpoint began; None: there is none.
        found: What is known of inputs besides what the spec says.
        cells: Whether rows of a band lie by their values, which a checkpoint of an earlier version has not.
        once: Whether a self-join stores its stream once, which a checkpoint of an earlier version does not.
        stored: What to store besides what the query reads (`plan.follow`).

    Raises:
        SpecError, SqlError: if the query or an option cannot be run.
    """
    spec = spec.spec if isinstance(spec, StreamJoin) else spec
    inputs = {name: source(given, found.get(name)) for name, given in spec.inputs.items()}
    decide = _decide(spec.join, orders)
    asked = replace(options(spec.join), cells=cells, once=once, stored=stored or StoredColumns())
    plan = (_several if spec.outputs else _one)(spec, inputs, asked, decide)
    for result in plan.results:
        with of_output(result.name):
            check(plan.only(result), spec.results[result.name])
    letters_of(plan, spec)  # raises what cannot be kept
    if spec.join.memory_bytes is None:
        return plan
    executors = spec.executors.min if spec.executors else 1
    return replace(plan, budget=budget(plan, spec.join.memory_bytes, executors))


def check_text(spec: Spec) -> None:
    """Check all that can be of a spec's query as long as columns are not known: that it and its views can be read.

    Raises:
        SpecError, SqlError: They cannot be.
    """
    functions(spec)
    text = composed(spec.sql, spec.views, spec.parameters)
    with text.telling():
        with_room(lambda: parse_query(text.sql))


def _decide(join: JoinSettings, orders: Sequence[Shape | PathOrder] | None) -> Decide:
    """Return what decides in which order inner joins by several keys become stages, or by which paths they are done."""
    byte = BYTE if join.memory_bytes is None else SCARCE
    if orders is not None:
        return remembered(orders, byte)
    return as_written if join.order == "text" else cheapest(byte)


def _one(spec: Spec, inputs: Mapping[str, SourceInput], asked: JoinOptions, decide: Decide) -> Pipeline:
    text = composed(spec.sql, spec.views, spec.parameters)
    with text.telling(), declaring(functions(spec)), with_functions(text.sql):
        mode, key = spec.output.mode, spec.output.key
        return pipeline(text.sql, inputs, asked, mode=mode, key=key, decide=decide)


def _several(spec: Spec, inputs: Mapping[str, SourceInput], asked: JoinOptions, decide: Decide) -> Pipeline:
    modes = {name: OutputMode(output.mode, output.key) for name, output in spec.outputs.items()}
    text = program({name: o.sql for name, o in spec.outputs.items()}, spec.views, spec.parameters)
    with text.telling(), declaring(functions(spec)), with_functions(text.sql):
        return pipeline_of_several(text.sql, modes, inputs, asked, decide)


def functions(spec: Spec) -> dict[str, PythonFunction]:
    """Return the functions that the SQL may call besides those of SQL.

    Raises:
        SpecError: SQL has a function of that name.
    """
    for name in spec.functions:
        if name.lower() in RESERVED:
            raise SpecError(f"functions.{name}: SQL has a function of this name; give yours another")
    return {
        name: PythonFunction(
            name, given.python, ddl.parse(f"value {given.returns}").field(0).type, str(given.path or "")
        )
        for name, given in spec.functions.items()
    }


def options(join: JoinSettings) -> JoinOptions:
    """Return the options of the spec as the planner knows them."""
    return JoinOptions(
        units=join.units,
        retention_us=join.retention_us,
        strategy=join.strategy,
        subgroups=join.subgroups,
        window_rows=join.window.rows if join.window else None,
    )


def source(given: Input, found: InputStatistics | None = None) -> SourceInput:
    """Return an input of the spec as the planner knows it. found: what is known of it besides what the spec says."""
    time, logged = given.event_time, given.postgres is not None and given.postgres.changes is not None
    changes = logged or given.changes is not None or given.upsert is not None
    return SourceInput(
        schema=_seen(given),
        time=time.column if time else None,
        delay_us=time.delay_us if time else 0,
        idle_us=time.idle_us if time else None,
        role="stream" if given.is_stream else "table",
        caching=caching(given),
        numbered=not changes
        and (given.generator is not None or (given.files is not None and given.files.format == "parquet")),
        changes=changes,
        upsert=given.upsert.key if given.upsert else (),
        skip_unknown=given.upsert is None
        and given.changes is not None
        and given.changes.on_unknown_delete == "skip",
        partial=given.upsert is not None
        and (logged or (given.kafka is not None and given.kafka.format == "debezium")),
        keeps_failed=given.on_error == "deadLetter",
        statistics=statistics(given, found or InputStatistics()),
    )


def statistics(given: Input, found: InputStatistics) -> InputStatistics:
    """Return what is known of an input: first what the spec says; each row of an upsert has a key of its own."""
    made = given.generator.rows if given.generator else None
    rows = next((n for n in (given.statistics.rows, made, found.rows) if n is not None), None)
    key = given.upsert.key if given.upsert else ()
    own = {key[0]: float(rows)} if rows is not None and len(key) == 1 else {}
    return InputStatistics(rows, {**own, **given.statistics.distinct}, found.most)


def _seen(given: Input) -> pa.Schema:
    """Return the columns that SQL sees: all but the one that says whether a row came or went."""
    if given.changes is None:
        return given.arrow_schema
    return pa.schema([f for f in given.arrow_schema if f.name != given.changes.op])


def caching(given: Input) -> Caching:
    """Return how a table of the spec is cached."""
    if given.postgres is not None:
        return Caching(given.postgres.cache, given.postgres.refresh_us, given.postgres.budget_bytes)
    if given.files is not None:
        return Caching("full", given.files.refresh_us, given.files.budget_bytes)
    return Caching()
