"""The class archive: made once, used by whoever comes later, and what is in it."""

import os
import subprocess
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from joinlib.spark import train
from joinlib.spark.boot import archive, jar


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the archive is to lie."""
    path = tmp_path / "one.jsa"
    monkeypatch.setattr(archive, "archive", lambda: path)
    return path


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that are run by processes of their own."""
    begun: list[str] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: begun.append(command[-1]))
    return begun


@pytest.mark.parametrize("there", [True, False])
def test_it_is_used_once_it_is_there(path: Path, begun: list[str], there: bool) -> None:
    """Else it is made later, by a process of its own."""
    if there:
        path.touch()
    assert archive.options()[:1] == [f"-XX:SharedArchiveFile={path}"] * there
    archive.make_later()
    assert begun == [archive.MAKER] * (not there)


def test_one_process_at_a_time_makes_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes while it is being made goes on without; who comes when that one has died makes it."""
    ran = list[Path]()

    def run(_: Path, target: Path) -> None:
        ran.append(target)
        train.make()  # as another process
        target.write_bytes(b"classes")

    monkeypatch.setattr(train, "_run", run)
    path.with_suffix(".new").write_bytes(b"cut off")
    train.make()
    train.make()
    assert (len(ran), path.read_bytes()) == (1, b"classes")


def writes_none(_: Path, __: Path) -> None:
    """A JVM that cannot make archives."""


def ends_badly(_: Path, target: Path) -> None:
    """A JVM that dies while it writes."""
    target.write_bytes(b"half")
    raise ChildProcessError("Java ended with 137")


@pytest.mark.parametrize("run", [writes_none, ends_badly])
def test_where_it_cannot_be_made_no_run_tries_again(
    path: Path, begun: list[str], monkeypatch: pytest.MonkeyPatch, run: Callable[[Path, Path], None]
) -> None:
    """And what an earlier one has left is not taken for it. Who asks for it by name tries again."""
    path.with_suffix(".new").write_bytes(b"cut off")
    monkeypatch.setattr(train, "_run", run)
    with pytest.raises((FileNotFoundError, ChildProcessError)):
        train.make()
    archive.make_later()
    assert (path.exists(), begun) == (False, [])

    monkeypatch.setattr(train, "_run", lambda _, target: target.write_bytes(b"classes"))
    train.make()
    path.unlink()
    archive.make_later()
    assert begun == [archive.MAKER]


def test_others_go_when_nobody_uses_them(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a month: each version of PySpark, Java or this package has had its own."""
    monkeypatch.setattr(train, "_run", lambda _, target: target.write_bytes(b"classes"))
    for name, days in (("used", 29), ("unused", 31)):
        (other := path.with_stem(name)).touch()
        os.utime(other, (time.time() - days * 86_400,) * 2)
    train.make()
    assert {p.stem for p in path.parent.glob("*.jsa")} == {"one", "used"}


SERVICE = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"


@pytest.mark.parametrize("slow", [("META-INF/ONE.SF", "META-INF/ONE.DSA"), (SERVICE,), ()])
def test_what_slows_a_start_is_left_out(tmp_path: Path, slow: tuple[str, ...]) -> None:
    """All else is there; a jar that has nothing of it need not be copied."""
    source, target = tmp_path / "a.jar", tmp_path / "b.jar"
    with zipfile.ZipFile(source, "w") as made:
        made.writestr("META-INF/MANIFEST.MF", "of the jar")
        made.writestr("a/B.class", "bytes")
        for name in slow:
            made.writestr(name, "slow")
    assert jar.trimmed(source, target) == target.exists() == bool(slow)
    if slow:
        with zipfile.ZipFile(target) as copy:
            assert copy.namelist() == ["META-INF/MANIFEST.MF", "a/B.class"]
            assert copy.read("a/B.class") == b"bytes"
