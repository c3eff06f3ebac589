"""The manifest: all that a unit's state is, as one small value. It is saved with the batch.

    Manifest ─ sides ─ runs ─ segments (name, rows, digest, …)
             ├ watermark, highest event time of each input, rows read and late
             └ retired segments, with the batch that retired them

Its size depends on the number of live segments, never on the number of batches. Encoding: a line of JSON, a version first,
and behind it the rows of segments that are too small for files.
"""

from dataclasses import dataclass
from io import BytesIO
from typing import Any

import orjson

from joinlib.errors import StateError
from joinlib.formats import MANIFEST

Content = bytes  # a batch of rows as Arrow sends it
NEVER = -(2**63) + 1  # µs: before every event time
ALWAYS = 2**63 - 1  # µs: after every event time


@dataclass(frozen=True)
class Segment:
    """Immutable rows: a file of the unit's folder, or `content`."""

    name: str
    rows: int
    bytes: int
    digest: str  # xxh3-128 of the file, hexadecimal
    token: int  # chained hash of the run's rows up to here; a merge keeps it
    level: int  # how many times its rows were merged
    low: int = ALWAYS  # lowest and highest event time, µs
    high: int = NEVER
    content: Content | None = None  # the rows, where a file would cost more than they do


@dataclass(frozen=True)
class Run:
    """Consecutive segments under one index. Row numbers count through them and never change."""

    number: int  # unique in its side
    sealed: bool
    segments: tuple[Segment, ...]
    level: int = 0  # 0: rows as they came; n: after n merges, by hash through all segments

    @property
    def rows(self) -> int:
        return sum(s.rows for s in self.segments)

    @property
    def bytes(self) -> int:
        return sum(s.bytes for s in self.segments)

    @property
    def token(self) -> int:
        return self.segments[-1].token if self.segments else 0

    @property
    def low(self) -> int:
        return min((s.low for s in self.segments), default=ALWAYS)

    @property
    def high(self) -> int:
        return max((s.high for s in self.segments), default=NEVER)


@dataclass(frozen=True)
class Merge:
    """Runs that become one, a piece a batch: until that is whole they are searched, and nobody sees it."""

    runs: tuple[int, ...]  # their numbers
    output: Run  # as far as it is written
    low: int  # least and greatest hash
    high: int
    pieces: int  # into so many parts of equal width all hashes between them are cut
    done: int = 0  # of these, those that are written
    origins: tuple[Segment, ...] = ()  # of rows that may be marked, where each was: columns run, row


@dataclass(frozen=True)
class SideManifest:
    """One input of one join."""

    runs: tuple[Run, ...] = ()
    marks: tuple[Segment, ...] = ()  # which rows have been matched: columns run, row
    next_run: int = 0
    merges: tuple[Merge, ...] = ()  # at most one of each level

    @property
    def rows(self) -> int:
        return sum(r.rows for r in self.runs)

    @property
    def beside(self) -> tuple[Segment, ...]:
        """Those of no run: marks, and what merges have written so far."""
        return self.marks + tuple(s for m in self.merges for s in (*m.output.segments, *m.origins))

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All that live."""
        return tuple(s for r in self.runs for s in r.segments) + self.beside


@dataclass(frozen=True)
class Manifest:
    """The state of one unit after one batch."""

    batch: int
    sides: tuple[SideManifest, ...]
    watermark: int = NEVER  # µs; decides lateness from the next batch on; ALWAYS: the inputs are closed
    highest: tuple[int, ...] = ()  # highest event time of each input, µs
    rows: tuple[int, ...] = ()  # read so far, by input; late rows are not among them
    late: tuple[int, ...] = ()  # left out so far because they were behind the watermark, by input
    bad: tuple[int, ...] = ()  # messages left out so far because they could not be decoded, by input
    retired: tuple[tuple[int, str, int], ...] = ()  # (batch, name, bytes)
    probes: tuple[Any, ...] = ()  # probe orders of joins of three inputs or more, as `join.order` writes them

    @property
    def files(self) -> set[str]:
        """Those of the segments that live."""
        return {s.name for side in self.sides for s in side.segments if s.content is None}

    @property
    def names(self) -> set[str]:
        """Every file that must stay."""
        return self.files | {name for _, name, _ in self.retired}

    def encode(self) -> bytes:
        contents: list[bytes] = []

        def aside(content: bytes) -> int:  # all that orjson does not know, in the order of the fields
            contents.append(content)
            return len(content)

        return orjson.dumps({"v": MANIFEST.writes, **vars(self)}, aside) + b"\n" + b"".join(contents)


def empty(sides: int, inputs: int) -> Manifest:
    """The state before the first batch."""
    zeros = (0,) * inputs
    return Manifest(
        -1, (SideManifest(),) * sides, highest=(NEVER,) * inputs, rows=zeros, late=zeros, bad=zeros
    )


def decode(data: bytes) -> Manifest:
    """Inverse of `Manifest.encode`."""
    head, _, contents = data.partition(b"\n")
    raw: dict[str, Any] = orjson.loads(head)
    MANIFEST.check(raw.pop("v"), _PLACE)
    try:
        return _manifest(raw, BytesIO(contents))
    except TypeError as e:  # a field more, or one less
        why = MANIFEST.strange([str(e).rpartition(" ")[2]], (), _PLACE)
        raise StateError(str(why)) from e


_PLACE = "a manifest of the checkpoint"


def _manifest(raw: dict[str, Any], rest: BytesIO) -> Manifest:
    return Manifest(
        **{
            **raw,
            "sides": tuple(_side(s, rest) for s in raw["sides"]),
            "highest": tuple(raw["highest"]),
            "rows": tuple(raw["rows"]),
            "late": tuple(raw["late"]),
            "bad": tuple(raw.get("bad", [0] * len(raw["late"]))),
            "retired": tuple((b, n, s) for b, n, s in raw["retired"]),
            "probes": tuple(raw.get("probes", ())),
        }
    )


def _side(raw: dict[str, Any], contents: BytesIO) -> SideManifest:
    runs = tuple(_run(r, contents) for r in raw["runs"])
    marks = _segments(raw["marks"], contents)
    merges = tuple(_merge(m, contents) for m in raw.get("merges", ()))
    return SideManifest(**{**raw, "runs": runs, "marks": marks, "merges": merges})


def _run(raw: dict[str, Any], contents: BytesIO) -> Run:
    return Run(**{**raw, "segments": _segments(raw["segments"], contents)})


def _merge(raw: dict[str, Any], contents: BytesIO) -> Merge:
    output = _run(raw["output"], contents)
    origins = _segments(raw["origins"], contents)  # behind the output, as they were written
    return Merge(**{**raw, "runs": tuple(raw["runs"]), "output": output, "origins": origins})


def _segments(raw: list[dict[str, Any]], contents: BytesIO) -> tuple[Segment, ...]:
    for s in raw:
        if s["content"] is not None:
            s["content"] = contents.read(s["content"])
    return tuple(Segment(**s) for s in raw)
