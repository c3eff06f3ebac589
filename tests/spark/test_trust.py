"""Who gets in, and what can be heard, where executors are processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
OPEN = {"spark.authenticate": "false", "spark.network.crypto.enabled": "false"}


def strangers(folder: Path, conf: dict[str, str]) -> dict[str, Any]:
    """What `tests.spark.strangers` found."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.strangers", folder, json.dumps(conf)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if found["heard"] is None:
        pytest.skip("the wire cannot be listened to: that needs CAP_NET_RAW")
    return found


def test_nobody_gets_in_or_hears(tmp_path: Path) -> None:
    """Only an executor that knows the secret joins; what passes is encrypted; no program was told the secret aloud."""
    assert strangers(tmp_path, {}) == {"in": ["0", "1", "98"], "told": [], "heard": False}


def test_anybody_would(tmp_path: Path) -> None:
    """The same stranger and the same listener, where Spark is as it comes: so the test above can fail."""
    found = strangers(tmp_path, OPEN)
    assert ("99" in found["in"], found["heard"]) == (True, True)
