"""Generates the CustomResourceDefinition from the models; it is never written by hand.

    python -m joinlib.spec.crd > manifests/crd.yaml

The JSON schema of the models is converted to the structural form that Kubernetes demands: no references, one
type per field ("or null" means absence), no defaults of null. Strings, lists and maps get a limit, since the
API server estimates the cost of rules by the largest value. Rules over several fields are in `cel`.
"""

import sys
from collections.abc import Iterator
from typing import Any

import yaml

from joinlib.deploy import GROUP, KIND, PLURAL, VERSION
from joinlib.spec.cel import CelRule, exactly_one, fitting, rules
from joinlib.spec.schema import Node, of_models
from joinlib.spec.status import Status

MAX_LENGTH, MAX_TEXT, MAX_ENTRIES = 1024, 65_536, 16
TEXTS = {"spec.sql", "spec.views.*", "spec.inputs.*.schema"}
REFUSED = {
    "spec.outputs"
}  # a rule refuses them whole, so that their fields need no rules, which have a price
LIST_KEYS = {"spec.volumes": "mountPath", "status.conditions": "type"}
COPIED_KEYS = (
    "description", "type", "format", "enum", "default", "minimum", "maximum",
    "x-kubernetes-preserve-unknown-fields",
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
)  # fmt: skip
COLUMNS = (
    ("Phase", "string", ".status.phase", 0),
    ("Ready", "integer", ".status.executors.ready", 0),
    ("Wanted", "integer", ".status.executors.wanted", 0),
    ("Load", "string", ".status.memoryLoad", 0),
    ("Skew", "string", ".status.skew", 0),
    ("Lag", "integer", ".status.lag", 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Batch", "integer", ".status.batch", 1),
    ("Message", "string", ".status.message", 1),
)


def crd() -> Node:
    """Return the CustomResourceDefinition as plain values."""
    names = {
        "kind": KIND,
        "listKind": f"{KIND}List",
        "plural": PLURAL,
        "singular": KIND.lower(),
        "shortNames": ["sj"],
        "categories": ["all", "streamjoin"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{PLURAL}.{GROUP}",
            # An uninstall of the chart must not take all jobs with it.
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [_version()]},
    }


def main() -> None:
    """Print the definition as YAML."""
    yaml.safe_dump(crd(), sys.stdout, sort_keys=False, width=110, allow_unicode=True)


def _version() -> Node:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.executors.instances",
                "statusReplicasPath": ".status.executors.ready",
                "labelSelectorPath": ".status.executors.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": name, "type": kind, "jsonPath": path, **({"priority": far} if far else {})}
            for name, kind, path, far in COLUMNS
        ],
        "schema": {"openAPIV3Schema": _kind()},
    }


def _kind() -> Node:
    schema = of_models()
    fields = {name: field for name, field in schema["properties"].items() if name != "metadata"}
    root = _structural({**schema, "properties": fields}, schema["$defs"], "")
    status = Status.model_json_schema(by_alias=True)
    # Kubernetes owns the metadata: only a name may be declared, and it must be for a rule to use it.
    root["properties"]["metadata"] = {"type": "object", "properties": {"name": {"type": "string"}}}
    root["properties"]["status"] = _structural(status, status.get("$defs", {}), "status")
    root["required"] = ["spec"]
    for rule in rules():
        _at(root, rule).setdefault("x-kubernetes-validations", []).append(rule.schema())
    return root


def _structural(node: Node, known: Node, place: str) -> Node:
    """Return the node, and everything below it, without references and alternatives."""
    node = _plain(node, known)
    if place in REFUSED:
        kept = {"description": node["description"]}
        return {**kept, "type": "object", "x-kubernetes-preserve-unknown-fields": True}
    below = {
        name: _structural(child, known, _join(place, name))
        for name, child in node.get("properties", {}).items()
    }
    entries = {
        key: _structural(node[key], known, _join(place, "*"))
        for key in ("items", "additionalProperties")
        if isinstance(node.get(key), dict)
    }
    return {
        **{key: node[key] for key in COPIED_KEYS if key in node and not _no_default(key, node[key])},
        **({"enum": [node["const"]]} if "const" in node else {}),
        **_above(node),
        **_limits(node, place),
        **({"properties": below} if below else {}),
        **({"required": list(node["required"])} if node.get("required") else {}),
        **entries,
        **_list_of_maps(place),
        **_rules(node, place),
    }


def _no_default(key: str, value: object) -> bool:
    """Whether the default is null or empty, which is what a field without a default is anyway."""
    return key == "default" and (value is None or value == [])


def _above(node: Node) -> Node:
    """An exclusive lower bound: Kubernetes has two fields for it, as old JSON schema had."""
    bound = node.get("exclusiveMinimum")
    return {} if bound is None else {"minimum": bound, "exclusiveMinimum": True}


def _list_of_maps(place: str) -> Node:
    """Markers of lists with a key: Kubernetes merges them by it and rejects duplicates."""
    if place not in LIST_KEYS:
        return {}
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [LIST_KEYS[place]]}


def _rules(node: Node, place: str) -> Node:
    """Rules for oneOf and pattern, because the API server's own messages for them do not help."""
    fields = [name for branch in node.get("oneOf", ()) for name in branch["required"]]
    found = [exactly_one(place, fields)] if fields else []
    found += [fitting(place, node["pattern"])] if "pattern" in node else []
    return {"x-kubernetes-validations": [rule.schema() for rule in found]} if found else {}


def _plain(node: Node, known: Node) -> Node:
    """Resolve references and "or null"; what is set along the way takes precedence."""
    choices = [choice for choice in node.get("anyOf", ()) if choice.get("type") != "null"]
    if "$ref" in node:
        return {**_plain(known[node["$ref"].rsplit("/", 1)[1]], known), **node}
    if len(choices) == 1:
        return {**_plain(choices[0], known), **node}
    return dict(node)


def _limits(node: Node, place: str) -> Node:
    """The largest size of a value of the spec; the status has none, as only the operator writes it."""
    if not place.startswith("spec"):
        return {}
    if node.get("type") == "string" and "enum" not in node:
        return {"maxLength": node.get("maxLength", MAX_TEXT if place in TEXTS else MAX_LENGTH)}
    if node.get("type") == "array":
        return {"maxItems": MAX_ENTRIES}
    if isinstance(node.get("additionalProperties"), dict):
        return {"maxProperties": MAX_ENTRIES}
    return {}


def _at(root: Node, rule: CelRule) -> Node:
    node = root
    for step in filter(None, rule.place.split(".")):
        node = _child(node, step)
    return node


def _child(node: Node, step: str) -> Node:
    if step == "*":
        return node["items"] if "items" in node else node["additionalProperties"]
    return node["properties"][step]


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def walk(node: Node, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema in a structural schema, with its place."""
    yield place, node
    for name, child in node.get("properties", {}).items():
        yield from walk(child, _join(place, name))
    for key in ("items", "additionalProperties"):
        if key in node:
            yield from walk(node[key], _join(place, "*"))


if __name__ == "__main__":
    main()
