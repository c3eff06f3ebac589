"""What the tests of a cluster do with a kubectl that hangs."""

from pathlib import Path

import pytest

from tests.cluster.kube import Kube

_ONCE = """#!/bin/sh
[ -e "$0.asked" ] && exec echo '{"items": []}'
touch "$0.asked"
exec sleep 60
"""


@pytest.fixture
def kube(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kube:
    """Its kubectl hangs when it is first asked, and knows of nothing from then on."""
    (tmp_path / "kubectl").write_text(_ONCE)
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return Kube("space")


def test_no_answer_in_time_means_not_yet(kube: Kube) -> None:
    """It is asked again."""
    assert kube.until("it answers", lambda: kube.run("get", "pods", timeout=3))


def test_a_picture_says_what_it_could_not_see(kube: Kube, monkeypatch: pytest.MonkeyPatch) -> None:
    """And shows what comes after that."""
    run = Kube.run
    monkeypatch.setattr(Kube, "run", lambda *a, **kw: run(*a, **kw | {"timeout": 3}))

    picture = kube.picture()

    assert "timed out after 3 seconds" in picture
    assert picture.endswith('{"items": []}\n')
