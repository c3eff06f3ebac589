"""The plan that a job runs with: as its checkpoint was begun, or else by what is known of its inputs now."""

from functools import partial
from pathlib import Path

from joinlib.checkpoint.identity import orders_of, plan_in
from joinlib.errors import InputError
from joinlib.model.fingerprint import as_json
from joinlib.model.stage import Pipeline
from joinlib.plan import pipeline_of
from joinlib.plan.follow import following
from joinlib.plan.source import InputStatistics
from joinlib.source.footers import footers
from joinlib.spec.inputs import Input
from joinlib.spec.model import StreamJoin


def plan_of(document: StreamJoin, of: Path | None = None, after: Pipeline | None = None) -> Pipeline:
    """Plan a job. `of`: the checkpoint that it would go on from; by default its own.

    `after`: where no checkpoint has begun, the plan whose state this one would go on from.

    Raises:
        SpecError, SqlError: The query or an option cannot be run.
    """
    inputs = document.spec.inputs.items()
    found = {name: said for name, given in inputs if (said := _found(given)) is not None}
    checkpoint = of or document.spec.checkpoint.folder
    known = plan_in(checkpoint) or (as_json(after) if after else None)
    pipeline, _ = following(known, partial(pipeline_of, document, orders_of(checkpoint), found))
    return pipeline


def _found(given: Input) -> InputStatistics | None:
    """Return what the files that are there say of an input; the run tells what is wrong with them."""
    if given.files is None or given.files.format != "parquet":
        return None
    try:
        said = footers(Path(given.files.path), given.arrow_schema.names)
    except InputError:
        return None
    return None if said is None else InputStatistics(said.rows, most=said.spans)
