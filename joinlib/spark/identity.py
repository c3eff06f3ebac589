"""Does this checkpoint belong to this spec? What it depends on is written beside it when it is made."""

import json
import uuid
from pathlib import Path
from typing import Any

from joinlib.errors import SpecError, StateError
from joinlib.files import sync, whole
from joinlib.join.stage import Pipeline
from joinlib.plan import compare, fingerprint

_FILE = "streamjoin.json"


def identify(checkpoint: Path, name: str, pipeline: Pipeline, synced: bool = False) -> str:
    """The checkpoint's id, made if it is new. Refuses a spec whose change the stored state cannot follow."""
    file = checkpoint / _FILE
    now = json.loads(json.dumps(fingerprint(pipeline)))
    if not file.exists():
        if (checkpoint / "spark").exists():
            raise StateError(
                f"checkpoint {checkpoint}: {_FILE} is missing; restore it or start with a new checkpoint folder"
            )
        identity = str(uuid.uuid4())
        _write(file, {"id": identity, "name": name, "plan": now}, synced)
        if synced:
            sync([checkpoint.parent])
        return identity
    known = _known(file)
    if changes := compare(known["plan"], now):
        what = "\n".join(f"  - {c}" for c in changes)
        raise SpecError(
            f"checkpoint {checkpoint} was made by job {known['name']!r}, and its state cannot follow what has changed since:\n"
            f"{what}\nUndo the change, or set checkpoint.path (and the output's path) to a new folder to start afresh."
        )
    _write(file, {**known, "plan": now}, synced)
    return known["id"]


def _known(file: Path) -> dict[str, Any]:
    try:
        known = json.loads(file.read_text())
        return {"id": str(known["id"]), "name": str(known["name"]), "plan": dict(known["plan"])}
    except (ValueError, TypeError, KeyError) as e:
        raise StateError(
            f"checkpoint {file.parent}: {_FILE} is damaged; restore it or start with a new checkpoint folder"
        ) from e


def _write(file: Path, content: dict[str, object], synced: bool) -> None:
    with whole(file, hidden=True, synced=synced) as aside:
        aside.write_text(json.dumps(content, indent=1))
