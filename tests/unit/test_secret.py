"""Files with secrets: read as they are, but for those that a pod has from its cluster."""

from pathlib import Path

import pytest

from joinlib import secret
from joinlib.errors import SpecError

OWN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def test_one_line(tmp_path: Path) -> None:
    """The line's end is no part of it; all else is."""
    (tmp_path / "password").write_text(" pass word \n")
    assert secret.read(tmp_path / "password", "here") == " pass word "


def test_what_cannot_be_read(tmp_path: Path) -> None:
    """Field and reason, and not the path: it may be the secret, written in place of its file."""
    with pytest.raises(SpecError, match=r"^here: the file cannot be read: No such file"):
        secret.read(tmp_path / "none", "here")


def test_the_pods_own_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused by whatever name it is called: a volume may hold a link to it."""
    own = tmp_path / "kubernetes.io"
    own.mkdir()
    (own / "token").write_text("the driver's")
    (tmp_path / "link").symlink_to(own / "token")
    (tmp_path / "near").symlink_to(own)
    assert OWN.parents[1] in secret._OWN
    monkeypatch.setattr(secret, "_OWN", (tmp_path / "near",))
    for path in (own / "token", tmp_path / "near" / "token", tmp_path / "link"):
        with pytest.raises(SpecError, match=r"here: is the pod's own token") as refused:
            secret.read(path, "here")
        assert "the driver's" not in str(refused.value)
