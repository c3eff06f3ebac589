"""What the tests of a cluster do with a kubectl that hangs."""

from pathlib import Path

import pytest

from tests.cluster.kube import Kube

_HANGS = """#!/bin/sh
case "$*" in
*wide*) exec sleep 600 ;;
*) echo '{"items": []}' ;;
esac
"""


@pytest.fixture
def kube(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kube:
    """Its kubectl hangs when it is asked for a wide table, and knows of nothing otherwise."""
    (tmp_path / "kubectl").write_text(_HANGS)
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return Kube("space")


@pytest.mark.slow
def test_no_answer_in_time_means_not_yet(kube: Kube) -> None:
    """It is asked again."""
    asked = iter([("wide", 0.5), ("name", 600)])

    def get() -> str:
        form, patience = next(asked)
        return kube.run("get", "pods", "-o", form, timeout=patience)

    assert kube.until("it answers", get)


@pytest.mark.slow
def test_a_picture_says_what_it_could_not_see(kube: Kube, monkeypatch: pytest.MonkeyPatch) -> None:
    """And shows what comes after that."""
    run = Kube.run
    monkeypatch.setattr(Kube, "run", lambda *a, **kw: run(*a, **kw | {"timeout": 3 if "wide" in a else 600}))

    picture = kube.picture()

    assert "timed out after 3 seconds" in picture
    assert picture.endswith('{"items": []}\n')
