"""Everything that a commit depends on is synced before the commit.

strace records what a run does with its files, and a model of a disk that keeps only what was synced replays it. A power cut
at a random moment (`test_power`) finds a missing sync only if it comes in the milliseconds that the sync protects.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from joinlib.state import manifests
from joinlib.state.manifest import decode
from tests.spark.faults.durable import Disk, Event, events, strace
from tests.spark.faults.scenario import FILES, TUNING, scenario

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
_APT = Path(__file__).parents[3] / "tools" / "apt"
_OURS = re.compile(r"(checkpoint|out)\b")
# Caches, hints and files of this boot, on which no batch depends (see `joinlib.checkpoint.batches`), and files without their final name.
_EXPENDABLE = re.compile(
    r"checkpoint/(lock|lock\.jvm|stop|logs.*|sources/census.*|(.*/)?\.[^/]*)|out/(\.staging|\.swept-|\._).*"
)
_SEGMENT = re.compile(r"checkpoint/state/\d+/\d+/(.+\.arrow)")  # matters once a manifest names it
_FOR_TASKS = re.compile(r"checkpoint/(streamjoin\.json|partitions|sources|tables|state/epochs|spark)\b")
_TASKS = re.compile(r"checkpoint/state/\d+/|checkpoint/state/manifests/")
_COMMIT = re.compile(r"checkpoint/spark/commits/(\d+)")


@dataclass(frozen=True)
class Recording:
    """What a run did in its folder, in which the manifests of all batches are kept."""

    folder: Path
    events: list[Event]

    def violations(self, without: str | None = None) -> Iterator[str]:
        """Says what came before something that it depends on. `without`: a kind of sync to leave out of the replay."""
        return self._violations([e for e in self.events if e.kind != "sync" or self.kind(e) != without])

    @cached_property
    def syncs(self) -> list[str]:
        """The kinds of syncs of the checkpoint and the output."""
        kinds = {self.kind(e) for e in self.events if e.kind == "sync"}
        return sorted(kind for kind in kinds if _OURS.match(kind))

    def kind(self, event: Event) -> str:
        """The path of an event, without its numbers and random names."""
        return re.sub(r"[0-9a-f]*\d[0-9a-f-]*", "N", self._name(event))

    def _name(self, event: Event) -> str:
        path = event.paths[-1]
        return str(path.relative_to(self.folder)) if path.is_relative_to(self.folder) else ""

    def _violations(self, replayed: list[Event]) -> Iterator[str]:
        disk, idle = Disk(self.folder), True
        for event in replayed:
            name = self._name(event)
            commit = _COMMIT.fullmatch(name) if event.kind in ("link", "rename") else None
            if idle and event.kind == "open" and _TASKS.match(name):
                idle = False
                yield from (f"tasks before {w}" for w in self._lost(disk) if _FOR_TASKS.match(w))
            if event.kind in ("link", "rename") and _is_final(name):
                yield from (f"{name} before {what}" for what in disk.lost(event.paths[0]))
            if commit:
                idle = True
                yield from (f"{name} before {what}" for what in self._lost(disk, int(commit[1])))
            disk.play(event)
        yield from (f"the end before {what}" for what in self._lost(disk))

    def _lost(self, disk: Disk, batch: int = -1) -> Iterator[str]:
        """What a power cut would take that matters; of segments, only those that the manifests of `batch` name."""
        segments = self._segments.get(batch, set())
        for what in disk.lost(self.folder):
            path = what.partition(": ")[0]
            segment = _SEGMENT.fullmatch(path)
            expendable = segment[1] not in segments if segment else _EXPENDABLE.fullmatch(path)
            if _OURS.match(path) and not expendable:
                yield what

    @cached_property
    def _segments(self) -> dict[int, set[str]]:
        """The files of segments that the manifests of each batch name."""
        states = self.folder / "checkpoint" / "state"
        return {
            batch: {
                segment.name
                for saved in manifests.everything(states, batch, 0).values()
                for side in decode(saved).sides
                for segment in side.segments
                if segment.content is None
            }
            for batch in manifests.kept_batches(states)
        }


def _is_final(name: str) -> bool:
    """Whether a file or folder that gets this name must be on the disk before."""
    return bool(_OURS.match(name)) and not (_EXPENDABLE.fullmatch(name) or _SEGMENT.fullmatch(name))


def _require_strace() -> None:
    """Installs strace where that is possible; skips the test where it cannot be had or may not trace."""
    if shutil.which("strace") is None:
        installed = subprocess.run([_APT, "strace"], capture_output=True, text=True, check=False)
        if installed.returncode:
            pytest.skip(f"there is no strace: {installed.stderr.strip()}")
    tried = subprocess.run(["strace", "-f", "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"strace may not trace here: {tried.stderr.strip()}")


@pytest.fixture(scope="module", params=["spark", "direct"])
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A full join whose results are compacted, by Spark's batches and by batches without Spark."""
    _require_strace()
    folder, direct = tmp_path_factory.mktemp("order"), request.param == "direct"
    compact = {"compact": {"every": "1h", "size": "200Ki" if direct else "20Ki"}}  # of several files each
    tuning = {**TUNING, "retain_batches": 100}
    more: dict[str, Any] = {"partitions": None, "direct": True} if direct else {}
    with scenario(folder / "job", "full", files=compact, tuning=tuning, **more) as job:
        run = job.begin(under=strace(folder / "trace"), last=FILES - 1 if direct else None)
        assert run.end() == 0, run.last_words()
        assert direct == any(line.get("direct") for line in run.lines)
    return Recording(folder / "job", events(folder / "trace", folder / "job"))


def test_commits_come_last(recording: Recording) -> None:
    """Inputs of a batch are on the disk before its tasks begin, its outcome before the commit, and any content before its name."""
    assert list(recording.violations()) == []


def test_every_sync_is_needed(recording: Recording) -> None:
    """The same run without any one kind of sync would break the law: the test above notices each one that is left out."""
    assert {"checkpoint/spark/commits", "out/.waiting"} < set(recording.syncs)
    assert [kind for kind in recording.syncs if not any(recording.violations(without=kind))] == []
