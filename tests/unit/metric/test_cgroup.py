"""ContainerMemory of a container, as both versions of control groups say it."""

from pathlib import Path

import pytest

from joinlib.metric.cgroup import ContainerMemory, memory

V1 = {
    "memory/memory.usage_in_bytes": "1000\n",
    "memory/memory.limit_in_bytes": "4096\n",
    "memory/memory.stat": "cache 5\ninactive_file 1\ntotal_inactive_file 300\n",
}
V2 = {"memory.current": "1000\n", "memory.max": "4096\n", "memory.stat": "anon 5\ninactive_file 300\n"}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize("files", [V1, V2], ids=["v1", "v2"])
def test_working_set_and_limit(tmp_path: Path, files: dict[str, str]) -> None:
    """What is used less what can be dropped; the limit as it stands."""
    assert memory(write(tmp_path, files)) == ContainerMemory(700, 4096)


@pytest.mark.parametrize(
    ("files", "active"), [(V1, "total_active_file"), (V2, "active_file")], ids=["v1", "v2"]
)
def test_room(tmp_path: Path, files: dict[str, str], active: str) -> None:
    """Files that were read, once or again, are no reason to kill anybody."""
    assert memory(write(tmp_path, files)).room == 3396
    stat = next(name for name in files if name.endswith("memory.stat"))
    found = memory(write(tmp_path, {stat: files[stat] + f"{active} 500\n"}))
    assert (found.working_set, found.room) == (700, 3896)


@pytest.mark.parametrize(
    "files",
    [V1 | {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, V2 | {"memory.max": "max\n"}],
    ids=["v1", "v2"],
)
def test_no_limit(tmp_path: Path, files: dict[str, str]) -> None:
    """Is not a number: no load can be made of it."""
    assert memory(write(tmp_path, files)) == ContainerMemory(700, None)
    assert memory(tmp_path).room is None


def test_nothing_is_known_where_there_is_no_control_group(tmp_path: Path) -> None:
    """A figure that is missing is not zero."""
    assert memory(tmp_path) == ContainerMemory(None, None)
    assert memory(write(tmp_path, {"memory.current": "nonsense"})) == ContainerMemory(None, None)
