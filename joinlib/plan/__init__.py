"""How is a query run? Law: a plan changes the cost, never the answer; `explain` says why it is as it is."""

from joinlib.join.stage import OutputColumn, Pipeline, Stage
from joinlib.plan.build import build
from joinlib.plan.fingerprint import compare, fingerprint
from joinlib.plan.source import SourceInput
from joinlib.plan.spec import pipeline_of
from joinlib.plan.stages import pipeline
from joinlib.plan.told import cautions, explain

__all__ = [
    "OutputColumn",
    "Pipeline",
    "SourceInput",
    "Stage",
    "build",
    "cautions",
    "compare",
    "explain",
    "fingerprint",
    "pipeline",
    "pipeline_of",
]
