"""`streamjoin plan --diff OLD NEW`: may the state of OLD go on under NEW? Field by field, and why not.

Law: what is said here is what a run does: both ask `joinlib.checkpoint.identity`, and without a checkpoint compare the
same fingerprints.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from jobs.cli.summary import near
from joinlib.checkpoint.identity import begun, refusals, units_of
from joinlib.checkpoint.planned import plan_of
from joinlib.deploy import API_VERSION, KIND
from joinlib.errors import SpecError
from joinlib.model.fingerprint import as_json, compare
from joinlib.plan import Pipeline
from joinlib.spec.model import StreamJoin

Fields = Mapping[str, Any]
_SHOWN = 60  # characters of a value
_ABSENT = "the default"
_WHERE = (
    "spec.checkpoint.path",
    "spec.checkpoint.reset",
)  # whether it is the same state at all, see `_notes`
_UNITS = "spec.join.units"


@dataclass(frozen=True)
class FieldChange:
    """A field that differs, and why the state cannot follow it alone.

    `reasons`: None where the field alone makes no spec that could be run. `elsewhere`: it names the folder of the state.
    """

    text: str
    reasons: tuple[str, ...] | None
    elsewhere: bool = False

    @property
    def lines(self) -> Iterator[str]:
        verdict = "with others" if self.reasons is None else "new state" if self.reasons else "goes on"
        verdict = "elsewhere" if self.elsewhere else verdict
        yield f"{verdict:<12} {self.text}"
        yield from (f"{'':<12}   {reason}" for reason in self.reasons or ())


@dataclass(frozen=True)
class SpecChange:
    """The change from one spec to another: its fields, and why the state cannot follow all of them together."""

    fields: tuple[FieldChange, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """Several lines for people."""
        verdict = "needs new state:" if self.reasons else "goes on: the state keeps its meaning"
        lines = [line for field in self.fields for line in field.lines] or ["nothing has changed"]
        return "\n".join([*lines, "", f"NEW {verdict}", *(f"  - {r}" for r in self.reasons), *self.notes])


def differ(old: StreamJoin, new: StreamJoin) -> SpecChange:
    """Return what has changed, and what the state of `old` can follow.

    Raises:
        SpecError: One of them cannot be run.
    """
    before, after = flat(old), flat(new)
    changed = [place for place in sorted({*before, *after}) if before.get(place) != after.get(place)]
    judge = _Judge(old)
    found = tuple(judge.field(before, place, after) for place in changed)
    reasons = judge.reasons(new)
    divided = () if reasons else judge.divided(new)
    return SpecChange(found, reasons, (*divided, *_notes(old, new)))


class _Judge:
    """Decides as a run would: by the checkpoint of the old spec, or by its plan if nothing has begun it."""

    def __init__(self, old: StreamJoin) -> None:
        self._folder = old.spec.checkpoint.folder
        self._old: Pipeline = plan_of(old)

    def reasons(self, new: StreamJoin) -> tuple[str, ...]:
        pipeline = plan_of(new, self._folder, self._old)
        if begun(self._folder):
            return tuple(refusals(self._folder, pipeline))
        return tuple(compare(as_json(self._old), as_json(pipeline)))

    def divided(self, new: StreamJoin) -> tuple[str, ...]:
        """Say it if the state is in other units than it will be."""
        if not begun(self._folder):
            return ()
        was, now = units_of(self._folder), plan_of(new, self._folder).units
        if was == now:
            return ()
        said = f"the state is divided when NEW starts: join.units was {was} and is {now}"
        return (f"{said}; no batch before that can be restored then",)

    def field(self, before: Fields, place: str, after: Fields) -> FieldChange:
        """Return the change of a field."""
        text = _told(place, before, after)
        if place in _WHERE:
            return FieldChange(text, (), elsewhere=True)
        return FieldChange(text, self._alone(before, place, after))

    def _alone(self, before: Fields, place: str, after: Fields) -> tuple[str, ...] | None:
        """Return why the state cannot follow this field; None if it cannot be changed alone."""
        fields = {name: value for name, value in before.items() if name != place}
        try:
            return self.reasons(_deep(fields | ({place: after[place]} if place in after else {})))
        except (SpecError, ValidationError):
            return None


def _notes(old: StreamJoin, new: StreamJoin) -> Iterator[str]:
    was, now = old.spec.checkpoint.folder, new.spec.checkpoint.folder
    if not begun(was):
        yield f"(nothing has begun {near(was)} yet: compared are the plans of both)"
    if was != now:
        yield (
            f"NEW begins in {near(now)}: to go on from {near(was)} give it that folder, or begin there by"
            " `streamjoin fork OLD --as NEW`"
        )


def flat(document: StreamJoin) -> dict[str, Any]:
    """Return the fields of a file as it has them, by their places; lists, and labels, are kept whole."""
    whole = document.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    spec = whole["spec"]
    join = document.spec.join
    if "units" in join.model_fields_set:  # also the default: absent are those of the checkpoint
        spec.setdefault("join", {})["units"] = join.units
    for name in ("sql", "output") if document.spec.outputs else ():
        del spec[name]
    return {f"metadata.{name}": value for name, value in whole["metadata"].items()} | dict(
        _flat(spec, "spec")
    )


def _flat(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(inner, f"{place}.{name}")
    else:
        yield place, value


def _deep(fields: Fields) -> StreamJoin:
    """Return the job of these fields."""
    root: dict[str, Any] = {}
    for place, value in fields.items():
        *path, last = place.split(".")
        node = root
        for step in path:
            node = node.setdefault(step, {})
        node[last] = value
    head = {"apiVersion": API_VERSION, "kind": KIND}
    return StreamJoin.model_validate(head | root, by_alias=True, by_name=False)


def _told(place: str, before: Fields, after: Fields) -> str:
    absent = "absent" if place == _UNITS else _ABSENT
    was, now = (str(fields.get(place, absent)) for fields in (before, after))
    short = max(len(was), len(now)) <= _SHOWN and "\n" not in was + now
    return f"{place}: {was} -> {now}" if short else f"{place} changed"
