"""The plan that a job runs with: as its checkpoint was begun, or else by what is known of its inputs now."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from joinlib.checkpoint import batches
from joinlib.checkpoint.identity import orders_of, plan_in
from joinlib.errors import InputError
from joinlib.model.fingerprint import as_json, compare, divisible
from joinlib.model.stage import Pipeline
from joinlib.plan import pipeline_of
from joinlib.plan.follow import following
from joinlib.plan.source import InputStatistics
from joinlib.source.footers import footers
from joinlib.spec.inputs import Input
from joinlib.spec.model import StreamJoin
from joinlib.spec.rules import next_power_of_two

_FEWEST = 2  # each unit costs a small batch more than a millisecond


def plan_of(
    document: StreamJoin,
    of: Path | None = None,
    after: Pipeline | None = None,
    cores: int = 1,
    *,
    executors: bool = False,
) -> Pipeline:
    """Plan a job. A batch that was cut off runs again with the units that it began with, and the state is divided among
    others when it is done.

    Args:
        document: The spec.
        of: The checkpoint that it would go on from; by default its own.
        after: Where no checkpoint has begun, the plan whose state this one would go on from.
        cores: On how many it runs: each has a unit, if neither the spec nor the checkpoint says how many there are.
        executors: Whether they are those of executors, of which there may be more later.

    Raises:
        SpecError, SqlError: The query or an option cannot be run.
    """
    checkpoint = of or document.spec.checkpoint.folder
    known = plan_in(checkpoint) or (as_json(after) if after else None)
    pipeline = _in_its_units(
        document, checkpoint, known, cores, executors or document.spec.executors is not None
    )
    if (
        of is not None
        or known is None
        or known.get("units") == pipeline.units
        or compare(known, as_json(pipeline))
    ):
        return pipeline
    return _of_other_units(document, checkpoint, known, pipeline)


def _in_its_units(
    document: StreamJoin, checkpoint: Path, known: dict[str, Any] | None, cores: int, executors: bool
) -> Pipeline:
    """Plan a job in the units that the spec says, else in those of the checkpoint, else in as many as fit the cores.

    A state that cannot be divided once there are more cores has more of them from the beginning, as with executors.
    """
    join, wanted = document.spec.join, next_power_of_two(cores)
    if "units" in join.model_fields_set:
        return _planned(document, checkpoint, known)
    if known is not None:
        pipeline = _planned(in_units(document, known.get("units", join.units)), checkpoint, known)
        return _with_note(pipeline, _idle(pipeline, cores)) if 2 * pipeline.units <= cores else pipeline
    many = max(join.units, wanted)
    few = many if executors else max(_FEWEST, wanted)
    pipeline = _planned(in_units(document, few), checkpoint, None)
    if few == many or divisible(as_json(pipeline)):
        return pipeline
    return _planned(in_units(document, many), checkpoint, None)


def _idle(pipeline: Pipeline, cores: int) -> str:
    units = pipeline.units
    cure = (
        f"join.units: {next_power_of_two(cores)} divides it"
        if divisible(as_json(pipeline))
        else "a new checkpoint has more"
    )
    return f"the state is in {units} units, so that {units} of {cores} cores join; {cure}"


def _planned(document: StreamJoin, checkpoint: Path, known: dict[str, Any] | None) -> Pipeline:
    inputs = document.spec.inputs.items()
    found = {name: said for name, given in inputs if (said := _found(given)) is not None}
    pipeline, _ = following(known, partial(pipeline_of, document, orders_of(checkpoint), found))
    return pipeline


def _of_other_units(
    document: StreamJoin, checkpoint: Path, known: dict[str, Any], pipeline: Pipeline
) -> Pipeline:
    """Return the plan of a job whose state is in another number of units than its spec says."""
    was, now = known["units"], pipeline.units
    if (batch := batches.cut_off(checkpoint / "spark")) is not None:
        pipeline = _planned(in_units(document, was), checkpoint, known)
        note = (
            f"join.units stays {was} in this run, as batch {batch} has begun; the next one divides the state"
        )
    else:
        note = f"the state is divided when the job starts: join.units was {was} and is {now}"
    return _with_note(pipeline, note)


def _with_note(pipeline: Pipeline, note: str) -> Pipeline:
    return replace(pipeline, notes=(*pipeline.notes, note))


def in_units(document: StreamJoin, units: int) -> StreamJoin:
    """Return the same job in another number of units."""
    join = document.spec.join.model_copy(update={"units": units})
    return document.model_copy(update={"spec": document.spec.model_copy(update={"join": join})})


def _found(given: Input) -> InputStatistics | None:
    """Return what the files that are there say of an input; the run tells what is wrong with them."""
    if given.files is None or given.files.format != "parquet":
        return None
    try:
        said = footers(Path(given.files.path), given.arrow_schema.names)
    except InputError:
        return None
    return None if said is None else InputStatistics(said.rows, most=said.spans)
