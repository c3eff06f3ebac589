"""What was not run is said, with the reason: a suite that is skipped in silence looks like one that passes."""

import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import pytest_terminal_summary

E2E = Path(__file__).parents[1] / "cluster" / "e2e"


class Terminal:
    """Keeps what it is told."""

    def __init__(self, *skipped: tuple[str, Any]) -> None:
        self.stats = {"skipped": [SimpleNamespace(nodeid=n, longrepr=why) for n, why in skipped]}
        self.said: list[str] = []
        self.section = self.line = self.said.append


def test_skipped_tests_are_told_by_folder_and_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the terminal, and in the file that another run goes on with."""
    into = tmp_path / "not-run"
    monkeypatch.setenv("STREAMJOIN_NOT_RUN", str(into))
    terminal = Terminal(
        ("tests/kafka/test_a.py::test_x", ("a.py", 1, "Skipped: no Java")),
        ("tests/kafka/test_b.py::test_y", ("b.py", 9, "Skipped: no Java")),
        ("tests/spark/test_c.py", "a whole\n  file"),
    )
    for _ in range(2):
        pytest_terminal_summary(terminal)  # type: ignore[arg-type]
    lines = ["tests/kafka: 2: no Java", "tests/spark: 1: a whole file"]
    assert terminal.said == 2 * ["not run", *lines]
    assert into.read_text().splitlines() == 2 * lines


def test_a_cluster_that_cannot_be_is_told(tmp_path: Path) -> None:
    """Where neither Go nor kind is to be had, the suite ends well, and says that it did nothing."""
    bin, into = tmp_path / "bin", tmp_path / "not-run"
    bin.mkdir()
    for tool in ("bash", "dirname"):
        (bin / tool).symlink_to(str(shutil.which(tool)))
    environment = {**os.environ, "PATH": str(bin), "STREAMJOIN_NOT_RUN": str(into), "KUBECONFIG": ""}
    done = subprocess.run([str(bin / "bash"), str(E2E), "false"], env=environment, check=False)
    assert done.returncode == 0
    assert into.read_text().startswith("tests/cluster: all: a cluster is built by Go, or by kind and Docker")
