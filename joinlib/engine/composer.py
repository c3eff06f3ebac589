"""Composes batches: what the next one reads, and how it is cut into tasks.

Everything that steers a batch is in its offset.

    discover ─► admit ─► offset envelope ─► parts

The offset is an envelope {v, inputs, idle, closed, small, tables, route, rules}: a batch that runs again with the same
envelope is the same batch. `read` is a digest of what the inputs' numbers stand for: it tells this batch from
one of the same number that another copy of the checkpoint has composed. The fields {lag, loads, skew, hot}
only report progress.
"""

import time
from collections import deque
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import xxhash

from joinlib.checkpoint import batches
from joinlib.engine.sources import MapInput, SourceTask
from joinlib.errors import SpecError
from joinlib.formats import OFFSET
from joinlib.model.stage import GroupStage
from joinlib.model.watermark import Tick
from joinlib.source import Slice, StreamInput, admit, opened
from joinlib.source.files import FileInput
from joinlib.source.generator import GeneratorInput
from joinlib.state.location import census_folder

if TYPE_CHECKING:
    from joinlib.lookup.versions import Versions

_PIECES = 4  # of a task's share, at least: those next to each other are read at once, so that tasks read similar amounts

_PASSES_ON_NOTHING: dict[str, Any] = {"ticks": (), "versions": ()}
Offset = dict[str, Any]
Sliced = tuple[str, Slice]  # a slice of a source
Reads = tuple[tuple[str, tuple[Slice, ...]], ...]  # of each source


class Composer:
    """Composes one batch after the other, and keeps the inputs open.

    `clock`: seconds, by which inputs become idle.
    """

    def __init__(self, task: SourceTask, clock: Callable[[], float] = time.monotonic) -> None:
        self.task, self._clock = task, clock
        self.bounded = False
        self.inputs: dict[str, StreamInput] = {}
        self.known: dict[str, int] = {}
        self.active_at: dict[str, float] = {}
        self._ends: deque[dict[str, int]] = deque()  # where each of the last batches ended, by input
        self._versions: Versions | None = None

    def initial(self) -> Offset:
        return {
            "v": OFFSET.writes,
            "inputs": {s.name: 0 for s in self.task.sources},
            "idle": [],
            "closed": False,
            "small": False,
            "tables": {},
            "route": None,
            "rules": {},
            "read": "",
            "lag": {},
            "loads": {},
            "skew": None,
            "hot": {},
        }

    def bound(self) -> None:
        """Treat the inputs as bounded: read what is there now, then close them."""
        if not self.inputs:
            self._open(whole=True)
        self._discover()
        self.bounded = True

    @property
    def free(self) -> bool:
        """Whether how a batch is read depends only on what has come: not on which keys were hot in the batch before."""
        return not (self.task.split or self.task.pipeline.ruled)

    def after(self, start: Offset) -> Offset:
        """Return the offset at which the next batch ends. Equal to `start` means that there is nothing to do.

        Raises:
            SpecError: The inputs were closed for good by an earlier run, and there is new data.
        """
        self._check(start)
        if self.task.stop.exists():
            return start
        if not self.bounded or not self.inputs:
            self._discover()
        if start["closed"] and self.known != start["inputs"]:
            raise SpecError(
                "the inputs were closed by --until-done, which is final for an outer or anti join and for"
                " groups (but not for output.mode: changelog): unmatched rows and unfinished groups have"
                " come out. There is new data; start with a new checkpoint and output folder to read it"
            )
        files = {s.name: s.max_files for s in self.task.sources}
        sizes = {s.name: s.max_bytes for s in self.task.sources}
        inputs = admit(self.known, start["inputs"], self._slices, self.task.max_rows, files, sizes)
        done = inputs == start["inputs"] == self.known
        closed = start["closed"] or (done and self.bounded and self.task.pipeline.final_close)
        steer = {"inputs": inputs, "idle": self._idle(inputs, start["inputs"]), "closed": closed}
        owed = self.bounded and self._begins(start)  # the group of all rows, though there are none
        if all(start[k] == value for k, value in steer.items()) and not owed:
            return start
        # A new version of a table, or a new rule, alone is no reason for a batch.
        tables = self._tables()
        steer |= {"tables": tables.current() if tables else {}, **self._route(start)}
        todo = self._between(start["inputs"], inputs)
        steer["small"] = _rows(todo) <= self.task.small_rows and not (closed and self._much_is_stored())
        steer["read"] = _digest(todo)
        lag = {name: i.lag(inputs[name]) for name, i in self.inputs.items()}
        loads = tables.loads() if tables else {}
        return {**start, **steer, "v": OFFSET.writes, "lag": lag, "loads": loads}

    def parts(self, start: Offset, end: Offset, *, whole: bool = False) -> list[MapInput]:
        """Cut the batch's slices, in order, into parts of similar weight: at most one per map task.

        whole: What is decoded at once is in one part, though there are fewer than tasks.
        """
        self._check(end)
        if not self.inputs:
            self._open()
        todo = self._between(start["inputs"], end["inputs"])
        small = end.get("small", False)
        cuts = [todo] if small else self._whole(todo) if whole else self._pieces(todo)
        groups = _cut(cuts, self.task.tasks)
        starts = {(name, s.index): s.start for name, s in todo}
        told = self._begins(start)
        ticks = tuple(
            tuple(
                Tick(p.number, idle=p.source in end["idle"], closed=end["closed"])
                for p in stage.inputs
                if p.upstream is None and (told or end["closed"] or p.source in end["idle"])
            )
            for stage in self.task.pipeline.stages
        )
        seen = end.get("tables", {})
        if tables := self._tables():
            seen = tables.completed(seen)
            tables.ensure(seen)
        known = {t.alias: t for t in self.task.tables}
        versions: dict[int, list[tuple[int, int]]] = {}
        for alias, version in seen.items():
            table = known[alias]
            versions.setdefault(table.stage, []).append((table.lookup.table.number, version))
        route = end.get("route")
        first = {
            "ticks": ticks,
            "versions": tuple((stage, tuple(pairs)) for stage, pairs in versions.items()),
        }
        rules = tuple((int(number), rule) for number, rule in self._known_rules(end).items())
        return [
            MapInput(
                reads := _by_source(group),
                first=self._numbers(reads, before := _before(reads, starts)),
                before=before,
                route=route,
                rules=rules,
                small=small,
                **(first if at == 0 else _PASSES_ON_NOTHING),
            )
            for at, group in enumerate(groups)
        ]

    def _whole(self, todo: list[Sliced]) -> list[list[Sliced]]:
        """Return slices that are decoded at once together."""
        found: list[list[Sliced]] = []
        for name, s in todo:
            before, last = found[-1][-1] if found else ("", s)
            if name == before and self.inputs[name].reader.together(last, s):
                found[-1].append((name, s))
            else:
                found.append([(name, s)])
        return found

    def _pieces(self, todo: list[Sliced]) -> list[list[Sliced]]:
        """Cut slices that are more than a task's share: few large ones would leave cores without work."""
        share = max(_rows(todo) / self.task.tasks, self.task.tuning.share_rows)
        found: list[list[Sliced]] = []
        for name, s in todo:
            count = ceil(s.weight / share * _PIECES) if s.weight > share else 1
            found += ([(name, piece)] for piece in self.inputs[name].reader.pieces(s, count))
        return found

    def _begins(self, start: Offset) -> bool:
        """Whether all units must know that the first batch has begun: the group of all rows is there without any."""
        stages = self.task.pipeline.stages
        return not start["read"] and any(isinstance(s, GroupStage) and not s.grouping.keys for s in stages)

    def _much_is_stored(self) -> bool:
        """Whether the last batch, which closes the inputs, may have more to do than small ones: all that is stored.

        It has not where the log still knows all batches, and all of them were small.
        """
        spark = self._spark
        return batches.all_begun(spark)[:1] not in ([], [0]) or not all(
            end.get("small") for end in batches.ends(spark)
        )

    @property
    def _spark(self) -> Path:
        """The folder of the logs of batches."""
        return self.task.logs.parent / "spark"

    def _check(self, offset: Offset) -> None:
        """Refuse an offset with an unknown version or field, since every field steers a batch."""
        place = "an offset of the checkpoint (spark/offsets)"
        OFFSET.check(offset.get("v"), place)
        OFFSET.check_fields(offset, self.initial(), place)

    def _numbers(self, reads: Reads, before: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
        """Return, for each source of a part whose rows are numbered, the number of its first row."""
        wanted = {p.source for _, p in self.task.pipeline.numbered_inputs if p.numbered}
        found = []
        for name, slices in reads:
            if name in wanted:
                known = self.inputs[name]
                assert isinstance(known, FileInput | GeneratorInput)  # the planner has refused others
                found.append((name, known.rows_before(slices[0].index) + dict(before).get(name, 0)))
        return tuple(found)

    def commit(self, end: Offset) -> None:
        """Release what only batches up to `end` needed, keeping the few that a restore may go back by."""
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
        """Return where earlier batches ended, as far as the checkpoint knows: a run may have few batches."""
        ends = [offset["inputs"] for offset in batches.ends(self._spark)]
        return ends[: ends.index(end)] if end in ends else []

    def _open(self, whole: bool = False) -> None:
        self.inputs = opened(self.task.sources, self.task.logs, whole)
        self.active_at = dict.fromkeys(self.inputs, self._clock())

    def _route(self, start: Offset) -> Offset:
        """Return how rows of the next batch are routed to units, and how those of the last batch were.

        `route` is the rule of the first stage, `rules` are those of later ones; `skew` is the degree of skew by hashes
        alone and by the rule, of the last stage that has one; `hot` is the hot keys' share of the rows, by source.
        """
        task, rules, skew = self.task, self._known_rules(start), start.get("skew")
        known = {"route": start.get("route"), "hot": start.get("hot", {})}
        if task.split:
            known |= self._spread(known["route"], known["hot"])
        elif task.routed and (ruled := self._ruled(census_folder(task.states), known["route"])) is not None:
            rule, skew, hot = ruled
            known |= {"route": rule, "hot": {task.stage.inputs[0].source: hot}}
        for number in sorted(task.pipeline.ruled - {0}):
            ruled = self._ruled(census_folder(task.states, number), rules.get(str(number)))
            if ruled is not None:
                rules[str(number)], skew, _ = ruled
        return {**known, "skew": skew, "rules": {n: rule for n, rule in rules.items() if rule is not None}}

    def _known_rules(self, offset: Offset) -> dict[str, Any]:
        """Return the rules of later stages. A run may have other stages that ask than the one that logged the offset."""
        ruled = self.task.pipeline.ruled
        return {number: rule for number, rule in offset.get("rules", {}).items() if int(number) in ruled}

    def _ruled(
        self, folder: Path, known: dict[str, Any] | None
    ) -> tuple[dict[str, Any] | None, dict[str, float], float | None] | None:
        """Return the next rule, the skew of the last batch and its share of hot keys; None if it had no rows.

        folder: of the last batch's statistics. The rule is a new one if the batch was uneven.
        """
        from joinlib.route import census, hotspot  # the kernels are not needed before the first rule

        units = self.task.pipeline.units
        rule = hotspot.decode(known, units)
        counts, plain, sample = census.collect(folder, units)
        if not len(sample):
            return None
        skew = {"hash": hotspot.skew(plain.tolist()), "rule": hotspot.skew(counts.tolist())}
        if skew["rule"] > self.task.tuning.skew:
            rule = hotspot.rule(sample, units)
        hot = hotspot.share(sample, [h.hash for h in rule.hot] if rule else ())
        return rule.encode() if rule else None, skew, hot

    def _spread(self, known: dict[str, Any] | None, hot: dict[str, float]) -> Offset:
        """Return which keys are spread over several units from the next batch on, and which were before.

        The rule is ContRand's.
        """
        from joinlib.route import biclique, census, contrand, hotspot

        stage = self.task.stage
        assert stage.route is not None
        folder = census_folder(self.task.states)
        samples = [census.collect(folder / str(p.number), stage.units)[2] for p in stage.inputs]
        rules = contrand.following(biclique.decode(known), stage.route, samples)
        shares = zip(stage.inputs, map(hotspot.share, samples, rules.store), strict=True)
        return {"route": rules.encode(), "hot": hot | {p.source: s for p, s in shares if s is not None}}

    def _tables(self) -> "Versions | None":
        """Return the versions of the tables that are kept whole; None if there is no such table."""
        if self._versions is None and any(t.full for t in self.task.tables):
            from joinlib.lookup.versions import Versions  # only the driver's part needs it

            tuning = self.task.tuning
            self._versions = Versions(self.task.tables, tuning.hash_bits, tuning.sync)
        return self._versions

    def _discover(self) -> None:
        if not self.inputs:
            self._open()
        self.known = {name: i.discover() for name, i in self.inputs.items()}

    def _between(self, start: dict[str, int], end: dict[str, int]) -> list[Sliced]:
        """Return the slices of all inputs between two offsets, in order."""
        return [(name, s) for name in self.inputs for s in self._slices(name, start[name], end[name])]

    def _slices(self, name: str, start: int, stop: int) -> list[Slice]:
        return self.inputs[name].slices(start, stop)

    def _idle(self, now: dict[str, int], before: dict[str, int]) -> list[str]:
        """Return the sources that have been silent for longer than every input over them allows."""
        clock = self._clock()
        limits: dict[str, int] = {}
        for _, plan in self.task.pipeline.numbered_inputs:
            if plan.idle_us is not None:
                limits[plan.source] = max(limits.get(plan.source, 0), plan.idle_us)
        for name, offset in now.items():
            if offset != before[name]:
                self.active_at[name] = clock
        return sorted(n for n, limit in limits.items() if clock - self.active_at[n] > limit / 1e6)


def _cut(pieces: list[list[Sliced]], parts: int) -> list[list[Sliced]]:
    """Join pieces to consecutive groups of similar weight, at least one: the first carries the ticks."""
    total, seen = sum(map(_rows, pieces)), 0
    groups: list[list[Sliced]] = [[] for _ in range(parts)]
    for piece in pieces:
        groups[min(parts - 1, seen * parts // max(total, 1))] += piece
        seen += _rows(piece)
    return [g for g in groups if g] or [[]]


def _before(reads: Reads, starts: dict[tuple[str, int], int]) -> tuple[tuple[str, int], ...]:
    """Return how much of its first slice another part reads, where that is anything. `starts`: of whole slices."""
    firsts = ((name, slices[0]) for name, slices in reads)
    return tuple((name, s.start - start) for name, s in firsts if s.start > (start := starts[name, s.index]))


def _rows(todo: list[Sliced]) -> int:
    return sum(slice.weight for _, slice in todo)


def _by_source(group: list[Sliced]) -> Reads:
    names = dict.fromkeys(name for name, _ in group)
    return tuple((name, tuple(s for n, s in group if n == name)) for name in names)


def _digest(todo: list[Sliced]) -> str:
    return xxhash.xxh3_64_hexdigest(orjson.dumps(todo))
