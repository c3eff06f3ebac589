"""The class archive: made once, used by whoever comes later, and what is in it."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from joinlib.spark import archive, jar


@pytest.mark.parametrize("there", [True, False])
def test_it_is_used_once_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    """Else it is made later, by a process of its own."""
    path, begun = tmp_path / "one.jsa", list[list[str]]()
    monkeypatch.setattr(archive, "archive", lambda: path)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: begun.append(command))
    if there:
        path.touch()
    assert archive.options()[:1] == [f"-XX:SharedArchiveFile={path}"] * there
    archive.make_later()
    assert [command[-2:] for command in begun] == [["joinlib.spark.archive", "--quiet"]] * (not there)


def test_one_process_at_a_time_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes while it is being made goes on without; who comes when that one has died makes it."""
    path, ran = tmp_path / "one.jsa", list[Path]()
    monkeypatch.setattr(archive, "archive", lambda: path)

    def run(_: Path, target: Path) -> None:
        ran.append(target)
        archive.make()  # as another process
        target.write_bytes(b"classes")

    monkeypatch.setattr(archive, "_run", run)
    (tmp_path / "one.new").write_bytes(b"cut off")
    archive.make()
    archive.make()
    assert (len(ran), path.read_bytes()) == (1, b"classes")


@pytest.mark.parametrize("signed", [True, False])
def test_signatures_are_left_out(tmp_path: Path, signed: bool) -> None:
    """All else is there; a jar that has none need not be copied."""
    source, target = tmp_path / "a.jar", tmp_path / "b.jar"
    with zipfile.ZipFile(source, "w") as made:
        made.writestr("META-INF/MANIFEST.MF", "of the jar")
        made.writestr("a/B.class", "bytes")
        if signed:
            made.writestr("META-INF/ONE.SF", "signed")
            made.writestr("META-INF/ONE.DSA", "signature")
    assert jar.unsigned(source, target) == signed
    assert target.exists() == signed
    if signed:
        with zipfile.ZipFile(target) as copy:
            assert copy.namelist() == ["META-INF/MANIFEST.MF", "a/B.class"]
            assert copy.read("a/B.class") == b"bytes"
