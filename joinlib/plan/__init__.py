"""How is a query run? Law: a plan changes the cost, never the answer."""

from joinlib.model.stage import OutputColumn, Pipeline, Stage
from joinlib.plan.blocks import pipeline
from joinlib.plan.build import build
from joinlib.plan.options import JoinOptions
from joinlib.plan.source import SourceInput
from joinlib.plan.spec import pipeline_of

__all__ = [
    "JoinOptions",
    "OutputColumn",
    "Pipeline",
    "SourceInput",
    "Stage",
    "build",
    "pipeline",
    "pipeline_of",
]
