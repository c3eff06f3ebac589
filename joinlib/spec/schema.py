"""Generates the JSON schema of the kind from the models, for editors and Kubernetes."""

import copy
from functools import cache
from typing import Any

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


def fields(place: tuple[str | int, ...]) -> list[str]:
    """Return the names of the fields that the object at `place` may have."""
    return list(_at(place).get("properties", ()))


def describe(place: tuple[str | int, ...]) -> str:
    """Return the description of the field at `place`."""
    field = _at(place[:-1]).get("properties", {}).get(place[-1], {})
    return str(field.get("description") or _resolve(field).get("description", ""))


@cache
def _generated() -> Node:
    """Return the JSON schema as the models have it, in which sql and output are always there."""
    return StreamJoin.model_json_schema(by_alias=True)


def _at(place: tuple[str | int, ...]) -> Node:
    """Return the schema of the object at `place`; empty where the kind has none."""
    node = _generated()
    for step in place:
        node = _resolve(
            node.get("properties", {}).get(step) or node.get("additionalProperties") or _branch(node)
        )
    return node


def _resolve(node: Node | bool) -> Node:
    """Resolve references and "or null"."""
    if not isinstance(node, dict):
        return {}
    if "$ref" in node:
        return _resolve(_generated()["$defs"][node["$ref"].rsplit("/", 1)[1]])
    return _branch(node) or node


def _branch(node: Node) -> Node:
    present = [choice for choice in node.get("anyOf", ()) if choice.get("type") != "null"]
    return _resolve(present[0]) if len(present) == 1 else {}
