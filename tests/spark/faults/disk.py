"""A disk whose power can be cut: an ext4 file system in a file, shut down without its journal, as xfstests plays power failures.

folder ── writes ──► page cache ── fsync, or some seconds later ──► disk      cut: what is not on the disk is gone
"""

import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.spark.faults.scenario import Run

_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
_NO_LOG_FLUSH = 2


@dataclass(frozen=True)
class Disk:
    """Mounted at `folder`."""

    image: Path
    folder: Path

    def sync(self) -> None:
        """Everything so far is on the disk."""
        subprocess.run(["sync", "--file-system", self.folder], check=True)

    def fail(self, run: Run, indexes: Path) -> None:
        """The power of the machine that a job runs on fails, and comes back."""
        self._cut()
        run.close()
        self._unmount()
        self.mount()
        shutil.rmtree(indexes, ignore_errors=True)  # another boot looks for its indexes elsewhere

    def _cut(self) -> None:
        """From here on nothing more reaches the disk, not even the journal."""
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(handle)

    def _unmount(self, patience_s: float = 60.0) -> None:
        """Waits for processes that were killed, and have not closed their files yet."""
        end = time.monotonic() + patience_s
        while (said := _ran("umount", self.folder)).returncode:
            assert time.monotonic() < end, said.stderr
            time.sleep(0.1)

    def mount(self) -> None:
        """What is on the disk, after the journal was replayed."""
        if (said := _ran("mount", "-o", "loop", self.image, self.folder)).returncode:
            pytest.skip(f"mounting is not permitted here: {said.stderr.strip()}")


def _ran(*command: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False)


@contextmanager
def disk(place: Path, megabytes: int = 512) -> Iterator[Disk]:
    """An empty one; skips the test where there can be none."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("there is no mkfs.ext4 here")
    image, folder = place / "disk.img", place / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    made = Disk(image, folder)
    made.mount()
    try:
        yield made
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        image.unlink()
