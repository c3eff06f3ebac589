"""The reference is that of the code: who changes the code runs docs/build."""

import subprocess
import sys

from tests.docs.pages import ROOT


def test_the_reference_is_up_to_date() -> None:
    """What docs/build writes is what is there."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "build"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
