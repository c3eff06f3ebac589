"""Explains a pipeline: a drawing of its operators, what to beware of, then each stage by itself."""

from collections.abc import Iterable

from joinlib.model.stage import AnyStage, GroupStage, HopStage, OverStage, PathStage, Pipeline, Stage
from joinlib.plan.explain.asking import larger
from joinlib.plan.explain.changes import edges
from joinlib.plan.explain.conversion import became, converted, logical
from joinlib.plan.explain.drawing import drawing
from joinlib.plan.explain.groups import grouped
from joinlib.plan.explain.orders import orders
from joinlib.plan.explain.over import ranked
from joinlib.plan.explain.paths import probed, stored
from joinlib.plan.explain.stage import explain as explain_stage
from joinlib.plan.explain.warnings import cautions
from joinlib.plan.explain.words import spoken
from joinlib.plan.memory import budget_lines


def explain(plan: Stage | Pipeline) -> str:
    """Describe a stage or a pipeline in several lines for people."""
    given = Pipeline((plan,)) if isinstance(plan, Stage) else plan
    told = spoken(given)
    sections = [drawing(told), _section("Warnings", "- ", cautions(given))]
    sections += [_section("Order of joins", "", orders(told))]
    sections += [_stage(told, number, stage) for number, stage in enumerate(told.stages)]
    sections += [_section("If a table is larger than its budget", "", larger(told))]
    joined = {"Logical": logical, "Converted": converted, "Groups": became}
    sections += [_section(title, "", say(told.joined)) for title, say in joined.items()]
    sections += [_section("Changes", "", edges(told)), _section("Memory", "", budget_lines(told))]
    return "\n\n".join(section for section in sections if section)


def _section(title: str, mark: str, lines: Iterable[str]) -> str:
    told = [f"  {mark}{line}" for line in lines]
    return "\n".join([title, *told]) if told else ""


def _stage(plan: Pipeline, number: int, stage: AnyStage) -> str:
    if len(plan.stages) == 1:
        return _one(plan, None, stage)
    lines = _one(plan, number, stage).splitlines()
    return "\n".join([f"Stage {number}", *(f"  {line}".rstrip() for line in lines)])


def _one(plan: Pipeline, number: int | None, stage: AnyStage) -> str:
    readers = tuple(dict.fromkeys(reader for reader, _ in plan.readers(number or 0)))
    output = next((result.name for result in plan.named if result.stage == (number or 0)), "")
    last = f"Output {output}" if output else "Result"
    to = f"To stage {', '.join(map(str, readers))}" if readers else last
    if isinstance(stage, GroupStage):
        return grouped(plan, stage, to)
    if isinstance(stage, OverStage):
        return ranked(stage, to)
    if isinstance(stage, PathStage):
        return stored(plan, number or 0, stage)
    if isinstance(stage, HopStage):
        return probed(plan, number or 0, stage, to)
    return explain_stage(stage, number, to, (number or 0) in plan.ruled)
