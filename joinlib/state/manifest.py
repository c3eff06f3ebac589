"""The manifest: the complete state of a unit as one small value, saved with each batch.

    Manifest ─ sides ─ runs ─ segments (name, rows, digest, …)
             ├ watermark, highest event time of each input, rows read and late
             └ retired segments, with the batch that retired them

Its size depends on the number of live segments, never on the number of batches. Encoding: a line of JSON that
begins with a version, followed by the rows of segments that are too small for files.
"""

from dataclasses import dataclass
from io import BytesIO
from typing import Any

import orjson

from joinlib.errors import StateError
from joinlib.formats import MANIFEST
from joinlib.model.time import ALWAYS, NEVER

Content = bytes  # a record batch in Arrow's IPC encoding


@dataclass(frozen=True)
class Segment:
    """Immutable rows: a file in the unit's folder, or `content`."""

    name: str
    rows: int
    bytes: int
    digest: str  # xxh3-128 of the file, hexadecimal
    token: int  # chained hash of the run's rows up to and including these; a merge keeps it
    level: int  # how many times the rows were merged
    low: int = ALWAYS  # lowest and highest event time, µs
    high: int = NEVER
    content: Content | None = None  # the rows themselves, if they are too small for a file


@dataclass(frozen=True)
class Run:
    """Consecutive segments under one index.

    Rows are numbered through all segments; their numbers never change.
    """

    number: int  # unique in its side
    sealed: bool
    segments: tuple[Segment, ...]
    level: int = 0  # 0: rows in arrival order; n: after n merges, sorted by hash through all segments

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
    """Runs that are being merged into one, a piece per batch.

    Until the last piece is written, the old runs are searched and the new one is not visible.
    """

    runs: tuple[int, ...]  # numbers of the old runs
    output: Run  # the pieces written so far
    low: int  # least and greatest hash
    high: int
    pieces: int  # number of ranges of equal width into which [low, high] is divided
    done: int = 0  # number of ranges already written
    origins: tuple[Segment, ...] = ()  # where each row was before, if rows may be marked: columns run, row


@dataclass(frozen=True)
class SideManifest:
    """The state of one input of one join."""

    runs: tuple[Run, ...] = ()
    marks: tuple[Segment, ...] = ()  # which rows have been matched: columns run, row
    next_run: int = 0
    merges: tuple[Merge, ...] = ()  # at most one per level
    seen: int | None = None  # of a versioned side: rows of the last run before the batch; None: all of them

    @property
    def rows(self) -> int:
        return sum(r.rows for r in self.runs)

    @property
    def beside(self) -> tuple[Segment, ...]:
        """The segments outside runs: marks, and the output of unfinished merges."""
        return self.marks + tuple(s for m in self.merges for s in (*m.output.segments, *m.origins))

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All live segments."""
        return tuple(s for r in self.runs for s in r.segments) + self.beside


@dataclass(frozen=True)
class Manifest:
    """The state of one unit after one batch."""

    batch: int
    sides: tuple[SideManifest, ...]
    watermark: int = NEVER  # µs; decides lateness from the next batch on; ALWAYS: the inputs are closed
    highest: tuple[int, ...] = ()  # highest event time of each input, µs
    rows: tuple[int, ...] = ()  # rows read so far, by input, without late ones
    late: tuple[int, ...] = ()  # rows dropped so far because they were behind the watermark, by input
    bad: tuple[int, ...] = ()  # messages dropped so far because they could not be decoded, by input
    retired: tuple[tuple[int, str, int], ...] = ()  # (batch, name, bytes)
    probes: tuple[Any, ...] = ()  # probe orders of joins of three or more inputs, encoded by `join.order`

    @property
    def files(self) -> set[str]:
        """The names of the files of live segments."""
        return {s.name for side in self.sides for s in side.segments if s.content is None}

    @property
    def names(self) -> set[str]:
        """The names of all files that must be kept."""
        return self.files | {name for _, name, _ in self.retired}

    def encode(self) -> bytes:
        contents: list[bytes] = []

        def aside(content: bytes) -> int:  # called for bytes, which orjson cannot encode, in field order
            contents.append(content)
            return len(content)

        sides = [_plain(side) for side in self.sides]
        fields = {"v": MANIFEST.writes, **vars(self), "sides": sides}
        return orjson.dumps(fields, aside) + b"\n" + b"".join(contents)


def _plain(side: SideManifest) -> dict[str, Any]:
    """Return the fields of a side; the one that few sides have is left out of the others."""
    return {name: value for name, value in vars(side).items() if name != "seen" or value is not None}


def empty(sides: int, inputs: int) -> Manifest:
    """Return the state before the first batch."""
    zeros = (0,) * inputs
    return Manifest(
        -1, (SideManifest(),) * sides, highest=(NEVER,) * inputs, rows=zeros, late=zeros, bad=zeros
    )


def decode(data: bytes) -> Manifest:
    """Return the manifest encoded in `data`; the inverse of `Manifest.encode`.

    Raises:
        StateError: the version or a field is unknown, or a field is missing.
    """
    head, _, contents = data.partition(b"\n")
    raw: dict[str, Any] = orjson.loads(head)
    MANIFEST.check(raw.pop("v"), _PLACE)
    try:
        return _manifest(raw, BytesIO(contents))
    except TypeError as e:  # an unknown or a missing field
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
    origins = _segments(raw["origins"], contents)  # decoded after the output, in the order of encoding
    return Merge(**{**raw, "runs": tuple(raw["runs"]), "output": output, "origins": origins})


def _segments(raw: list[dict[str, Any]], contents: BytesIO) -> tuple[Segment, ...]:
    for s in raw:
        if s["content"] is not None:
            s["content"] = contents.read(s["content"])
    return tuple(Segment(**s) for s in raw)
