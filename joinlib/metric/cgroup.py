"""Reads from the control group how much memory this process's container uses, and at what limit it is killed.

v2 is one hierarchy (`memory.current`), v1 one for each resource (`memory/memory.usage_in_bytes`); in a
container both show the container's own. The working set is defined as in Kubernetes: the memory used, less
what the kernel can reclaim at once. Cost: three small files of the kernel, a fifth of a millisecond of CPU;
`recent` reads them at most once in five seconds.
"""

import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_KEPT_S = 5.0
_NONE = 1 << 60  # v1 reports "no limit" as a number at least this large


@dataclass(frozen=True)
class ContainerMemory:
    """The memory of a container, in bytes. None: unknown, or no limit."""

    working_set: int | None = None
    limit: int | None = None
    active: int = 0  # files that were read again, in the working set; reclaimed before a process is killed

    @property
    def room(self) -> int | None:
        """Return how much more processes can take before they are killed; None: unknown, or any amount."""
        if self.working_set is None or self.limit is None:
            return None
        return max(0, self.limit - self.working_set + self.active)


@dataclass(frozen=True)
class _Files:
    folder: str
    used: str
    limit: str
    inactive: str  # lines of memory.stat
    active: str


_VERSIONS = (
    _Files("", "memory.current", "memory.max", "inactive_file", "active_file"),
    _Files(
        "memory",
        "memory.usage_in_bytes",
        "memory.limit_in_bytes",
        "total_inactive_file",
        "total_active_file",
    ),
)


def recent() -> ContainerMemory:
    """Return the memory of this process's container, at most some seconds old."""
    return _in(int(time.monotonic() / _KEPT_S))


@lru_cache(maxsize=1)
def _in(moment: int) -> ContainerMemory:
    del moment
    return memory()


def memory(root: Path = Path("/sys/fs/cgroup")) -> ContainerMemory:
    """Return the container's memory; all None where there is no control group. Never raises."""
    for files in _VERSIONS:
        folder = root / files.folder
        used = _number(folder / files.used)
        if used is not None:
            limit, stat = _number(folder / files.limit), _stat(folder)
            working_set = max(0, used - stat.get(files.inactive, 0))
            return ContainerMemory(
                working_set,
                limit if limit is not None and limit < _NONE else None,
                min(working_set, stat.get(files.active, 0)),
            )
    return ContainerMemory()


def _stat(folder: Path) -> dict[str, int]:
    found = (line.partition(" ") for line in _text(folder / "memory.stat").splitlines())
    return {name: int(value) for name, _, value in found if value.isdecimal()}


def _number(file: Path) -> int | None:
    text = _text(file).strip()
    return int(text) if text.isdecimal() else None  # "max" means no limit


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
