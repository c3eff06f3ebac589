"""Flatten a spec to its fields, and name the fields that a running driver adopts."""

import re
from collections.abc import Iterator
from typing import Any

from joinlib.spec.inputs import SOURCES
from joinlib.spec.output import SINKS

# Everything else needs another driver.
LIVE = re.compile(r"(executors\.(min|max|instances)|scaling\..+|driver\.(restarts|startWithin)|suspend)$")
_CHOICES = {*SOURCES, *SINKS}  # an empty `noop: {}` is a choice, an empty `batch: {}` is not


def flatten(value: Any) -> dict[str, Any]:
    """Turn {"join": {"units": 8}} into {"join.units": 8}. Lists are kept whole."""
    return dict(_flattened(value, ""))


def _flattened(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict) or (not value and place.rpartition(".")[2] in _CHOICES):
        yield place, value
    for name in value if isinstance(value, dict) else ():
        yield from _flattened(value[name], f"{place}.{name}" if place else name)
