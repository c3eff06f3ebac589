"""The identity of a checkpoint: whose state it holds, and in which formats.

    streamjoin.json     {"v": 2, "id", "name", "by": release, "formats": {name: version}, "plan": fingerprint,
                         "orders": in which order inputs became stages, or by which paths they are joined,
                         "forked": of a fork, {"id", "name", "batch", "inputs", "ends"} of the other checkpoint, as it left it}

A run is refused if the checkpoint belongs to another spec, or if this version of StreamJoin cannot read it. The
orders were chosen by figures that change, such as the sizes of files, so later runs take them from here.
"""

import json
import uuid
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from joinlib import formats
from joinlib.errors import SpecError, StateError
from joinlib.files import sync, whole
from joinlib.model.fingerprint import as_json, compare, fingerprint, in_units
from joinlib.model.order import Shape, kept_of
from joinlib.model.pathorder import PathOrder
from joinlib.model.stage import Pipeline

_FILE = "streamjoin.json"
Raw = dict[str, Any]


def identify(checkpoint: Path, name: str, pipeline: Pipeline, synced: bool = False) -> str:
    """Return the checkpoint's id, making one if it is new.

    Raises:
        SpecError: The spec has changed in a way that the stored state cannot follow.
        StateError: The file is missing or damaged, or of a version that cannot be read.
    """
    file = checkpoint / _FILE
    if not file.exists():
        if (checkpoint / "spark").exists():
            raise StateError(
                f"checkpoint {checkpoint}: {_FILE} is missing; restore it or start with a new checkpoint"
                " folder"
            )
        identity = str(uuid.uuid4())
        _write(file, {"id": identity, "name": name}, pipeline, synced)
        if synced:
            sync([checkpoint.parent])
        return identity
    known = _known(file)
    if changes := _changes(known, pipeline):
        what = "\n".join(f"  - {c}" for c in changes)
        raise SpecError(
            f"checkpoint {checkpoint} was made by job {known['name']!r}, and its state cannot follow what"
            f" has changed since:\n{what}\nUndo the change, or set checkpoint.path (and the output's path)"
            " to a new folder to start afresh."
        )
    _write(file, known, pipeline, synced)
    return str(known["id"])


def refusals(checkpoint: Path, pipeline: Pipeline) -> list[str]:
    """Return why the state of a checkpoint cannot serve a plan, a sentence for each reason; [] if it can.

    Raises:
        StateError: The checkpoint has no identity that can be read.
    """
    return _changes(_known(checkpoint / _FILE), pipeline)


def begun(checkpoint: Path) -> bool:
    """Return whether a job has begun this checkpoint."""
    return (checkpoint / _FILE).exists()


def identity_of(checkpoint: Path) -> str:
    """Return the id of a checkpoint that was begun.

    Raises:
        StateError: It cannot be read.
    """
    return str(_known(checkpoint / _FILE)["id"])


def owner_id(identity: str, output: str) -> str:
    """Return the id by which an output knows its checkpoint: of several outputs, each has its own."""
    return str(uuid.uuid5(uuid.UUID(identity), output)) if output else identity


def name_of(checkpoint: Path) -> str:
    """Return the name of the job that began a checkpoint.

    Raises:
        StateError: It cannot be read.
    """
    return str(_known(checkpoint / _FILE)["name"])


def units_of(checkpoint: Path) -> int:
    """Return in how many units the state of each stage is.

    Raises:
        StateError: It cannot be read.
    """
    return int(_known(checkpoint / _FILE)["plan"]["units"])


def set_units(checkpoint: Path, units: int, synced: bool) -> None:
    """Note that the state is the same in so many units.

    Raises:
        StateError: The file cannot be read.
    """
    file = checkpoint / _FILE
    known = _known(file)
    with whole(file, hidden=True, synced=synced) as aside:
        aside.write_text(json.dumps({**known, "plan": in_units(known["plan"], units)}, indent=1))


def inherit(checkpoint: Path, name: str, pipeline: Pipeline, origin: Raw, synced: bool) -> None:
    """Write the identity of a checkpoint that begins with the state of another one, which `origin` tells."""
    known = {"id": str(uuid.uuid4()), "name": name, "forked": origin}
    _write(checkpoint / _FILE, known, pipeline, synced)


def origin_of(checkpoint: Path) -> Raw | None:
    """Return from where a checkpoint was forked; None if it was not.

    It is `id` and `name` of the other one, `batch`, its `inputs`, and where its outputs `ends`.

    Raises:
        StateError: It cannot be read.
    """
    return _known(checkpoint / _FILE).get("forked")


def orders_of(checkpoint: Path) -> tuple[Shape | PathOrder, ...] | None:
    """Return what was decided when the checkpoint began; None if there is no checkpoint yet.

    Of a file that cannot be read it is nothing: `identify` refuses such a checkpoint.
    """
    file = checkpoint / _FILE
    try:
        return tuple(map(kept_of, json.loads(file.read_text()).get("orders", ()))) if file.exists() else None
    except (ValueError, TypeError, AttributeError, KeyError):
        return ()


def plan_in(checkpoint: Path) -> Raw | None:
    """Return the fingerprint of the plan that a checkpoint was begun with.

    None: there is none, or it cannot be read; `identify` refuses such a checkpoint.
    """
    file = checkpoint / _FILE
    try:
        return dict(json.loads(file.read_text())["plan"]) if file.exists() else None
    except (ValueError, TypeError, KeyError):
        return None


def _changes(known: Raw, pipeline: Pipeline) -> list[str]:
    return compare(known["plan"], as_json(pipeline))


def _known(file: Path) -> Raw:
    """Return what the file says, as this version would have written it."""
    try:
        raw = dict(json.loads(file.read_text()))
        place = f"checkpoint {file.parent} (of StreamJoin {raw.get('by', 'before 0.1')})"
        formats.IDENTITY.check(found := raw.get("v", 1), place)
        known = READERS[found](raw)
        formats.check(known["formats"], place)
        return {**known, "id": str(raw["id"]), "name": str(raw["name"]), "plan": dict(raw["plan"])}
    except (ValueError, TypeError, KeyError) as e:
        raise StateError(
            f"checkpoint {file.parent}: {_FILE} is damaged; restore it or start with a new checkpoint folder"
        ) from e


READERS: dict[int, Callable[[Raw], Raw]] = {1: lambda raw: {**raw, "formats": formats.FIRST}, 2: dict}


def _write(file: Path, known: Raw, pipeline: Pipeline, synced: bool) -> None:
    said = {
        "v": formats.IDENTITY.writes,
        "by": _release(),
        "formats": formats.written(),
        "plan": fingerprint(pipeline),
        "orders": [order.kept for order in pipeline.orders],
    }
    with whole(file, hidden=True, synced=synced) as aside:
        aside.write_text(json.dumps({**known, **said}, indent=1))


def _release() -> str:
    try:
        return version("streamjoin")
    except PackageNotFoundError:  # run from a checkout
        return "unreleased"
