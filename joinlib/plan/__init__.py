"""How is a query run? Law: a plan changes the cost, never the answer; `explain` says why it is as it is."""

from joinlib.join.stage import OutputColumn, Stage
from joinlib.plan.build import build
from joinlib.plan.explain import explain
from joinlib.plan.fingerprint import compare, fingerprint
from joinlib.plan.source import SourceInput
from joinlib.plan.spec import of_spec

__all__ = ["OutputColumn", "SourceInput", "Stage", "build", "compare", "explain", "fingerprint", "of_spec"]
