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


@dataclass(frozen=True)
class _Files:
    folder: str
    used: str
    limit: str
    inactive: str  # the line of memory.stat


_VERSIONS = (
    _Files("", "memory.current", "memory.max", "inactive_file"),
    _Files("memory", "memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file"),
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
            limit = _number(folder / files.limit)
            return ContainerMemory(
                max(0, used - _inactive(folder, files.inactive)),
                limit if limit is not None and limit < _NONE else None,
            )
    return ContainerMemory()


def _inactive(folder: Path, name: str) -> int:
    for line in _text(folder / "memory.stat").splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.isdecimal():
            return int(value)
    return 0


def _number(file: Path) -> int | None:
    text = _text(file).strip()
    return int(text) if text.isdecimal() else None  # "max" means no limit


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
