"""What is kept of batches. Law: it is what the logs said, or less, whatever happens."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from joinlib.checkpoint import batches, timeline
from joinlib.checkpoint.timeline import TimelineKeeper, due
from joinlib.model.time import ALWAYS, NEVER
from joinlib.state.manifest import Manifest
from joinlib.state.manifests import Manifests

RETAINED = 8
ROOT = Path(__file__).parents[3]


def end_of(batch: int) -> int:
    """Slices of `a` that were read when a batch ended; some batches read none."""
    return batch // 3 * 5


def watermark_of(batch: int) -> int:
    return NEVER if batch < 2 else 1_767_225_600_000_000 + batch * batch


class Job:
    """A job that logs as the driver does, and leaves nothing else."""

    def __init__(self, checkpoint: Path, shift: int = 0) -> None:
        self.checkpoint, self.shift, self.spark = checkpoint, shift, checkpoint / "spark"
        batches.make(self.spark, synced=False)
        self.keeper = TimelineKeeper(checkpoint, 1)

    def run(self, until: int, *, manifests: bool = False) -> None:
        """Go on behind the last batch that is done."""
        done = batches.done(self.spark)
        for batch in range(0 if done is None else done + 1, until):
            end = f'{{"inputs": {{"a": {end_of(batch) + self.shift}}}}}'
            if batches.begun(self.spark) != batch:  # as one has that was cut off
                batches.begin(self.spark, batch, end, synced=False)
            if manifests:
                saved = Manifest(batch, (), watermark_of(batch)).encode()
                Manifests(self.checkpoint / "state", 0, 0, 1).write(batch, {0: saved})
            if due(batch, RETAINED):
                self.keeper.keep(before=batch)
            if not manifests:
                self.keeper.tell(batch, {0: watermark_of(batch)})
            batches.finish(self.spark, batch, synced=False)


def right(checkpoint: Path, shift: int = 0) -> list[int]:
    """The batches that are known, of which nothing is wrong."""
    known = timeline.known(checkpoint, 10**9)
    found, ends = known.read("a")
    assert ends.tolist() == [end_of(batch) + shift for batch in found.tolist()]
    assert np.all(np.diff(found) > 0)
    for batch in found.tolist():
        assert known.watermark(0, batch) in (None, watermark_of(batch))
    return [batch for batch in found.tolist() if known.watermark(0, batch) is not None]


@pytest.mark.parametrize("manifests", [False, True])
def test_all_is_kept_that_the_logs_forget(tmp_path: Path, manifests: bool) -> None:
    """Told by receipts, or read in manifests; also by runs that begin in between, which nobody has told."""
    for until in (3, 19, 20, 61):
        job = Job(tmp_path)
        job.run(until, manifests=manifests)
    first = batches.all_begun(job.spark)[0]
    assert set(right(tmp_path)) >= set(range(20 if manifests else 24, first))
    found, _ = timeline.known(tmp_path, 10**9).read("a")
    assert found.tolist() == list(range(56)), "what is read is in the logs"
    assert timeline.known(tmp_path, 30).read("a")[0].max() == 29


def test_the_ends_of_time(tmp_path: Path) -> None:
    """A watermark that never was, and one of inputs that are closed."""
    job = Job(tmp_path)
    job.run(8)
    job.keeper.tell(7, {0: ALWAYS})
    job.keeper.keep(before=8)
    known = timeline.known(tmp_path, 8)
    assert [known.watermark(0, batch) for batch in (0, 2, 7)] == [NEVER, watermark_of(2), ALWAYS]
    assert known.watermark(1, 0) is None


def test_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whole files."""
    monkeypatch.setattr(timeline, "EACH", 16)
    monkeypatch.setattr(timeline, "FILES", 3)
    Job(tmp_path).run(16 * 9)
    assert right(tmp_path) == list(range(16 * 6, 16 * 9 - 8))
    assert len(timeline.files(tmp_path)) == 3


def test_its_size(tmp_path: Path) -> None:
    """All that is kept is a few megabytes."""
    Job(tmp_path).run(321)
    size = sum(file.stat().st_size for file in timeline.files(tmp_path))
    assert size / 320 * timeline.EACH * timeline.FILES < 6 << 20


@pytest.mark.parametrize("at", [20, 300])
def test_a_line_that_is_damaged(tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is not known, and the job goes on with what the logs have: nothing is said twice."""
    monkeypatch.setattr(timeline, "EACH", 16)
    Job(tmp_path).run(45)
    last = timeline.files(tmp_path)[-1]
    raw = bytearray(last.read_bytes())
    raw[at % len(raw)] ^= 1
    last.write_bytes(raw)
    assert right(tmp_path) == list(range(32))
    Job(tmp_path).run(70)
    assert set(right(tmp_path)) >= {*range(32), *range(45, 64)}


def test_a_line_that_is_cut_off(tmp_path: Path) -> None:
    """A power cut in the middle of it: it goes, and what comes later is appended."""
    Job(tmp_path).run(25)
    (file,) = timeline.files(tmp_path)
    file.write_bytes(file.read_bytes()[:-20])
    assert right(tmp_path) == list(range(16))
    Job(tmp_path).run(33)
    assert set(right(tmp_path)) >= {*range(16), *range(25, 32)}


def test_of_another_version(tmp_path: Path) -> None:
    """It is not known."""
    Job(tmp_path).run(9)
    (file,) = timeline.files(tmp_path)
    timeline.Log(file).append([{"v": 99, "batch": 8, "read.a": [-1], "watermark.0": [-1]}])
    assert right(tmp_path) == list(range(8))


def test_another_course_of_the_job(tmp_path: Path) -> None:
    """The machine has crashed without `checkpoint.sync`: batches that were done are not, and end elsewhere now."""
    Job(tmp_path).run(25)
    batches.forget(tmp_path / "spark", 20)
    (tmp_path / "state").mkdir()
    for batch in range(21):
        (tmp_path / "spark" / "offsets" / str(batch)).unlink(missing_ok=True)
    end = '{"inputs": {"a": 1000}}'
    (tmp_path / "spark" / "offsets" / "20").write_text(f"v1\n{{}}\n{end}")
    Job(tmp_path, shift=1000).run(25)
    found, ends = timeline.known(tmp_path, 10**9).read("a")
    assert dict(zip(found.tolist(), ends.tolist(), strict=True)).items() >= {
        (batch, end_of(batch) + 1000) for batch in range(21, 24)
    }
    assert found.tolist() == list(range(24))


def test_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The job goes on, and says what is lost by it."""
    job = Job(tmp_path)
    job.run(9)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        job.run(17)
    assert "less will be known of the batches before 16: [Errno 28]" in caplog.text
    job.run(33)
    assert set(right(tmp_path)) == {*range(8), *range(16, 32)}


def test_going_back(tmp_path: Path) -> None:
    """To any batch."""
    for after in (40, 25, 24, 23, 8, 0, -1):
        job = Job(tmp_path / str(after))
        job.run(41)
        timeline.cut(job.checkpoint, after)
        assert right(job.checkpoint) == list(range(min(after + 1, 40)))


def test_kept_in_another_checkpoint(tmp_path: Path) -> None:
    """What a fork begins with: what was kept, as far as its batch, and what the logs have up to there."""
    for batch in (28, 34):
        first, fork = tmp_path / f"{batch}", tmp_path / f"fork-{batch}"
        Job(first).run(35)
        (fork / "timeline").mkdir(parents=True)
        (file,) = timeline.files(first)
        (fork / "timeline" / file.name).write_bytes(file.read_bytes())
        TimelineKeeper(first, 1, into=fork).keep(before=batch + 1)
        found, _ = timeline.known(fork, 10**9).read("a")
        assert found.tolist() == list(range(batch + 1))
        assert right(fork) == list(range(min(batch + 1, 32)))
        assert right(first) == list(range(32)), "each has its own"


KILLED = """
import os, sys
from pathlib import Path
from tests.unit.checkpoint.test_timeline import Job
job, left, write = Job(Path(sys.argv[1])), int(sys.argv[2]), os.write
def dies(handle, data):
    global left
    left -= 1
    if left < 0:
        write(handle, data[: len(data) // 2])
        os.kill(os.getpid(), 9)
    return write(handle, data)
os.write = dies
job.run(100)
"""


@pytest.mark.parametrize("writes", [0, 1, 3])
def test_killed_while_it_writes(tmp_path: Path, writes: int) -> None:
    """Half a line is left. The next run has the batches in its logs still."""
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(writes)]
    done = subprocess.run(command, cwd=ROOT, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert right(tmp_path) == list(range(8 * writes))
    Job(tmp_path).run(100)
    found, _ = timeline.known(tmp_path, 10**9).read("a")
    assert found.tolist() == list(range(96))
    assert set(right(tmp_path)) >= {*range(8 * writes), *range(8 * writes + 8, 96)}


def test_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for eight batches, and not for each; of a new file its folder, too."""
    synced = list[str]()
    fsync = os.fsync

    def noted(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    Job(tmp_path).run(41)
    assert synced.count("00000000") == 5
    assert synced.count("timeline") == 1
