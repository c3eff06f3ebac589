"""Sends a task's result rows to the stages that read them: the rows of all its units, cut into one block per unit there.

u units in p tasks make p·u blocks. If each unit sent its own rows there would be u² of them, most of a few
rows.

Forwarder         rows, each to all readers
RouteForwarder    tuples of a path join, each to the one input that takes its route on
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic

import pyarrow as pa

from joinlib.apart import apart
from joinlib.engine.attempt import R
from joinlib.engine.edge import Way, edge, senders
from joinlib.engine.exchange import letters_row
from joinlib.engine.frames import Routed, frames, frames_by_route
from joinlib.engine.letters import failed
from joinlib.engine.task import JoinTask
from joinlib.errors import SpecError
from joinlib.join.forward import tick
from joinlib.model.letters import LetterName
from joinlib.model.stage import HopStage
from joinlib.route import hotspot
from joinlib.route.census import Census
from joinlib.route.routers import RuleRouter
from joinlib.route.slots import slots
from joinlib.state.location import census_folder

Rules = Mapping[int, dict[str, Any]]
NO_RULES: Rules = MappingProxyType({})
_LARGE = 1 << 24  # bytes of a frame of very many tuples, if parts of it are files then


class Forwarding(ABC, Generic[R]):
    """Forwards the result rows of one task and batch.

    `partition` is the task's; it makes the sequence numbers of its blocks unique.
    """

    def __init__(self, task: JoinTask, batch: int, partition: int, rules: Rules = NO_RULES) -> None:
        self.task, self.partition, pipeline = task, partition, task.pipeline
        self.reports: list[pa.RecordBatch] = []  # exchange rows without result rows: ticks and receipts
        self._routers = {
            n: RuleRouter(
                pipeline.units,
                hotspot.decode(rules.get(n), pipeline.units),
                Census.begin(pipeline.units, seed=partition),
            )
            for n, _ in pipeline.readers(task.number)
            if n in pipeline.ruled
        }
        to = senders(pipeline, task.states, task.tuning, batch, self._routers)
        self.edges = {
            (n, plan.number): edge(pipeline, n, plan, to[n], task.tuning.hash_bits)
            for n, plan in pipeline.readers(task.number)
        }

    @abstractmethod
    def framed(self, rows: Iterator[R]) -> Iterator[tuple[Iterable[Way], pa.RecordBatch]]:
        """Yield the rows in frames of bounded size, each with the ways that it takes."""

    @property
    @abstractmethod
    def ticked(self) -> Iterable[Way]:
        """The ways by which readers are told the time."""

    def send(self, rows: Iterator[R]) -> Iterator[pa.RecordBatch]:
        """Yield the units' rows as exchange rows, then the ticks and receipts that the units have added.

        A sequence number is the partition in the high 32 bits and the number of frames before in the low ones.
        """
        for at, (ways, frame) in enumerate(self.framed(rows), self.partition << 32):
            yield from self._sent(list(ways), at, frame)
        for each in self.edges.values():
            yield from each.end(self.partition)
        yield from self.reports
        for number, router in self._routers.items():
            router.census.write(census_folder(self.task.states, number), str(self.partition))

    def _sent(self, ways: Sequence[Way], at: int, frame: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for called, some in self._by_name(ways).items():
            if called is None:
                for way in some:
                    yield from way.rows(at, frame)
            else:
                yield from self._sound(some, at, frame, called)

    def _by_name(self, ways: Sequence[Way]) -> Mapping[LetterName | None, Sequence[Way]]:
        """Return the ways by what rows are called that fail on them: one that fails on one of these takes none of them."""
        box = self.task.letters
        found: dict[LetterName | None, list[Way]] = {}
        for way in ways:
            name = box.called_between(self.task.number, way.sender.number) if box is not None else None
            found.setdefault(name, []).append(way)
        return found

    def _sound(
        self, ways: Sequence[Way], at: int, frame: pa.RecordBatch, called: LetterName
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows for which nothing fails as exchange rows; keep the others."""
        _, blocks, failing = apart(frame, lambda rows: [way.prepared(at, rows) for way in ways], SpecError)
        for way, block in zip(ways, blocks or ()):
            yield from way.send(at, block)
        if failing:
            self.keep(self._slot, [failed(failing, frame, *called)])

    def keep(self, slot: int, letters: Iterable[pa.RecordBatch]) -> None:
        """Send dead letters on."""
        stages = len(self.task.pipeline.stages)
        self.reports += [letters_row(slot, stages, each) for each in letters]

    @property
    def _slot(self) -> int:
        """A slot of this task's partition."""
        return slots(self.task.pipeline.units)[self.partition]

    def time(self, watermark: int, closed: bool) -> None:
        """Forward the watermark (µs); `closed` means that no more rows will follow."""
        self.reports += [e.sender.ticks([tick(e.plan, watermark, closed)]) for e in self.ticked]


class Forwarder(Forwarding[pa.RecordBatch]):
    """Forwards rows to every stage that reads them."""

    def framed(self, rows: Iterator[pa.RecordBatch]) -> Iterator[tuple[Iterable[Way], pa.RecordBatch]]:
        tuning = self.task.tuning
        for frame in frames(rows, tuning.frame_rows, tuning.frame_bytes):
            yield self.edges.values(), frame

    @property
    def ticked(self) -> Iterable[Way]:
        return self.edges.values()


class RouteForwarder(Forwarding[Routed]):
    """Forwards tuples to the next legs of their routes.

    Where a task finds very many, its frames grow, so that the parts of a frame are files: the next level then
    maps them one after the other, and neither the shuffle nor its tasks hold them all.
    """

    def framed(self, rows: Iterator[Routed]) -> Iterator[tuple[Iterable[Way], pa.RecordBatch]]:
        tuning = self.task.tuning
        bytes = max(_LARGE, 2 * tuning.spool_bytes * self.task.pipeline.units)
        for route, frame in frames_by_route(rows, tuning.frame_rows, tuning.path_rows, bytes):
            aim = self.task.pipeline.next_leg(self.task.number, route)
            assert aim is not None, "every route goes on to the last level"
            yield (self.edges[aim[0], aim[1].number],), frame

    @property
    def ticked(self) -> Sequence[Way]:
        """One input of each stage: time is the same on all routes."""
        return list({way.sender.number: way for way in reversed(self.edges.values())}.values())


def forwarding(task: JoinTask, batch: int, partition: int, rules: Rules = NO_RULES) -> Forwarding[Any]:
    """Return what sends a task's results on. rules: by which they go, encoded, by the number of the stage."""
    readers = [task.pipeline.stages[n] for n, _ in task.pipeline.readers(task.number)]
    routed = any(isinstance(reader, HopStage) for reader in readers)
    return (RouteForwarder if routed else Forwarder)(task, batch, partition, rules)
