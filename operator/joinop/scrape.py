"""One scrape of a driver's status. A figure that is missing is unknown, never zero."""

from dataclasses import dataclass, field
from typing import Any

STARTED = ("Running", "Stopping")
_COLUMNS = ("values", "keys")  # of what


@dataclass(frozen=True)
class Scrape:
    """An answer of /v1/status, or the reason why there is none."""

    at: float  # monotonic seconds
    body: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def phase(self) -> str:
        return str(self.body.get("phase", ""))

    def number(self, *steps: str) -> float | None:
        """Return a figure; None if it is missing or not a number."""
        value = self._value(*steps)
        return (
            value
            if isinstance(value, int | float) and not isinstance(value, bool) and value == value
            else None
        )

    def text(self, *steps: str) -> str:
        """Return a text; empty if it is missing or none."""
        value = self._value(*steps)
        return value if isinstance(value, str) else ""

    def _value(self, *steps: str) -> Any:
        value: Any = self.body
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return value

    @property
    def columns(self) -> dict[str, dict[str, str]]:
        """The columns that inputs have in a registry, as text; what has another shape is left out."""
        found = self.body.get("columns")
        if not isinstance(found, dict):
            return {}
        told = {name: {kind: self.text("columns", name, kind) for kind in _COLUMNS} for name in found}
        return {
            name: {kind: text for kind, text in kinds.items() if text}
            for name, kinds in told.items()
            if kinds["values"]
        }

    def count(self, *steps: str) -> int | None:
        found = self.number(*steps)
        return None if found is None or found < 0 or found == float("inf") else int(found)

    @property
    def lag(self) -> int | None:
        """Rows of all inputs together; None if the lag of one is unknown."""
        by_input = self.body.get("lag")
        if not isinstance(by_input, dict) or not by_input:
            return None
        counts = [self.count("lag", name) for name in by_input]
        return None if None in counts else sum(count for count in counts if count is not None)


def ratio(value: float | None) -> str | None:
    """Format a ratio with two decimals: Kubernetes advises against fractions in an API."""
    return None if value is None or not 0 <= value < float("inf") else f"{value:.2f}"
