"""docs/reference/spec.md: every field of the kind StreamJoin, from its JSON schema and its rules in
Kubernetes.
"""

import json
from collections.abc import Iterator
from typing import Any

from docs.generate.markdown import code, page, table
from joinlib.spec import json_schema
from joinlib.spec.base import QUANTITY
from joinlib.spec.cel import rules
from joinlib.spec.duration import PATTERN as DURATION
from joinlib.spec.duration import UNITS_US
from joinlib.spec.patterns import PATTERNS

Node = dict[str, Any]
_HEAD = """\
# Spec reference

<!-- Made by docs/build from joinlib/spec; edit the models, not this page. -->

A spec is one YAML document of kind `StreamJoin`; documents of other kinds beside it in a file, such as claims, are left
to `kubectl`. `streamjoin validate FILE` checks it, and `streamjoin schema` prints its JSON schema for editors. A field
that is not listed here is an error. Keys are text, whatever YAML would read: only for `kubectl` does `null:` need
quotes. The same document runs on a laptop and on Kubernetes; fields that only matter on Kubernetes say so.

A small spec:

```yaml
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: paid-orders}
spec:
  sql: SELECT o.order_id, p.method FROM orders o JOIN payments p ON o.order_id = p.order_id
  inputs:
    orders:
      schema: order_id BIGINT
      files: {path: data/orders}
    payments:
      schema: order_id BIGINT, method STRING
      files: {path: data/payments}
  output:
    files: {path: out/paid-orders}
  checkpoint: {path: checkpoints/paid-orders}
```

## How values are written
"""
_WRITTEN = {
    "duration": "whole numbers with units {units}, the largest first: `10s`, `500ms`, `2h30m`",
    "memory": "bytes, or with a unit of ten or of two: `512Mi`, `8Gi`, `2G`",
    "path": "a local or shared folder or file; a relative one starts at the folder of the spec file. "
    "On Kubernetes paths are absolute and lie on a volume. Object stores are refused",
    "value": "text, a number, a truth value, a list of them, or `{{type, value}}`; see "
    "[Views and parameters](../how-to/views-and-parameters.md)",
    "columns": "names and types as in Spark's DDL: `order_id BIGINT, at TIMESTAMP`; see [SQL](sql.md#types)",
}
_RULES = """\
## Rules over several fields

Kubernetes checks these when the document is applied. `streamjoin validate` checks those that do not need a cluster, and more
that need the SQL or the columns; the length of names, the least memory of executors, paths on volumes, and that there is
one output, are checked by the cluster alone."""


def made() -> str:
    """The page."""
    schema = json_schema()
    lines = [_HEAD, *_kinds(), *_sections(schema), _RULES, *_rules()]
    return page(line for part in lines for line in part.split("\n"))


def _kinds() -> Iterator[str]:
    units = ", ".join(code(unit) for unit in UNITS_US)
    yield from table(
        ("Type", "Written as"), [(name, text.format(units=units)) for name, text in _WRITTEN.items()]
    )


def _sections(schema: Node) -> Iterator[str]:
    """One for each object, in the order of the document; an object that is met twice has one section and a
    link to it.
    """
    known: dict[str, str] = {}
    waiting: list[tuple[str, Node, str]] = [("", schema, "StreamJoin")]
    while waiting:
        place, node, name = waiting.pop(0)
        if name in known:
            continue
        known[name] = place
        found = (_model(schema, _join(place, field), child) for field, child in node["properties"].items())
        waiting = [model for model in found if model] + waiting
        yield from _section(schema, place, node, known)


def _section(schema: Node, place: str, node: Node, known: dict[str, str]) -> Iterator[str]:
    yield f"\n## {code(place)}\n" if place else "\n## The document\n"
    yield _sentence(node["description"])
    if node.get("oneOf"):
        names = [code(branch["required"][0]) for branch in node["oneOf"]]
        yield f"\nExactly one of {', '.join(names[:-1])} and {names[-1]} is given."
    if not node["properties"]:
        yield "\nIt has no fields: write `{}`."
        return
    rows = [
        (
            code(field),
            _type(schema, _join(place, field), child, known),
            _default(field, child, node),
            _limits(child),
            _sentence(_described(schema, child)),
        )
        for field, child in node["properties"].items()
    ]
    yield from table(("Field", "Type", "Default", "Limits", "Meaning"), rows)


def _join(place: str, field: str) -> str:
    return f"{place}.{field}" if place else field


def _plain(node: Node) -> Node:
    """Behind "or null"; what is said of the field stays."""
    choices = [choice for choice in node.get("anyOf", ()) if choice.get("type") != "null"]
    return {**node, **choices[0]} if len(choices) == 1 else node


def _model(schema: Node, place: str, node: Node) -> tuple[str, Node, str] | None:
    """The place, schema and name of the model that a field leads to: of an entry, where it is a list or a
    map.
    """
    plain = _plain(node)
    if "$ref" in plain:
        name = plain["$ref"].rsplit("/", 1)[1]
        return place, schema["$defs"][name], name
    for step, entry in (("items", "[]"), ("additionalProperties", ".NAME")):
        if isinstance(plain.get(step), dict):
            return _model(schema, place + entry, plain[step])
    return None


def _described(schema: Node, node: Node) -> str:
    found = _model(schema, "", node)
    return str(node.get("description") or (found[1]["description"] if found else ""))


def _type(schema: Node, place: str, node: Node, known: dict[str, str]) -> str:
    plain = _plain(node)
    if "$ref" in plain:
        name = plain["$ref"].rsplit("/", 1)[1]
        at = known.get(name, place)
        return f"[object](#{_anchor(at)})"
    if plain.get("pattern") == DURATION:
        return "duration"
    if plain.get("pattern") == QUANTITY:
        return "memory"
    if plain.get("type") == "array":
        return f"list of {_type(schema, place + '[]', plain['items'], known)}"
    if isinstance(plain.get("additionalProperties"), dict):
        return f"map of names to {_type(schema, place + '.NAME', plain['additionalProperties'], known)}"
    if place == "spec.inputs.NAME.schema":
        return "columns"
    if place.rpartition(".")[2].lower().endswith(("path", "file", "archive")) and plain.get("minLength") == 1:
        return "path"
    if plain.get("x-kubernetes-preserve-unknown-fields") and "type" not in plain:
        return "value"
    return str(plain.get("type", "object"))


def _anchor(place: str) -> str:
    return "".join(c for c in place.lower() if c.isalnum() or c in "-_") or "the-document"


def _default(field: str, node: Node, parent: Node) -> str:
    if field in parent.get("required", ()):
        return "required"
    value = node.get("default")
    if value is None or value == []:
        return ""
    if "Absent: " in node.get("description", ""):
        return "see Meaning"
    return code(value if isinstance(value, str) and value else json.dumps(value))


def _limits(node: Node) -> str:
    plain = _plain(node)
    plain = {**plain.get("items", {}), **plain} if plain.get("type") == "array" else plain
    found = []
    if "enum" in plain or "const" in plain:
        found.append(", ".join(code(str(value)) for value in plain.get("enum", [plain.get("const")])))
    low, above, high = plain.get("minimum"), plain.get("exclusiveMinimum"), plain.get("maximum")
    if low is not None:
        found.append(f"{low} to {high}" if high is not None else f"at least {low}")
    if above is not None:
        found.append(f"more than {above}" + (f", at most {high}" if high is not None else ""))
    if plain.get("minItems") or plain.get("minProperties"):
        found.append("at least one")
    pattern = plain.get("pattern")
    if pattern in PATTERNS and pattern not in (DURATION, QUANTITY):
        found.append(PATTERNS[pattern].partition("; ")[2].removeprefix("write "))
    return "; ".join(found)


def _sentence(text: str) -> str:
    """With a full stop, and nothing that Markdown takes for its own."""
    text = " ".join(text.split())
    text = text.replace("<", "&lt;").replace("*", r"\*") if "`" not in text else text
    return text if not text or text.endswith(".") else f"{text}."


def _rules() -> Iterator[str]:
    rows = {
        (code((rule.place + rule.field).lstrip(".").replace("*", "NAME")), rule.message): None
        for rule in rules()
    }
    yield from table(("Where", "What is said when it is broken"), rows)
