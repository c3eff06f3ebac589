"""The class archive: made by whoever comes first, used by whoever comes later, never half."""

import zipfile
from pathlib import Path

import pytest

from joinlib.spark import archive, jar


@pytest.mark.parametrize(
    ("written", "use"),
    [
        (None, "ArchiveClassesAtExit"),
        (b"", "ArchiveClassesAtExit"),
        (bytes(4096), "ArchiveClassesAtExit"),
        (b"\xa8\xab\x0b\xf0", "SharedArchiveFile"),
    ],
    ids=["none", "begun", "cut off", "whole"],
)
def test_one_that_is_not_whole_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: bytes | None, use: str
) -> None:
    """The JVM writes the header last."""
    path = tmp_path / "classes" / "one.jsa"
    monkeypatch.setattr(archive, "archive", lambda: path)
    if written is not None:
        path.parent.mkdir()
        path.write_bytes(written)
    assert archive.options()[0] == f"-XX:{use}={path}"
    assert path.parent.is_dir()


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
