"""Which batch has read what, and how far was time behind it? Of many more batches than one can go back to.

    spark/offsets/N, manifests/N ─► every eighth batch, before they are deleted ─► CHECKPOINT/timeline/M

    {"v": 1, "batch": 40, "read.orders": [711, 7, 0, …], …, "watermark.0": [1767225600000000, 1000000, …]}

A file is a log of spans (`source.log`). A span is of batches in a row, `batch` is the first of them; of each column it has
the first value and then the differences. `read.X` are the slices of input X that were read when a batch ended,
`watermark.S` is the watermark of stage S behind it, µs.

Law: a span says what the logs and the manifests said of batches that were done. No batch depends on it, it is there
for questions (`joinlib.why`): what is missing, damaged or of another version is not known. A process that is killed, or a
power cut, leaves the spans before, or those and the new ones.

Cost: every eighth batch, one write of some 300 bytes and one fsync; for the last 130,000 batches some 5 MB.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from pathlib import Path

import numpy as np

from joinlib.arrays import I64
from joinlib.checkpoint import batches
from joinlib.errors import NotReady, StateError
from joinlib.files import sync
from joinlib.formats import TIMELINE
from joinlib.source.log import Entry, Log
from joinlib.state import manifests
from joinlib.state.manifest import decode

log = logging.getLogger("joinlib.checkpoint")
EACH = 2048  # batches of a file
FILES = 64  # that are kept
_FOLDER, _BATCH = "timeline", "batch"
Watermarks = Mapping[int, int]  # of stages, µs
_Row = dict[str, int]  # what is known of a batch


class Timeline:
    """What is known of batches, in their order. Some may be missing."""

    def __init__(self, spans: Sequence[Entry]) -> None:
        self._spans = spans
        self._columns: dict[str, tuple[I64, I64]] = {}

    def read(self, source: str) -> tuple[I64, I64]:
        """Return batches, and how many slices of a source were read when each ended."""
        return self._known(_read_of(source))

    def watermark(self, stage: int, batch: int) -> int | None:
        """Return the watermark of a stage behind a batch, µs; None if it is not known."""
        known, watermarks = self._known(_watermark_of(stage))
        at = int(np.searchsorted(known, batch))
        return int(watermarks[at]) if at < len(known) and known[at] == batch else None

    def _known(self, column: str) -> tuple[I64, I64]:
        """Return the batches of which a column is known, and its values."""
        if column not in self._columns:
            spans = [span for span in self._spans if column in span]
            known = [span[_BATCH] + n for span in spans for n in range(len(span[column]))]
            values = [value for span in spans for value in accumulate(span[column])]
            self._columns[column] = np.array(known, np.int64), np.array(values, np.int64)
        return self._columns[column]


class TimelineKeeper:
    """Keeps what is known of the batches of a checkpoint. Where that fails, a job goes on without.

    Args:
        checkpoint: Whose logs are read.
        stages: How many stages have state.
        into: The checkpoint that keeps it; by default the same.
    """

    def __init__(self, checkpoint: Path, stages: int, into: Path | None = None) -> None:
        self._checkpoint, self._stages = checkpoint, stages
        self._into = into or checkpoint
        self._told: dict[int, Watermarks] = {}
        self._last: int | None = None  # the last batch that is kept; None: the files are not read yet
        self._log: Log | None = None  # that was written last

    def tell(self, batch: int, watermarks: Watermarks) -> None:
        """Tell the watermarks behind a batch that may not be done yet: to read them in manifests takes longer."""
        with self._tried(batch):
            self._open(batch)
        self._told[batch] = watermarks

    def keep(self, before: int) -> None:
        """Keep the batches before batch `before`, which are done, as far as the logs have them."""
        with self._tried(before):
            last = self._open(before)
            logged = [b for b in batches.all_begun(self._checkpoint / "spark") if last < b < before]
            spans = _spans((batch, row) for batch in logged if (row := self._row(batch)))
            for number, some in groupby(spans, itemgetter(0)):
                self._append(number, [span for _, span in some])
            self._last = max([last, *logged])
        self._told.clear()

    @contextmanager
    def _tried(self, before: int) -> Iterator[None]:
        """Go on without where the block fails: nothing depends on it."""
        try:
            yield
        except (OSError, NotReady, StateError) as error:
            log.warning("less will be known of the batches before %d: %s", before, error)
            self._last = self._log = None

    def _open(self, before: int) -> int:
        """Return the last batch that is kept. What is kept of later ones than are done is of another course of the job:
        the machine has crashed, and `checkpoint.sync` is off.
        """
        if self._last is None:
            self._last = _last(self._into)
            if self._last >= before:
                cut(self._into, before - 1)
                self._last = _last(self._into)
        return self._last

    def _row(self, batch: int) -> _Row:
        try:
            read = batches.offset(self._checkpoint / "spark", batch)["inputs"]
        except StateError:
            return {}
        told = self._told.get(batch, {})
        found = {s: told[s] if s in told else self._watermark(batch, s) for s in range(self._stages)}
        known = {_watermark_of(s): watermark for s, watermark in found.items() if watermark is not None}
        return {_read_of(source): int(slices) for source, slices in read.items()} | known

    def _watermark(self, batch: int, stage: int) -> int | None:
        try:
            saved = manifests.one(self._checkpoint / "state", batch, stage)
        except (OSError, StateError):
            return None
        return None if saved is None else decode(saved).watermark

    def _append(self, number: int, spans: list[Entry]) -> None:
        file = self._into / _FOLDER / f"{number:08d}"
        if self._log is None or self._log.path != file:
            _make(file.parent)
            self._log = Log(file)
            for old in files(self._into):
                if int(old.name) <= number - FILES:
                    old.unlink()
        self._log.append(spans)


def due(batch: int, retained: int) -> bool:
    """Return whether the batches before this one are to be kept now: the logs of the first will be deleted soon.

    retained: how many batches before the current one have manifests.
    """
    return batch % min(batches.KEPT, retained) == 0


def known(checkpoint: Path, before: int) -> Timeline:
    """Return what is kept of the batches before batch `before`."""
    spans = (span for file in files(checkpoint) for span in _read(Log(file, mends=False)))
    return Timeline(_up_to(before - 1, spans))


def cut(checkpoint: Path, after: int) -> None:
    """Forget what came behind batch `after`. It is on the disk then."""
    there = files(checkpoint)
    for file in reversed(there):
        kept = _up_to(after, spans := _read(held := Log(file)))
        if not kept:
            file.unlink()
        elif kept == spans:
            break
        else:
            held.replace(kept)
    if there:
        sync([checkpoint / _FOLDER])


def files(checkpoint: Path) -> list[Path]:
    """Return the files, in order. Only the last two may be appended to."""
    found = (checkpoint / _FOLDER).glob("*")
    return sorted(file for file in found if file.name.isdigit())


# --- files ----------------------------------------------------------------------------------------


def _last(checkpoint: Path) -> int:
    """Return the last batch that is kept; -1 if there is none. What is damaged behind it goes: nothing could be appended."""
    for file in reversed(files(checkpoint)):
        if spans := _read(Log(file)):
            return int(spans[-1][_BATCH]) + _length(spans[-1]) - 1
        file.unlink()
    return -1


def _read(kept: Log) -> list[Entry]:
    """Return the spans of a file; those of another version are not known, and none is if it is damaged."""
    try:
        return [span for span in kept.entries if span.get("v") in TIMELINE.reads]
    except (OSError, StateError):
        log.warning("%s: cannot be read; what its batches have read is not known", kept.path)
        return []


def _make(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir()
        sync([folder.parent])


# --- spans ----------------------------------------------------------------------------------------


def _spans(rows: Iterable[tuple[int, _Row]]) -> Iterator[tuple[int, Entry]]:
    """Put batches in a row of which the same is known together; yield the file and the span."""
    found = enumerate(rows)
    for (number, *_), some in groupby(
        found, lambda at: (at[1][0] // EACH, at[1][0] - at[0], at[1][1].keys())
    ):
        (first, row), *more = (one for _, one in some)
        series = {name: [row[name], *(later[name] for _, later in more)] for name in row}
        columns = {
            name: [values[0], *(b - a for a, b in pairwise(values))] for name, values in series.items()
        }
        yield number, {"v": TIMELINE.writes, _BATCH: first, **columns}


def _up_to(batch: int, spans: Iterable[Entry]) -> list[Entry]:
    """Return what spans say of the batches up to a batch."""
    found = []
    for span in spans:
        count = batch - span[_BATCH] + 1
        if count > 0:
            found.append({k: v[:count] if isinstance(v, list) else v for k, v in span.items()})
    return found


def _length(span: Entry) -> int:
    return max(len(values) for values in span.values() if isinstance(values, list))


def _read_of(source: str) -> str:
    return f"read.{source}"


def _watermark_of(stage: int) -> str:
    return f"watermark.{stage}"
