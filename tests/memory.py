"""Tests that write small files by the thousand keep them in memory where there is room: no power is cut."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")
_LEAST = 1 << 30  # bytes that are free; a test takes some megabytes


@pytest.fixture(autouse=True, scope="package")
def in_memory() -> Iterator[None]:
    able = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _LEAST
    with pytest.MonkeyPatch.context() as patch:
        if able:
            patch.setattr(tempfile, "tempdir", str(_MEMORY))
        yield
