"""Indexes on this machine lie where only their user writes."""

import os
import stat
from pathlib import Path

import pytest

from joinlib.deploy import Variable
from joinlib.errors import StateError
from joinlib.state.location import local_folder


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the folder of this user is to be."""
    monkeypatch.setenv(Variable.LOCAL_DIR, str(tmp_path / "local"))
    (tmp_path / "local").mkdir()
    return tmp_path / "local" / f"streamjoin-{os.getuid()}"


def test_it_is_private(root: Path, tmp_path: Path) -> None:
    """Also if it is there already."""
    assert local_folder(tmp_path / "first").parent == root
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert local_folder(tmp_path / "second").parent == root


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777, 0o702])
def test_others_may_not_write(root: Path, tmp_path: Path, mode: int) -> None:
    root.mkdir()
    root.chmod(mode)
    with pytest.raises(StateError, match="may be written by others; remove it, or set STREAMJOIN_LOCAL_DIR"):
        local_folder(tmp_path / "state")


def test_a_link_is_no_folder(root: Path, tmp_path: Path) -> None:
    """Whether it leads to a folder or nowhere."""
    root.symlink_to(tmp_path)
    with pytest.raises(StateError, match="is no folder"):
        local_folder(tmp_path / "state")
    root.unlink()
    root.symlink_to(tmp_path / "nowhere")
    with pytest.raises(StateError, match="is no folder"):
        local_folder(tmp_path / "state")


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a folder away")
def test_another_users_folder(root: Path, tmp_path: Path) -> None:
    root.mkdir()
    os.chown(root, 12345, 12345)
    with pytest.raises(StateError, match="belongs to another user"):
        local_folder(tmp_path / "state")
