"""How is a query run? Law: a plan changes the cost, never the answer; `explain` says why it is as it is."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from joinlib.plan.build import build
    from joinlib.plan.explain import explain
    from joinlib.plan.fingerprint import compare, fingerprint
    from joinlib.plan.source import SourceInput
    from joinlib.plan.spec import of_spec
    from joinlib.plan.stage import OutputColumn, Stage

__all__ = ["OutputColumn", "SourceInput", "Stage", "build", "compare", "explain", "fingerprint", "of_spec"]

_HOMES = {
    "OutputColumn": "stage",
    "SourceInput": "source",
    "Stage": "stage",
    "build": "build",
    "compare": "fingerprint",
    "explain": "explain",
    "fingerprint": "fingerprint",
    "of_spec": "spec",
}


def __getattr__(name: str) -> Any:
    """Loaded when asked for: workers read plans and need no SQL parser."""
    if name in _HOMES:
        return getattr(import_module(f"joinlib.plan.{_HOMES[name]}"), name)
    raise AttributeError(name)
