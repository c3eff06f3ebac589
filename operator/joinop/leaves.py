"""What does a spec say, field by field, and which fields does a running driver take over?"""

import re
from collections.abc import Iterator
from typing import Any

from joinlib.spec.inputs import SOURCES
from joinlib.spec.output import SINKS

# Everything else needs another driver.
LIVE = re.compile(r"(executors\.(min|max|instances)|scaling\..+|driver\.(restarts|startWithin)|suspend)$")
_CHOICES = {*SOURCES, *SINKS}  # `noop: {}` says something, `batch: {}` does not


def leaves(value: Any) -> dict[str, Any]:
    """{"join": {"units": 8}} is {"join.units": 8}. Lists are kept whole."""
    return dict(_leaves(value, ""))


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict) or (not value and place.rpartition(".")[2] in _CHOICES):
        yield place, value
    for name in value if isinstance(value, dict) else ():
        yield from _leaves(value[name], f"{place}.{name}" if place else name)
