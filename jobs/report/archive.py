"""Writes texts by name as a zip file that only its owner may read."""

import os
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from joinlib.errors import SpecError, StreamJoinError


def write(texts: Mapping[str, str], job: str, file: Path | None) -> Path:
    """Write an archive of a job; return its file, by default JOB-report-TIME.zip in this folder.

    Raises:
        SpecError: The file is there already, or cannot be written.
    """
    file = file or Path(f"{job}-report-{datetime.now(UTC):%Y%m%d-%H%M%S}.zip")
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise SpecError(f"{file}: {error.strerror}; name another file with --output") from error
    with os.fdopen(descriptor, "wb") as opened, zipfile.ZipFile(opened, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(f"{file.stem}/{name}", text)
    return file


def tried(part: Callable[[], str]) -> str:
    """Return a part of a report, or why there is none: what is broken must not stop the report of it."""
    try:
        return part()
    except StreamJoinError as error:
        return f"could not be told: {error}\n"
    except Exception as error:  # noqa: BLE001 - its message may quote anything
        return f"could not be told: {type(error).__name__}\n"
