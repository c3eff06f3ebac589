"""Admission: can this document be run?

The answer lists everything that is wrong, each with its field and the fix.

Validation plans the query and needs no Spark. It takes a few milliseconds for a new document; verdicts on
recent ones are kept. It runs in a process of its own, since a document decides how long it takes: constants of the
query are computed, and whoever may write one of one namespace must not stop the jobs of all.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from joinlib import deploy
from joinlib.errors import SpecError, SqlError, StreamJoinError
from joinlib.model.fingerprint import as_json
from joinlib.plan import pipeline_of
from joinlib.plan.explain import explain
from joinlib.plan.follow import following, in_cells
from joinlib.spec import StreamJoin, parse
from joinlib.spec.base import is_from_registry
from joinlib.spec.model import Batch, Driver, Executors, JoinSettings, Scaling
from joinop import volumes
from joinop.config import Config
from joinop.confined import Confined, ConfinedProcess
from joinop.flatten import LIVE, flatten
from joinop.memoize import memoized
from joinop.names import Object

_SECONDS, _MEMORY = 10, 256 << 20  # for one document: thousands of times of what most take
_PLAN_MAX = 16_000  # characters in the status
_SECTIONS = {
    "join": JoinSettings(),
    "batch": Batch(),
    "driver": Driver(),
    "executors": Executors(),
    "scaling": Scaling(),
}
_DEFAULTS = flatten(
    {name: section.model_dump(mode="json", by_alias=True) for name, section in _SECTIONS.items()}
)


@dataclass(frozen=True)
class Admitted:
    """A document that can be run."""

    document: Object
    model: StreamJoin
    plan: str
    fingerprint: dict[str, Any]  # what a checkpoint depends on
    config_hash: str  # what a running driver cannot take over
    fields: dict[str, Any] = field(repr=False)  # values that are not defaults, by field

    @property
    def folder(self) -> str:
        """Folder of its checkpoint."""
        return str(self.model.spec.checkpoint.folder)


@dataclass(frozen=True)
class Pinned:
    """The checkpoint that a driver of the job has worked on."""

    folder: str
    fingerprint: dict[str, Any]


@dataclass(frozen=True)
class Rejected:
    """A document that cannot be run."""

    problems: tuple[str, ...]


def document(obj: Object) -> Object:
    """Return a StreamJoin as the driver loads it, without what Kubernetes adds."""
    metadata = {name: obj["metadata"][name] for name in ("name", "namespace")}
    return {
        "apiVersion": deploy.API_VERSION,
        "kind": deploy.KIND,
        "metadata": metadata,
        "spec": obj.get("spec", {}),
    }


def pinned(obj: Object) -> Pinned | None:
    """Return the checkpoint that a driver of a StreamJoin has worked on."""
    found = (obj.get("status") or {}).get("checkpoint") or {}
    try:
        return Pinned(found["folder"], json.loads(found["fingerprint"]))
    except (KeyError, TypeError, ValueError):
        return None


def verdict_of(obj: Object) -> Admitted | Rejected:
    """Return the verdict on a StreamJoin as it is now, which goes on from its checkpoint."""
    return validate(document(obj), pinned(obj))


def permitted(verdict: Admitted | Rejected, config: Config) -> Admitted | Rejected:
    """Reject what the allow lists of this cluster do not permit."""
    if isinstance(verdict, Rejected):
        return verdict
    problems = tuple(config.allow.problems(verdict.model.spec, config.image))
    return Rejected(problems) if problems else verdict


def _asked(model: StreamJoin) -> Iterator[str]:
    """Refuse columns that only a registry knows, which the operator never asks."""
    for name, given in model.spec.inputs.items():
        if is_from_registry(given.arrow_schema):
            yield (
                f"spec.inputs.{name}.schema: fromRegistry is for a run on one machine; write the columns, which"
                " `streamjoin validate` shows"
            )


def validate(given: Object, pinned: Pinned | None = None) -> Admitted | Rejected:
    """Return the verdict on a document. A document that breaks the planner is rejected, too.

    pinned: the checkpoint that it would go on from, if it names that folder.
    """
    try:
        return _validate(question(given, pinned))
    except RecursionError:
        return Rejected(("spec: it is nested too deeply; no field needs that",))


def question(given: Object, pinned: Pinned | None = None) -> str:
    """Return what `judged` is asked of a document, and of the checkpoint that it would go on from.

    Raises:
        RecursionError: It is nested too deeply.
    """
    # The plan as text, since its columns keep their order.
    known = pinned and {"folder": pinned.folder, "plan": json.dumps(pinned.fingerprint)}
    return json.dumps({"document": given, "pinned": known}, sort_keys=True, ensure_ascii=False)


@memoized(2)  # the document as it is now, and the one that was accepted last
def _validate(text: str) -> Admitted | Rejected:
    return _confined(text) or Rejected(
        (
            f"spec: to check it takes more than {_SECONDS} s, or {_MEMORY >> 20} MiB; simplify its query and its constants",
        )
    )


def judged(text: str) -> Admitted | Rejected:
    """Return the verdict on a document with its checkpoint, as JSON. Never raises."""
    try:
        return _judged(text)
    except Exception as error:  # noqa: BLE001 - one document must not stop the operator
        return Rejected((f"spec: it cannot be checked ({type(error).__name__}); simplify it",))


PROCESS = ConfinedProcess()  # where documents are looked at
_confined = Confined(judged, _SECONDS, _MEMORY, PROCESS)


def _judged(text: str) -> Admitted | Rejected:
    asked = json.loads(text)
    given, known = asked["document"], asked["pinned"]
    if problems := (*_relative(given), *_elsewhere(given)):
        return Rejected(problems)
    try:
        model = parse(json.dumps(given), "spec", Path("/"))  # JSON is YAML
    except SpecError as error:
        return Rejected(tuple(line.removeprefix("spec:1: ") for line in str(error).splitlines()))
    if model.spec.outputs:
        return Rejected(
            (
                "spec.outputs: they are for a run on one machine; write a StreamJoin for each, with sql and output",
            )
        )
    if problems := tuple(_asked(model)):
        return Rejected(problems)
    try:
        # A checkpoint keeps the order of its stages, so a statement about rows changes nothing that it depends on.
        same = known is not None and known["folder"] == str(model.spec.checkpoint.folder)
        begun = json.loads(known["plan"]) if same else None
        ordered, stored = following(begun, partial(pipeline_of, model, ()))
        plan = explain(pipeline_of(model, cells=in_cells(begun), stored=stored))
    except StreamJoinError as error:
        return Rejected((*volumes.problems(model.spec), _planned(error)))
    except Exception as error:  # noqa: BLE001  one document must not stop the operator
        return Rejected(
            (f"spec.sql: the planner cannot handle it ({type(error).__name__}); simplify the query",)
        )
    if problems := (*_name(given), *volumes.problems(model.spec)):
        return Rejected(problems)
    explicit = _explicit_values(model)
    return Admitted(given, model, plan[:_PLAN_MAX], as_json(ordered), _hash(explicit), explicit)


def _explicit_values(model: StreamJoin) -> dict[str, Any]:
    """Return the values that differ from the defaults, whether those were written out or not."""
    found = flatten(model.model_dump(mode="json", by_alias=True, exclude_defaults=True)["spec"])
    return {
        place: value for place, value in found.items() if place not in _DEFAULTS or _DEFAULTS[place] != value
    }


def _hash(explicit: dict[str, Any]) -> str:
    """Hash what needs a restart. Defaults are left out, so a version with more fields restarts nothing."""
    lasting = {place: value for place, value in explicit.items() if not LIVE.match(place)}
    return hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()[:16]


def _planned(error: StreamJoinError) -> str:
    return f"spec.sql: {error}" if isinstance(error, SqlError) else f"spec: {error}"


def _name(given: Object) -> Iterator[str]:
    name = given["metadata"]["name"]
    if len(name) > deploy.NAME_MAX:
        yield f"metadata.name: {name!r} is longer than {deploy.NAME_MAX} characters; shorten it"


def _relative(given: Object) -> Iterator[str]:
    """Relative paths: the reader of the spec would make them absolute, but a pod has no folder to start
    from.
    """
    for place, path in _paths(given.get("spec")):
        if isinstance(path, str) and path and "://" not in path and not path.startswith("/"):
            yield (
                f"spec.{place}: {path!r} is relative; in a cluster write an absolute path under the"
                " mountPath of a volume"
            )


def _elsewhere(given: Object) -> Iterator[str]:
    """Folders of functions, as they were written: below one, a listed name could be any file of a volume."""
    functions = _get(given, "spec", "functions")
    for name in functions if isinstance(functions, dict) else ():
        if _get(functions[name], "path") is not None:
            yield f"spec.functions.{name}.path: modules of a job are those of its image; leave path out"


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
