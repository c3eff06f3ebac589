"""A model of a disk: what a power cut would leave of the files of a run, according to POSIX. strace records what the run does.

    write(a)          the content of `a` has changed, in memory
    rename(a, b)      the names of a folder have changed, in memory
    fsync(a)          what `a` was when the call began, its content or its names, is on the disk when the call ends

Real file systems often keep more than that. A run that needs no more is safe on all of them.

    [*strace(trace), *command] ─► events(trace, root) ─► disk.play(event) ─► disk.lost(path)
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

_KINDS = {  # what each system call does
    **dict.fromkeys(("open", "openat", "creat"), "open"),
    **dict.fromkeys(("mkdir", "mkdirat"), "mkdir"),
    **dict.fromkeys(("write", "writev", "pwrite64", "pwritev", "ftruncate", "truncate", "sendfile"), "write"),
    **dict.fromkeys(("rename", "renameat", "renameat2"), "rename"),
    **dict.fromkeys(("link", "linkat"), "link"),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), "remove"),
    **dict.fromkeys(("fsync", "fdatasync"), "sync"),
}
_LINE = re.compile(r"(?P<thread>\d+) +(?:<\.\.\. \w+ resumed>)?(?P<text>.*)")
_CALL = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
_PATH = re.compile(r'(?:AT_FDCWD|\d+)<(?P<folder>[^>]*)>(?:, "(?P<name>[^"]*)")?|"(?P<alone>[^"]*)"')


@dataclass(frozen=True)
class Event:
    """A system call that succeeded. A `sync` comes twice: where it began, and where it ended."""

    kind: str
    paths: tuple[PurePosixPath, ...]
    thread: int = 0
    begins: bool = False


@dataclass(eq=False)
class Node:
    """A file or a folder: what it is in memory, and what it is on the disk."""

    folder: bool = False
    writes: int = 0
    names: dict[str, "Node"] = field(default_factory=dict)
    synced: int = 0  # the number of the latest sync that has ended
    disk_writes: int = 0
    disk_names: dict[str, "Node"] = field(default_factory=dict)


class Disk:
    """The folder `root`, which was empty when the recording began. Calls on other folders change nothing."""

    def __init__(self, root: Path) -> None:
        self._root, self._top = PurePosixPath(root), Node()
        self._syncing: dict[int, tuple[int, Node, int, dict[str, Node]]] = {}
        self._syncs = 0

    def play(self, event: Event) -> None:
        """Applies one call."""
        getattr(self, f"_{event.kind}")(event, *event.paths)

    def lost(self, path: PurePosixPath) -> Iterator[str]:
        """What a power cut would take of a file, or of a folder with all that is in it: "PATH: its name" or "PATH: its content".

        An empty folder is no loss.
        """
        if node := self._at(path):
            yield from _lost(node, path.relative_to(self._root))

    def _open(self, _: Event, path: PurePosixPath) -> None:
        if parent := self._at(path.parent):
            parent.names.setdefault(path.name, Node())

    def _mkdir(self, _: Event, path: PurePosixPath) -> None:
        if parent := self._at(path.parent):
            parent.names.setdefault(path.name, Node(folder=True))

    def _write(self, _: Event, path: PurePosixPath) -> None:
        if node := self._at(path):
            node.writes += 1

    def _rename(self, event: Event, source: PurePosixPath, target: PurePosixPath) -> None:
        self._link(event, source, target)
        self._remove(event, source)

    def _link(self, _: Event, source: PurePosixPath, target: PurePosixPath) -> None:
        if parent := self._at(target.parent):
            parent.names[target.name] = self._at(source) or Node(writes=1)  # from elsewhere

    def _remove(self, _: Event, path: PurePosixPath) -> None:
        if parent := self._at(path.parent):
            parent.names.pop(path.name, None)

    def _sync(self, event: Event, path: PurePosixPath) -> None:
        if event.begins and (node := self._at(path)):
            self._syncs += 1
            self._syncing[event.thread] = self._syncs, node, node.writes, dict(node.names)
        elif began := self._syncing.pop(event.thread, None):
            number, node, writes, names = began
            if number > node.synced:  # or one that began later has ended: what that wrote stays on the disk
                node.synced, node.disk_writes, node.disk_names = number, writes, names

    def _at(self, path: PurePosixPath) -> Node | None:
        found: Node | None = self._top if path.is_relative_to(self._root) else None
        for part in path.parts[len(self._root.parts) :]:
            found = found.names.get(part) if found else None
        return found


def _lost(node: Node, path: PurePosixPath) -> Iterator[str]:
    if node.writes != node.disk_writes:
        yield f"{path}: its content"
    for name, child in node.names.items():
        if node.disk_names.get(name) is not child and (child.names or not child.folder):
            yield f"{path / name}: its name"
        yield from _lost(child, path / name)


def strace(trace: Path) -> list[str]:
    """The command line that records the command behind it into a file for `events`."""
    options = f"-f -y -s 0 --seccomp-bpf -e trace={','.join(_KINDS)} -o"
    return ["strace", *options.split(), str(trace)]


def events(trace: Path, root: Path) -> list[Event]:
    """Reads a recording: the calls that succeeded and have to do with files under `root`, in order."""
    with trace.open(errors="replace") as lines:
        return list(_events(lines, str(root)))


def _events(lines: Iterator[str], root: str) -> Iterator[Event]:
    """Parses strace. A call during which another thread made one has two lines: `... <unfinished ...>`, `<... fsync resumed>...`."""
    begun: dict[int, str] = {}
    for line in lines:
        if not (found := _LINE.match(line)):
            continue
        thread, text = int(found["thread"]), begun.pop(int(found["thread"]), "") + found["text"]
        if root not in text:
            continue
        if text.endswith(" <unfinished ...>"):
            begun[thread] = text.removesuffix(" <unfinished ...>")
            if text.startswith(("fsync", "fdatasync")):
                yield Event("sync", _paths(text), thread, begins=True)
        elif call := _CALL.match(text):
            yield from _of(call, thread, resumed="resumed>" in line)


def _of(call: re.Match[str], thread: int, resumed: bool) -> Iterator[Event]:
    kind, arguments = _KINDS[call["name"]], call["arguments"]
    if int(call["result"]) < 0:
        return
    paths = _paths(arguments)
    if kind == "sync":
        if not resumed:
            yield Event(kind, paths, thread, begins=True)
        yield Event(kind, paths, thread)
    elif kind != "open":
        yield Event(kind, paths[: 2 if kind in ("rename", "link") else 1])
    else:
        if call["name"] == "creat" or "O_CREAT" in arguments:
            yield Event("open", paths)
        if call["name"] == "creat" or "O_TRUNC" in arguments:
            yield Event("write", paths)


def _paths(arguments: str) -> tuple[PurePosixPath, ...]:
    return tuple(
        PurePosixPath(p["alone"]) if p["alone"] else PurePosixPath(p["folder"] or "", p["name"] or "")
        for p in _PATH.finditer(arguments)
    )
