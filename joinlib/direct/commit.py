"""Publishes a batch once all its tasks have ended, and reports it: with Spark, and without.

    run the tasks ─► receipts ─► dead letters and results of each output become visible ─► report

Law: a batch that runs again is published once. Of several outputs, it is there already in those that had it. It is
the caller who notes afterwards that the batch is done.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from joinlib import fault
from joinlib.checkpoint import timeline
from joinlib.checkpoint.timeline import TimelineKeeper
from joinlib.compiled import Compiled
from joinlib.direct.report import BatchPhase, Report, Sample
from joinlib.engine import receipt
from joinlib.engine.receipt import Receipt
from joinlib.errors import GO_ON, NotReady
from joinlib.model.stage import NamedResult, Pipeline
from joinlib.sink.config import SinkConfig
from joinlib.sink.outlet import Outlet, StagedLost
from joinlib.state import epochs

log = logging.getLogger("joinlib.direct")
_TRIES = 3  # of a batch whose staged results were lost

Outlets = Mapping[str, Outlet]  # by output
OnBatch = Callable[[Report], None]
Tasks = Callable[[], Iterable[bytes]]  # runs the tasks of a batch; returns what each says (`receipt.told`)


class Commit:
    """Commits the batches of a run, one after the other.

    Args:
        plan: The compiled spec.
        outlets: What publishes the results.
        box: What publishes the dead letters.
        on_batch: Called with the report of each batch.
    """

    def __init__(self, plan: Compiled, outlets: Outlets, box: Outlet, on_batch: OnBatch) -> None:
        self._plan, self._outlets, self._box, self._on_batch = plan, outlets, box, on_batch
        self._timeline = TimelineKeeper(plan.checkpoint, len(plan.pipeline.stateful))

    def __call__(self, batch: int, tasks: Tasks) -> None:
        """Run a batch and publish it.

        Raises:
            StateError: Another run has taken the checkpoint over.
            NotReady: What the tasks had staged was lost, again and again.
        """
        plan, phases = self._plan, list[BatchPhase]()
        epochs.check(plan.join.states, plan.join.epoch)
        for again in reversed(range(_TRIES)):
            began = time.time()
            said = [unit for task in tasks() for unit in receipt.heard(task)]
            told = tuple(receipt.decode(text) for text, _ in said)
            phases.append(BatchPhase("tasks", began, published := time.time()))
            fault.point("collected", batch)
            try:
                self._publish(batch, told)
                phases.append(BatchPhase("publish", published, time.time()))
                break
            except StagedLost as lost:
                if not again:
                    raise NotReady(f"{lost}; {GO_ON}") from None
                log.warning("%s; batch %s is computed again", lost, batch)
        blocks = {r.unit: block for r, (_, block) in zip(told, said, strict=True) if block}
        shown = _samples(blocks, _by_result(plan.pipeline, told), plan.join.sinks)
        self._on_batch(Report(batch, told, shown, tuple(phases)))
        self._keep(batch, told)

    def _keep(self, batch: int, told: Sequence[Receipt]) -> None:
        """Keep what is known of the batches before, from time to time: they are done."""
        if timeline.due(batch, self._plan.join.tuning.retain_batches):
            self._timeline.keep(before=batch)
        units = self._plan.pipeline.units
        self._timeline.tell(batch, {r.unit // units: r.watermark for r in told})

    def _publish(self, batch: int, told: Sequence[Receipt]) -> None:
        if files := [name for r in told for name in r.letters]:
            self._box.take(batch, files)
        for result, made_by in _by_result(self._plan.pipeline, told):
            self._outlets[result.name].take(batch, [name for r in made_by for name in r.files])
            fault.point("taken", batch)


def _by_result(plan: Pipeline, told: Sequence[Receipt]) -> Iterator[tuple[NamedResult, list[Receipt]]]:
    """Yield each result with the receipts of its stage's units."""
    for result in plan.results:
        yield result, [r for r in told if r.unit // plan.units == result.stage]


def _samples(
    blocks: Mapping[int, bytes],
    made: Iterable[tuple[NamedResult, Sequence[Receipt]]],
    sinks: Sequence[SinkConfig],
) -> dict[str, Sample]:
    """Return the rows to show of each result. `blocks`: by unit."""
    found = {}
    for (result, told), sink in zip(made, sinks, strict=True):
        parts = [pa.ipc.open_stream(blocks[r.unit]).read_all() for r in told if r.unit in blocks]
        if parts:
            rows = pa.concat_tables(parts).slice(0, sink.show)
            found[result.name] = Sample(rows, sum(r.rows_out for r in told))
    return found
