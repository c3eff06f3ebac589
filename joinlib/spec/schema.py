"""Generates the JSON schema of the kind from the models, for editors and Kubernetes; says which fields a file may have."""

import copy
from functools import cache
from typing import Any

from joinlib.spec.base import Model
from joinlib.spec.document import Place
from joinlib.spec.duration import PATTERN as DURATION
from joinlib.spec.model import StreamJoin

Node = dict[str, Any]
_OR_OUTPUTS = ("sql", "output")


def json_schema() -> Node:
    """Return the JSON schema (2020-12) of the kind StreamJoin, with a description of every field."""
    made = copy.deepcopy(_generated())
    spec = made["$defs"]["Spec"]
    spec["required"] = [name for name in spec["required"] if name not in _OR_OUTPUTS]
    spec["oneOf"] = [{"required": list(_OR_OUTPUTS)}, {"required": ["outputs"]}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def of_models() -> Node:
    """Return the JSON schema without outputs as another form of sql and output, as a cluster has it."""
    return copy.deepcopy(_generated())


def fields(place: Place, model: type[Model] = StreamJoin) -> list[str]:
    """Return the names of the fields that the object at `place` of such a file may have."""
    return list(_at(place, _generated(model)).get("properties", ()))


def describe(place: Place, model: type[Model] = StreamJoin) -> str:
    """Return the description of the field at `place` of such a file."""
    root = _generated(model)
    field = _at(place[:-1], root).get("properties", {}).get(place[-1], {})
    return str(field.get("description") or _resolve(field, root).get("description", ""))


def is_duration(place: Place, model: type[Model] = StreamJoin) -> bool:
    """Return whether the field at `place` is a duration."""
    root = _generated(model)
    field = _at(place[:-1], root).get("properties", {}).get(place[-1], {})
    return _resolve(field, root).get("pattern") == DURATION


def least(place: Place, model: type[Model] = StreamJoin) -> str:
    """Return the least that may be written for the fields at `place`, with dots for values; empty if it is not known."""
    root = _generated(model)
    node = _at(place, root)
    if names := node.get("required"):
        return f"{{{', '.join(f'{name}: ...' for name in names)}}}"
    if node.get("minProperties"):
        return "{NAME: ...}"
    return "" if place[-1] in _at(place[:-1], root).get("required", ()) else "{}"


@cache
def _generated(model: type[Model] = StreamJoin) -> Node:
    """Return the JSON schema as the models have it, in which sql and output are always there."""
    return model.model_json_schema(by_alias=True)


def _at(place: Place, root: Node) -> Node:
    """Return the schema of the object at `place`; empty where the kind has none."""
    node = root
    for step in place:
        below = node.get("items") if isinstance(step, int) else node.get("properties", {}).get(step)
        node = _resolve(below or node.get("additionalProperties") or _branch(node, root), root)
    return node


def _resolve(node: Node | bool | None, root: Node) -> Node:
    """Resolve references and "or null"."""
    if not isinstance(node, dict):
        return {}
    if "$ref" in node:
        return _resolve(root["$defs"][node["$ref"].rsplit("/", 1)[1]], root)
    return _branch(node, root) or node


def _branch(node: Node, root: Node) -> Node:
    present = [choice for choice in node.get("anyOf", ()) if choice.get("type") != "null"]
    return _resolve(present[0], root) if len(present) == 1 else {}
