"""Keeps the checkpoint of a job as this version writes it, for all later ones to go on from.

    python -m tests.spark.kept.make [NAME]      writes tests/spark/kept/NAME.tar.xz (NAME: the version in pyproject.toml)

Run it once for each release, and commit what it makes; never make one of an earlier version anew: it is what users have. The job
is stopped between two batches, with its inputs open, and read files, results and the checkpoint are packed together.
"""

import os
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

from joinlib.direct.report import Report
from joinlib.spark import session
from joinlib.spark.job import RunningJob
from tests.spark.kept import job
from tests.spark.trial import CORES, Trial, until

_ROOT = Path(__file__).parents[3]


def make(name: str) -> Path:
    """The archive."""
    archive = job.archive(name)
    with tempfile.TemporaryDirectory() as folder:
        spark = session.start(CORES)
        try:
            trial = Trial(Path(folder), spark)
            job.declare(trial)
            job.feed(trial, 0, job.FILES)
            _age(trial)
            trial.watch(trial.compiled(job.SQL, tuning=job.TUNED), _read_all)
        finally:
            spark.stop()
        with tarfile.open(archive, "w:xz", preset=9) as packed:
            for part in (*job.STREAMS, "checkpoint", "out"):
                packed.add(trial.folder / part, part, filter=_owned_by_nobody)
    return archive


def _age(trial: Trial) -> None:
    """Whole seconds: an archive keeps no more of a time, and the log of an input remembers it."""
    for name in job.STREAMS:
        for file in (trial.folder / name).iterdir():
            os.utime(file, (1_767_225_600, 1_767_225_600))


def _read_all(running: RunningJob, reports: list[Report]) -> None:
    until(running, lambda: len(reports) >= job.FILES and _lag(running) == 0, seconds=500)


def _lag(running: RunningJob) -> int:
    return sum(known["slices"] for known in running.lag().values())


def _owned_by_nobody(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Locks and logs are of the run alone."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return None if Path(info.name).name in ("lock", "stop", "logs", ".staging") else info


if __name__ == "__main__":
    version = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["version"]
    made = make(sys.argv[1] if len(sys.argv) > 1 else version)
    print(f"{made.relative_to(_ROOT)}: {made.stat().st_size} bytes")
