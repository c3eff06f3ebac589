"""How does a plan read in words? What it decided, what it stores and for how long, and what to beware of."""

from joinlib.plan.explain.pipeline import explain
from joinlib.plan.explain.warnings import cautions

__all__ = ["cautions", "explain"]
