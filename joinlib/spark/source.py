"""The source of a query: one Spark data source that reads all inputs of a spec and yields exchange rows.

    driver part (a process of its own)          map tasks
    discover ─► admit ─► offset envelope ─► partitions ─► read ─► prepare ─► split ─► blocks and ticks

The offset is an envelope {v, inputs, idle, closed, tables, route}: everything that steers a batch rides in it, so a batch
that is run again is the same batch. `read` says what the inputs' numbers stand for: it tells the batch from one of its number
that another copy of the checkpoint has composed. Beside that it holds what progress shows: {lag, loads, skew, hot}.
"""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import xxhash
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from joinlib.errors import SpecError
from joinlib.formats import OFFSET
from joinlib.join.config import Leaf
from joinlib.join.stage import Pipeline, Stage
from joinlib.join.watermark import Tick
from joinlib.lookup.task import TableTask
from joinlib.route.config import read_columns
from joinlib.source import Config, Input, KafkaConfig, Slice, admit, make, reader
from joinlib.source.files import FileInput
from joinlib.source.generator import GeneratorInput
from joinlib.spark import batches
from joinlib.spark.failure import NOTE
from joinlib.spark.wire import DDL
from joinlib.state.tuning import Tuning

if TYPE_CHECKING:
    from joinlib.lookup.versions import Versions
    from joinlib.route.ways import Way

NAME = "streamjoin"
Offset = dict[str, Any]


@dataclass(frozen=True)
class SourcePlan:
    """One source of the spec, as its readers need it."""

    name: str
    config: Config
    schema: pa.Schema
    max_files: int | None = None  # of a batch
    max_bytes: int | None = None  # of a batch


@dataclass(frozen=True)
class SourceTask:
    """All that the source must know. Frozen, picklable; holds no secret."""

    pipeline: Pipeline
    sources: tuple[SourcePlan, ...]  # each source that the SQL names, once
    logs: Path  # folder of the logs of what was seen
    stop: Path  # a file: while it exists no batch begins
    max_rows: int  # of a batch, over all inputs
    tasks: int  # map tasks of a batch
    states: Path  # folder of all stages' segments
    tuning: Tuning
    tables: tuple[TableTask, ...] = ()  # of each lookup of the last stage

    @property
    def stage(self) -> Stage:
        """The first. Only a query that has no other splits hot keys."""
        return self.pipeline.stages[0]

    @property
    def routed(self) -> bool:
        """Nothing is stored of the stream, so its rows may go to any unit, and hot keys to several."""
        return isinstance(self.stage.tree, Leaf) and bool(self.stage.inputs[0].keys) and self.stage.units > 1

    @property
    def split(self) -> bool:
        """ContRand: a hot key's rows lie over several units, so it must be known which keys are hot."""
        return self.stage.route is not None and bool(self.stage.inputs[0].keys) and self.stage.units > 1

    @property
    def census(self) -> Path:
        """Where map tasks say what they have seen."""
        return self.logs / "census"

    @property
    def dead_letters(self) -> tuple[Path, ...]:
        """Folders that take messages which cannot be decoded."""
        configs = [s.config for s in self.sources]
        found = [c.dead_letters for c in configs if isinstance(c, KafkaConfig) and c.dead_letters]
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class Part(InputPartition):
    """What one map task reads: slices of some sources, and what the source itself has to say."""

    reads: tuple[tuple[str, tuple[Slice, ...]], ...]
    ticks: tuple[tuple[Tick, ...], ...]  # by stage
    versions: tuple[tuple[int, int], ...] = ()  # (number of a lookup, version of its table)
    first: tuple[tuple[str, int], ...] = ()  # of sources whose rows are numbered: the number of its first row
    route: dict[str, Any] | None = None  # the rule, or rules, that split hot keys; None: the hashes' top bits


def data_source(task: SourceTask) -> type[DataSource]:
    """The data source "streamjoin" of one task, to be registered with the session.

    The task rides in the class, which Spark pickles by value because no module holds it. As an option it would stand,
    encoded, in every plan that Spark prints.
    """

    class StreamJoinSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> str:
            return DDL

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
            return Reader(task)

    return StreamJoinSource


class Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Both parts; the driver's keeps open inputs, the map tasks' only the configuration."""

    def __init__(self, task: SourceTask) -> None:
        self.task = task
        self.bounded = False
        self.inputs: dict[str, Input] = {}
        self.known: dict[str, int] = {}
        self.heard: dict[str, float] = {}
        self._ends: deque[dict[str, int]] = deque()  # of the last batches
        self._versions: Versions | None = None

    # --- the driver's part -------------------------------------------------------------------------------------------

    def initialOffset(self) -> Offset:  # noqa: N802
        return {
            "v": OFFSET.writes,
            "inputs": {s.name: 0 for s in self.task.sources},
            "idle": [],
            "closed": False,
            "tables": {},
            "route": None,
            "read": "",
            "lag": {},
            "loads": {},
            "skew": None,
            "hot": {},
        }

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The inputs are taken as bounded: what is there now is read, then they are closed."""
        self._discover()
        self.bounded = True

    def latestOffset(self, start: Offset, limit: Any = None) -> Offset:  # noqa: N802
        """Up to where the next batch reads. Equal to `start`: nothing to do."""
        self._check(start)
        if self.task.stop.exists():
            return start
        if not self.bounded or not self.inputs:
            self._discover()
        if start["closed"] and self.known != start["inputs"]:
            raise SpecError(
                "the inputs were closed by --until-done, which is final for an outer or anti join and for groups (but not for"
                " output.mode: changelog): unmatched rows and unfinished groups have come out. There is new data; start with a"
                " new checkpoint and output folder to read it"
            )
        files = {s.name: s.max_files for s in self.task.sources}
        sizes = {s.name: s.max_bytes for s in self.task.sources}
        inputs = admit(self.known, start["inputs"], self._slices, self.task.max_rows, files, sizes)
        done = inputs == start["inputs"] == self.known
        closed = start["closed"] or (done and self.bounded and self.task.pipeline.final_close)
        steer = {"inputs": inputs, "idle": self._idle(inputs, start["inputs"]), "closed": closed}
        if all(start[k] == value for k, value in steer.items()):
            return start
        # A new version of a table, or a new rule, alone is no reason for a batch.
        tables = self._tables()
        steer |= {"tables": tables.current() if tables else {}, **self._route(start)}
        steer["read"] = self._digest(start["inputs"], inputs)
        lag = {name: i.lag(inputs[name]) for name, i in self.inputs.items()}
        return {**start, **steer, "lag": lag, "loads": tables.loads() if tables else {}}

    def partitions(self, start: Offset, end: Offset) -> Sequence[Part]:
        """The batch's slices in order, cut into as many parts of like weight as there are tasks."""
        self._check(end)
        if not self.inputs:
            self._open()
        todo = self._between(start["inputs"], end["inputs"])
        groups = _cut(todo, self.task.tasks)
        ticks = tuple(
            tuple(
                Tick(p.number, idle=p.source in end["idle"], closed=end["closed"])
                for p in stage.inputs
                if p.upstream is None and (end["closed"] or p.source in end["idle"])
            )
            for stage in self.task.pipeline.stages
        )
        seen = end.get("tables", {})
        if tables := self._tables():
            tables.ensure(seen)
        numbers = {t.alias: t.lookup.table.number for t in self.task.tables}
        route = end.get("route")
        first = ticks, tuple((numbers[alias], version) for alias, version in seen.items())
        return [
            Part(_by_source(group), *(first if at == 0 else ((), ())), self._numbers(group), route)
            for at, group in enumerate(groups)
        ]

    def _check(self, offset: Offset) -> None:
        """All of it steers a batch, so all of it must be known."""
        place = "an offset of the checkpoint (spark/offsets)"
        OFFSET.check(offset.get("v"), place)
        OFFSET.check_fields(offset, self.initialOffset(), place)

    def _numbers(self, group: list[tuple[str, Slice]]) -> tuple[tuple[str, int], ...]:
        """The number of the first row of each source of a part, where rows are numbered."""
        wanted = {p.source for _, p in self.task.pipeline.heard if p.numbered}
        firsts = {name: s.index for name, s in reversed(group) if name in wanted}
        found = []
        for name, index in firsts.items():
            known = self.inputs[name]
            assert isinstance(known, FileInput | GeneratorInput)  # the planner has refused others
            found.append((name, known.rows_before(index)))
        return tuple(found)

    def commit(self, end: Offset) -> None:
        """Spark will never run a batch again that ended here or before; whoever goes back goes back by few."""
        if not self._ends:
            self._ends.extend(self._earlier(end["inputs"]))
        self._ends.append(end["inputs"])
        before: dict[str, int] = {}
        while len(self._ends) > self.task.tuning.retain_batches:
            before = self._ends.popleft()
        for name, known in self.inputs.items():
            if name in before:
                known.forget(before[name])
        if tables := self._tables():
            tables.retire(end.get("tables", {}))

    def _earlier(self, end: dict[str, int]) -> list[dict[str, int]]:
        """Where the batches before have ended, as far as is known: a run may be of few batches."""
        ends = [offset["inputs"] for offset in batches.ends(self.task.logs.parent / "spark")]
        return ends[: ends.index(end)] if end in ends else []

    def stop(self) -> None:
        pass

    def _open(self) -> None:
        self.inputs = {s.name: make(s.name, s.config, s.schema, self.task.logs) for s in self.task.sources}
        self.heard = dict.fromkeys(self.inputs, time.monotonic())

    def _route(self, start: Offset) -> Offset:
        """How rows of the next batch go to units, and of the last: DS, by hashes and as it was routed; its hot keys' share."""
        known = {"route": start.get("route"), "skew": start.get("skew"), "hot": start.get("hot", {})}
        if self.task.split:
            return known | self._spread(known["route"], known["hot"])
        return known | self._ruled(known["route"]) if self.task.routed else known

    def _ruled(self, known: dict[str, Any] | None) -> Offset:
        """A new rule if the last batch was uneven; nothing new if it had no rows."""
        from joinlib.route import census, hotspot

        stage, rule = self.task.stage, hotspot.decode(known)
        counts, plain, sample = census.collect(self.task.census, stage.units)
        if not len(sample):
            return {}
        skew = {"hash": hotspot.skew(plain.tolist()), "rule": hotspot.skew(counts.tolist())}
        if skew["rule"] > self.task.tuning.skew:
            rule = hotspot.rule(sample, stage.units)
        hot = hotspot.share(sample, [h.hash for h in rule.hot] if rule else ())
        return {"route": rule and rule.encode(), "skew": skew, "hot": {stage.inputs[0].source: hot}}

    def _spread(self, known: dict[str, Any] | None, hot: dict[str, float]) -> Offset:
        """Which keys lie over several units from the next batch on, and which did (ContRand)."""
        from joinlib.route import biclique, census, contrand, hotspot

        stage = self.task.stage
        assert stage.route is not None
        samples = [census.collect(self.task.census / str(p.number), stage.units)[2] for p in stage.inputs]
        rules = contrand.following(biclique.decode(known), stage.route, samples)
        shares = zip(stage.inputs, map(hotspot.share, samples, rules.store), strict=True)
        return {"route": rules.encode(), "hot": hot | {p.source: s for p, s in shares if s is not None}}

    def _tables(self) -> "Versions | None":
        """Of the tables that are kept whole; None where there are none."""
        if self._versions is None and any(t.full for t in self.task.tables):
            from joinlib.lookup.versions import Versions  # only the driver's part needs it

            tuning = self.task.tuning
            self._versions = Versions(self.task.tables, tuning.hash_bits, tuning.sync)
        return self._versions

    def _discover(self) -> None:
        if not self.inputs:
            self._open()
        self.known = {name: i.discover() for name, i in self.inputs.items()}

    def _between(self, start: dict[str, int], end: dict[str, int]) -> list[tuple[str, Slice]]:
        """The slices of all inputs, in order."""
        return [(name, s) for name in self.inputs for s in self._slices(name, start[name], end[name])]

    def _digest(self, start: dict[str, int], end: dict[str, int]) -> str:
        return xxhash.xxh3_64_hexdigest(orjson.dumps(self._between(start, end)))

    def _slices(self, name: str, start: int, stop: int) -> list[Slice]:
        return self.inputs[name].slices(start, stop)

    def _idle(self, now: dict[str, int], before: dict[str, int]) -> list[str]:
        """Sources that have been silent for longer than every input over them says it may be."""
        clock = time.monotonic()
        limits: dict[str, int] = {}
        for _, plan in self.task.pipeline.heard:
            if plan.idle_us is not None:
                limits[plan.source] = max(limits.get(plan.source, 0), plan.idle_us)
        for name, offset in now.items():
            if offset != before[name]:
                self.heard[name] = clock
        return sorted(n for n, limit in limits.items() if clock - self.heard[n] > limit / 1e6)

    # --- the map tasks' part -----------------------------------------------------------------------------------------

    def read(self, part: Part) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """Exchange rows of one part."""
        from joinlib.spark.exchange import Sender  # only tasks need them, and they are slow to load
        from joinlib.spark.splitter import exchange_rows, numbered, spool

        way, first = self._way(part), dict(part.first)
        aside, pipeline = spool(self.task.states, self.task.tuning), self.task.pipeline
        senders = [Sender(pipeline, n, aside, way) for n in range(len(pipeline.stages))]
        readers = {s.name: reader(s.config, s.schema) for s in self.task.sources}
        for name, slices in part.reads:
            plans = [(p, senders[n]) for n, p in pipeline.heard if p.source == name]
            rows = readers[name].read_many(slices, read_columns(p for p, _ in plans))
            batches: Iterable[tuple[int, pa.RecordBatch]] = enumerate(rows, slices[0].index << 20)
            if name in first:
                batches = numbered(batches, first[name])
            bits, bad = self.task.tuning.hash_bits, partial(getattr, readers[name], "bad")
            try:
                yield from exchange_rows(batches, plans, bits, bad)
            except Exception as error:
                error.add_note(f"{NOTE}input {name}")
                raise
        for folder, census in way.seen.items():
            if census.counts.any():
                name, slices = part.reads[0]
                census.write(self.task.census / folder, f"{name}-{slices[0].index}")
        for sender, ticks in zip(senders, part.ticks, strict=False):
            if ticks:
                yield sender.ticks(ticks)
        if part.versions:
            yield senders[-1].versions(part.versions)

    def _way(self, part: Part) -> "Way":
        """How the rows of a part go to units, and what is counted of them."""
        from joinlib.route import biclique, hotspot
        from joinlib.route.census import Census
        from joinlib.route.ways import Ruled, Spread, unruled

        stage, seed = self.task.stage, part.reads[0][1][0].index if part.reads else 0
        if self.task.routed:
            return Ruled(stage.units, hotspot.decode(part.route), Census.begin(stage.units, seed))
        if self.task.split and stage.route is not None:
            seen = {str(p.number): Census.begin(stage.units, seed) for p in stage.inputs}
            return Spread(stage.route, biclique.decode(part.route), seen)
        return unruled(stage.units, stage.route)


def _cut(todo: list[tuple[str, Slice]], parts: int) -> list[list[tuple[str, Slice]]]:
    """Consecutive groups of like weight, at least one group (it carries the ticks)."""
    total, seen = sum(s.weight for _, s in todo), 0
    groups: list[list[tuple[str, Slice]]] = [[] for _ in range(parts)]
    for name, s in todo:
        groups[min(parts - 1, seen * parts // max(total, 1))].append((name, s))
        seen += s.weight
    return [g for g in groups if g] or [[]]


def _by_source(group: list[tuple[str, Slice]]) -> tuple[tuple[str, tuple[Slice, ...]], ...]:
    names = dict.fromkeys(name for name, _ in group)
    return tuple((name, tuple(s for n, s in group if n == name)) for name in names)
