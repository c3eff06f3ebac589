"""Can this document be run? Found without Spark, in milliseconds: everything that is wrong, each with its field and the fix.

Cost: a few milliseconds for each new document; the verdicts on the last ones are kept.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from joinlib.errors import SpecError, SqlError, StreamJoinError
from joinlib.plan import explain, fingerprint, pipeline_of
from joinlib.spec import StreamJoin, parse
from joinlib.spec.model import Batch, Driver, Executors, Join, Scaling
from joinop import names, places
from joinop.kept import kept
from joinop.leaves import LIVE, leaves
from joinop.names import Object

_PLAN_MAX = 16_000  # characters in the status
_SECTIONS = {
    "join": Join(),
    "batch": Batch(),
    "driver": Driver(),
    "executors": Executors(),
    "scaling": Scaling(),
}
_DEFAULTS = leaves(
    {name: section.model_dump(mode="json", by_alias=True) for name, section in _SECTIONS.items()}
)


@dataclass(frozen=True)
class Accepted:
    """A document that can be run."""

    document: Object
    model: StreamJoin
    plan: str
    fingerprint: dict[str, Any]  # what a checkpoint depends on
    config_hash: str  # what a running driver cannot take over
    leaves: dict[str, Any] = field(repr=False)  # what it says beside defaults, by field

    @property
    def folder(self) -> str:
        """Where its checkpoint lies."""
        return str(self.model.spec.checkpoint.folder)


@dataclass(frozen=True)
class Refused:
    """A document that cannot be run."""

    problems: tuple[str, ...]


def document(thing: Object) -> Object:
    """A StreamJoin as the driver loads it: without what Kubernetes adds."""
    metadata = {name: thing["metadata"][name] for name in ("name", "namespace")}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": metadata,
        "spec": thing.get("spec", {}),
    }


def judge(given: Object) -> Accepted | Refused:
    """The verdict. It never raises: a document that breaks the planner is refused as well."""
    return _judge(json.dumps(given, sort_keys=True, ensure_ascii=False))


@kept(2)  # of what is wanted, and of what was accepted last
def _judge(text: str) -> Accepted | Refused:
    given = json.loads(text)
    if problems := tuple(_relative(given)):
        return Refused(problems)
    try:
        model = parse(text, "spec", Path("/"))  # JSON is YAML
    except SpecError as error:
        return Refused(tuple(line.removeprefix("spec:1: ") for line in str(error).splitlines()))
    try:
        stages = pipeline_of(model)
        plan, marks = explain(stages), fingerprint(stages)
    except StreamJoinError as error:
        return Refused((*places.problems(model.spec), _planned(error)))
    except Exception as error:  # noqa: BLE001  one document must not stop the operator
        return Refused(
            (f"spec.sql: the planner cannot cope with it ({type(error).__name__}); simplify the query",)
        )
    if problems := (*_name(given), *places.problems(model.spec)):
        return Refused(problems)
    said = _said(model)
    return Accepted(given, model, plan[:_PLAN_MAX], json.loads(json.dumps(marks)), _hash(said), said)


def _said(model: StreamJoin) -> dict[str, Any]:
    """Only what is not a default, written out or not."""
    found = leaves(model.model_dump(mode="json", by_alias=True, exclude_defaults=True)["spec"])
    return {
        place: value for place, value in found.items() if place not in _DEFAULTS or _DEFAULTS[place] != value
    }


def _hash(said: dict[str, Any]) -> str:
    """Defaults are no part of it: a version that knows more fields restarts nothing."""
    lasting = {place: value for place, value in said.items() if not LIVE.match(place)}
    return hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()[:16]


def _planned(error: StreamJoinError) -> str:
    return f"spec.sql: {error}" if isinstance(error, SqlError) else f"spec: {error}"


def _name(given: Object) -> Iterator[str]:
    name = given["metadata"]["name"]
    if len(name) > names.NAME_MAX:
        yield f"metadata.name: {name!r} is longer than {names.NAME_MAX} characters; shorten it"


def _relative(given: Object) -> Iterator[str]:
    """The reader of the spec would make them absolute, and the cluster has no folder to start from."""
    for place, path in _paths(given.get("spec")):
        if isinstance(path, str) and path and "://" not in path and not path.startswith("/"):
            yield (
                f"spec.{place}: {path!r} is relative; in a cluster write an absolute path under the mountPath of a volume"
            )


def _paths(spec: Any) -> Iterator[tuple[str, Any]]:
    inputs = _get(spec, "inputs")
    for name in inputs if isinstance(inputs, dict) else ():
        yield f"inputs.{name}.files.path", _get(inputs[name], "files", "path")
    yield "output.files.path", _get(spec, "output", "files", "path")
    yield "checkpoint.path", _get(spec, "checkpoint", "path")


def _get(value: Any, *steps: str) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value
