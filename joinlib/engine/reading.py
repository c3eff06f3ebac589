"""The map task: reads its part of a batch and routes each row to the units that need it.

read ─► prepare ─► split ─► blocks and ticks
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa

from joinlib.engine.edge import Way, edge, senders
from joinlib.engine.exchange import Sender, letters_row
from joinlib.engine.letters import InputLetters
from joinlib.engine.sources import MapInput, SourceTask
from joinlib.engine.splitter import exchange_rows, numbered
from joinlib.errors import NOTE
from joinlib.model.inputs import read_columns
from joinlib.model.stage import Pipeline
from joinlib.model.time import NEVER
from joinlib.model.watermark import Tick
from joinlib.route import biclique, hotspot
from joinlib.route.census import Census
from joinlib.route.routers import BicliqueRouter, Router, RuleRouter
from joinlib.route.slots import slots
from joinlib.source import Slice, fetch_ahead, reader
from joinlib.state.location import census_folder


def read(task: SourceTask, part: MapInput, batch: int | None) -> Iterator[pa.RecordBatch]:
    """Read one part of `batch` and yield its exchange rows. batch: None: no block is written as a segment."""
    first, before, pipeline = dict(part.first), dict(part.before), task.pipeline
    routers = _routers(task, part)
    to = senders(pipeline, task.states, task.tuning, batch, routers)
    plans = {s.name: s for s in task.sources}
    if part.small:
        fetch_ahead((plans[name].config, slices) for name, slices in part.reads)
    for name, slices in part.reads:
        plan, columns = plans[name], read_columns(p for _, p in pipeline.numbered_inputs if p.source == name)
        bits = task.tuning.hash_bits
        ways = [
            edge(pipeline, n, p, to[n], bits, gathering=True)
            for n, p in pipeline.numbered_inputs
            if p.source == name
        ]
        letters = InputLetters(plan, ways, slices, columns) if plan.keeps_errors else None
        own = reader(plan.config, plan.schema, letters.refused if letters else None)
        rows = own.read_many(slices, columns)
        origin = _origin(slices, before.get(name, 0))
        batches: Iterable[tuple[int, pa.RecordBatch]] = enumerate(rows, origin)
        if name in first:
            batches = numbered(batches, first[name])
        bad = partial(getattr, own, "bad")
        try:
            yield from exchange_rows(batches, ways, origin, bad, letters.prepared if letters else None)
            yield from _letters(letters, ways, slices[0].index, pipeline)
        except Exception as error:
            error.add_note(f"{NOTE}input {name}")
            raise
    for number, router in routers.items() if part.reads else ():
        name, slices = part.reads[0]
        for folder, census in router.censuses.items():
            file = f"{name}-{_origin(slices, before.get(name, 0))}"
            census.write(census_folder(task.states, number) / folder, file)
    yield from _told(part, to, pipeline)


def _told(part: MapInput, to: Sequence[Sender], pipeline: Pipeline) -> Iterator[pa.RecordBatch]:
    """Yield what the stages are told of the whole batch: ticks, versions of tables, and rules."""
    for sender, ticks in zip(to, part.ticks, strict=False):
        if ticks:
            yield sender.ticks(ticks)
    for number, versions in part.versions:
        yield to[number].versions(versions)
    for number, rule in part.rules if part.ticks else ():  # one part tells all units
        if (below := pipeline.stages[number].inputs[0].upstream) is not None:
            yield to[below].rule(number, rule)


def _origin(slices: Sequence[Slice], before: int) -> int:
    """Return a number that tells the slices of a part apart from others of the source, and orders them."""
    return slices[0].index << 20 | before


def _letters(
    letters: InputLetters | None, ways: Sequence[Way], origin: int, pipeline: Pipeline
) -> Iterator[pa.RecordBatch]:
    """Yield exchange rows of dead letters, and ticks, so that units begin the batch and its last tasks take them."""
    found = list(letters.blocks()) if letters else []
    for way in ways if found else ():
        yield way.sender.ticks([Tick(way.plan.number, NEVER, 0)])
    for block in found:
        yield letters_row(slots(pipeline.units)[origin % pipeline.units], len(pipeline.stages), block)


def _routers(task: SourceTask, part: MapInput) -> dict[int, Router]:
    """Return what routes a part's rows, by stage, where it is not the default; it also counts for the next rules."""
    stage, pipeline, seed = task.stage, task.pipeline, part.reads[0][1][0].index if part.reads else 0
    ruled = {n for n in pipeline.ruled if pipeline.stages[n].inputs[0].upstream is None}
    rules = {0: part.route, **dict(part.rules)}
    found: dict[int, Router] = {
        n: RuleRouter(stage.units, hotspot.decode(rules.get(n), stage.units), Census.begin(stage.units, seed))
        for n in ruled
    }
    if task.split and stage.route is not None:
        seen = {str(p.number): Census.begin(stage.units, seed) for p in stage.inputs}
        found[0] = BicliqueRouter(stage.route, biclique.decode(part.route), seen)
    return found
