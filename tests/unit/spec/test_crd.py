"""The kind in Kubernetes: made of the models, structural, described, bounded; the examples fit it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.spark_conf import memory
from joinlib.errors import SpecError
from joinlib.spec import StreamJoin, cel, json_schema
from joinlib.spec.crd import crd, walk
from joinlib.spec.model import Executors

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(
    [*(ROOT / "manifests").glob("[0-9]*.yaml"), *(ROOT / "manifests" / "examples").glob("*.yaml")]
)
SCHEMA = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
NODES = dict(walk(SCHEMA))
MINE = {place: node for place, node in NODES.items() if place and not place.startswith("metadata")}


def mistakes(node: dict[str, Any], value: Any, place: str = "") -> Iterator[str]:
    """What the schema alone, without its rules, says of a value."""
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": (int, float),
    }
    if "type" in node and not isinstance(value, kinds[node["type"]]):
        yield f"{place}: is no {node['type']}"
        return
    if value not in node.get("enum", [value]):
        yield f"{place}: not one of {node['enum']}"
    if isinstance(value, list):
        for entry in value:
            yield from mistakes(node["items"], entry, f"{place}.*")
    if isinstance(value, dict) and place != ".metadata":
        yield from (f"{place}.{name}: missing" for name in node.get("required", ()) if name not in value)
        for name, child in value.items():
            below = node.get("properties", {}).get(name) or node.get("additionalProperties")
            if below is None and "x-kubernetes-preserve-unknown-fields" not in node:
                yield f"{place}.{name}: unknown"
            elif below is not None:
                yield from mistakes(below, child, f"{place}.{name}")


def test_models_and_definition_agree() -> None:
    """Whoever changes a model writes the definition anew: manifests/build."""
    command = [sys.executable, "-m", "joinlib.spec.crd"]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    assert text == (ROOT / "manifests" / "crd.yaml").read_text()
    assert text == (ROOT / "charts" / "streamjoin" / "files" / "crd.yaml").read_text()


def test_every_field_of_the_models_is_there() -> None:
    """And no other, but for the status and Kubernetes' own metadata."""
    models = json_schema()["$defs"]
    fields = {name for model, node in models.items() if model != "Metadata" for name in node["properties"]}

    assert fields == {p.rsplit(".", 1)[-1] for p in MINE if p.startswith("spec.")} - {"*"}
    assert set(SCHEMA["properties"]) == {"apiVersion", "kind", "metadata", "spec", "status"}


def test_every_field_is_described() -> None:
    """`kubectl explain` has a sentence for each."""
    named = {place: node for place, node in MINE.items() if not place.endswith("*")}

    assert [place for place, node in named.items() if not node.get("description", "").endswith(".")] == []


def test_it_is_structural() -> None:
    """One type per node, and nothing that Kubernetes refuses or that would let unknown fields through."""
    allowed = {
        "type", "description", "format", "enum", "pattern", "default", "properties", "required", "items",
        "additionalProperties", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "minItems",
        "maxItems", "minProperties", "maxProperties", "x-kubernetes-validations", "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys", "x-kubernetes-preserve-unknown-fields",
    }  # fmt: skip
    free = {
        "spec.pods.affinity",
        "spec.pods.topologySpreadConstraints.*",
        "spec.outputs",
    }  # Kubernetes checks them in the pod; outputs are refused whole
    any_type = {"spec.parameters.*"}  # the operator checks them
    for place, node in NODES.items():
        assert ("x-kubernetes-preserve-unknown-fields" in node) == (place in free | any_type), place
        assert place in any_type or node["type"] in {
            "object",
            "array",
            "string",
            "integer",
            "number",
            "boolean",
        }, place
        assert set(node) <= allowed, place
        assert not {"properties", "additionalProperties"} <= set(node), place
        assert isinstance(node.get("additionalProperties", {}), dict), place
        assert node.get("default", 0) is not None, place
        assert "(?" not in node.get("pattern", ""), (
            f"{place}: the API server's patterns know no groups like this"
        )


def test_what_rules_read_is_bounded() -> None:
    """The API server refuses rules over lists, maps and texts of any size."""
    for place, node in MINE.items():
        if place.startswith("spec") and "enum" not in node and "type" in node:
            assert node["type"] != "string" or "maxLength" in node, place
            assert node["type"] != "array" or "maxItems" in node, place
            assert "additionalProperties" not in node or "maxProperties" in node, place


@pytest.mark.parametrize("rule", cel.rules(), ids=lambda rule: rule.place + rule.field)
def test_a_rule_names_a_field_and_the_fix(rule: cel.CelRule) -> None:
    """The field exists; the message says what to write."""
    field = re.sub(r"^\.", "", rule.place + rule.field)

    assert not field or field in NODES
    assert ";" in rule.message or ", or " in rule.message
    assert "oldSelf" not in rule.holds or rule.place == ""


def test_the_least_memory_is_that_of_the_session() -> None:
    """Refused by the API server: what the driver would refuse."""
    for cores in (1, 2, 4):
        least = f"{cel.BARE_MI + cores * cel.CORE_MI + 1}Mi"
        assert memory(Executors(cores=cores, memory=least)).state > 0
        with pytest.raises(SpecError):
            memory(Executors(cores=cores, memory=f"{cel.BARE_MI + cores * cel.CORE_MI}Mi"))


def test_columns_and_scale_read_what_is_there() -> None:
    """A path that leads nowhere would show nothing, and say nothing."""
    version = crd()["spec"]["versions"][0]
    paths = [*version["subresources"]["scale"].values()]
    paths += [c["jsonPath"] for c in version["additionalPrinterColumns"] if c["name"] != "Age"]

    assert [path for path in paths if path[1:] not in NODES] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_fit(path: Path) -> None:
    """Every manifest fits the schema, also those for a local run, and the model."""
    found = [d for d in yaml.safe_load_all(path.read_text()) if d["kind"] == "StreamJoin"]

    assert found
    for document in found:
        assert list(mistakes(SCHEMA, document)) == []
        StreamJoin.model_validate(document)


def test_defaults_are_those_of_the_models() -> None:
    """What the API server fills in is what the model would have meant."""
    text = (ROOT / "manifests" / "examples" / "05-many-executors.yaml").read_text()
    document = next(d for d in yaml.safe_load_all(text) if d["kind"] == "StreamJoin")

    def filled(node: dict[str, Any], value: Any) -> Any:
        if not isinstance(value, dict):
            return [filled(node["items"], v) for v in value] if isinstance(value, list) else value
        properties = node.get("properties", {})
        defaults = {name: child["default"] for name, child in properties.items() if "default" in child}
        children = {**defaults, **value}
        return {
            n: filled(properties.get(n) or node.get("additionalProperties"), v) for n, v in children.items()
        }

    spec = document["spec"]
    assert filled(SCHEMA["properties"]["spec"], spec) != spec
    assert StreamJoin.model_validate(document) == StreamJoin.model_validate(
        {**document, "spec": filled(SCHEMA["properties"]["spec"], spec)}
    )


def test_no_rule_sees_values_of_any_type() -> None:
    """Kubernetes refuses the whole definition if a rule stands at a map or a list of values that have no type."""
    for place, node in NODES.items():
        entry = node.get("additionalProperties") or node.get("items") or {}
        assert not ("x-kubernetes-validations" in node and entry and "type" not in entry), place
