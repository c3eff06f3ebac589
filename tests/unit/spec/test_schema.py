"""The JSON schema: editors can explain every field, and every example is a spec."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from joinlib.spec import json_schema, load

EXAMPLES = sorted((Path(__file__).parents[3] / "manifests").glob("[0-9]*.yaml"))


def objects(node: Any) -> Iterator[dict[str, Any]]:
    """Every object schema in a schema."""
    if isinstance(node, dict):
        if "properties" in node:
            yield node
        for child in node.values():
            yield from objects(child)


def test_every_field_is_described() -> None:
    """A field without a sentence is a question to the user."""
    schema = json_schema()
    for owner in objects(schema):
        for name, field in owner["properties"].items():
            described = field if "description" in field else schema["$defs"][field["$ref"].rsplit("/", 1)[1]]
            assert described.get("description"), f"{owner['title']}.{name}"


def test_names_are_those_of_the_file() -> None:
    """camelCase, closed, with durations and schemas as strings."""
    definitions = json_schema()["$defs"]
    assert {"eventTime", "schema", "files"} <= set(definitions["Input"]["properties"])
    assert definitions["EventTime"]["properties"]["delay"]["default"] == "0s"
    assert definitions["Input"]["properties"]["schema"]["type"] == "string"
    assert not any(definition["additionalProperties"] for definition in definitions.values())
    assert definitions["Output"]["oneOf"] == [
        {"required": [n]} for n in ("files", "kafka", "postgres", "console", "noop")
    ]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_valid(path: Path) -> None:
    """Every numbered manifest loads."""
    assert load(path).metadata.name
