"""Admission: can this document be run?

The answer lists everything that is wrong, each with its field and the fix.

Validation plans the query and needs no Spark. It takes a few milliseconds for a new document; verdicts on
recent ones are kept. It runs in a process of its own, since a document decides how long it takes: constants of the
query are computed, and whoever may write one of one namespace must not stop the jobs of all.

Law: nothing that a document names is connected to. Columns that only a registry knows come from the driver, once it
has begun the checkpoint; until then the query cannot be planned here, and it is the driver that refuses it.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from joinlib import deploy
from joinlib.errors import SpecError, StreamJoinError
from joinlib.model.fingerprint import as_json
from joinlib.plan import pipeline_of
from joinlib.plan.explain import explain
from joinlib.plan.follow import following, in_cells
from joinlib.plan.spec import check_text
from joinlib.spec import StreamJoin, parse
from joinlib.spec.base import is_from_registry
from joinlib.spec.from_registry import RegistryColumns, checked, columns_of, fills_from_keys
from joinlib.spec.inputs import Input
from joinlib.spec.model import Batch, Driver, Executors, JoinSettings, Scaling
from joinlib.spec.telling import told
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
    model: StreamJoin  # as it is written: without columns that only a registry knows
    plan: str | None  # None: only the driver can plan it, for now
    fingerprint: dict[str, Any] | None  # what a checkpoint depends on; None likewise
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
    fingerprint: dict[str, Any] | None = None  # None: it is not known yet
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # those of a registry, by input


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
        fingerprint = json.loads(found["fingerprint"]) if "fingerprint" in found else None
        return Pinned(found["folder"], fingerprint, found.get("columns") or {})
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
    known = pinned and {
        "folder": pinned.folder,
        "plan": json.dumps(pinned.fingerprint),
        "columns": {name: dict(columns) for name, columns in pinned.columns.items()},
    }
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
    try:
        same = known is not None and known["folder"] == str(model.spec.checkpoint.folder)
        plan, fingerprint = _planned(model, known if same else {})
    except StreamJoinError as error:
        return Rejected((*volumes.problems(model.spec), _told(error)))
    except Exception as error:  # noqa: BLE001  one document must not stop the operator
        return Rejected(
            (f"spec.sql: the planner cannot handle it ({type(error).__name__}); simplify the query",)
        )
    if problems := (*_name(given), *volumes.problems(model.spec)):
        return Rejected(problems)
    explicit = _explicit_values(model)
    return Admitted(given, model, plan, fingerprint, _hash(explicit), explicit)


def _planned(model: StreamJoin, known: Object) -> tuple[str, dict[str, Any]] | tuple[None, None]:
    """Return how a document runs, and what its checkpoint depends on; nothing as long as columns are not known."""
    model = _with_columns(model, known.get("columns", {}))
    if any(is_from_registry(given.arrow_schema) for given in model.spec.inputs.values()):
        check_text(model.spec)
        return None, None
    # A checkpoint keeps the order of its stages, so a statement about rows changes nothing that it depends on.
    begun = json.loads(known.get("plan", "null"))
    ordered, stored = following(begun, partial(pipeline_of, model, ()))
    plan = explain(pipeline_of(model, cells=in_cells(begun), stored=stored))
    return plan[:_PLAN_MAX], as_json(ordered)


def _with_columns(model: StreamJoin, known: Mapping[str, Mapping[str, str]]) -> StreamJoin:
    """Return a document with the columns that its checkpoint has from a registry, as far as they are known."""
    inputs = {
        name: _with_those(name, given, known[name])
        if name in known and is_from_registry(given.arrow_schema)
        else given
        for name, given in model.spec.inputs.items()
    }
    return model.model_copy(update={"spec": model.spec.model_copy(update={"inputs": inputs})})


def _with_those(name: str, given: Input, text: Mapping[str, str]) -> Input:
    """Return an input with these columns; as it is, if they are none or do not tell all that it needs."""
    with suppress(ValueError, KeyError):
        found = RegistryColumns.of(text)
        if found.keys is not None or not fills_from_keys(given):
            columns = checked(f"spec.inputs.{name}", given, columns_of(given, found))
            return given.model_copy(update={"arrow_schema": columns})
    return given


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


def _told(error: StreamJoinError) -> str:
    return told(error) if isinstance(error, SpecError) else f"spec: {error}"


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
