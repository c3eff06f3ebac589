"""Where a task's files lie."""

from pathlib import Path

import pytest

from joinlib.state.location import local_folder


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMJOIN_LOCAL_DIR", str(tmp_path))


def test_folders_of_indexes_are_apart() -> None:
    """Two checkpoints never share one, however alike they are called; a person sees whose it is."""
    one, two = local_folder(Path("/data/a-b/c")), local_folder(Path("/data/a/b-c"))
    assert one != two
    assert one.name.endswith("-data-a-b-c")
    assert local_folder(Path("/data/./a-b/c")) == one


def test_a_long_path_has_a_folder() -> None:
    """A name may have 255 bytes, a path thousands; characters may have four bytes each."""
    path = Path("/" + "/".join(["𝔭" * 60] * 8))
    local_folder(path).mkdir()
    assert local_folder(path).is_dir()
    assert local_folder(path) != local_folder(path.parent / "other")
