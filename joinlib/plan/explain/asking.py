"""Says which lookups get a stage of their own if their tables turn out larger than their budgets."""

from collections.abc import Iterator
from dataclasses import replace

from joinlib.model.joins import Lookup
from joinlib.model.stage import Pipeline, Stage
from joinlib.plan.asking import with_asking_stages


def larger(plan: Pipeline) -> Iterator[str]:
    """Yield a line for each table whose size is not known yet, and for which that decides."""
    undecided = {lookup.table.alias for _, lookup in plan.lookups if _open(lookup)}
    supposed = with_asking_stages(plan.looking_up(_scarce(lookup) for _, lookup in plan.lookups))
    for number, stage in enumerate(supposed.stages):
        if not isinstance(stage, Stage) or not stage.asks or stage.lookups[0].table.alias not in undecided:
            continue
        table, by = stage.lookups[0].table, ", ".join(probe.sql for probe in stage.lookups[0].probe)
        hot = ", a hot key in several" if number in supposed.ruled else ""
        yield (
            f"{table.alias} is asked in a stage of its own, to which rows go by {by}: each key is kept in one of the"
            f" {stage.units} units{hot}"
        )


def _scarce(lookup: Lookup) -> Lookup:
    return replace(lookup, caching=replace(lookup.caching, scarce=True)) if _open(lookup) else lookup


def _open(lookup: Lookup) -> bool:
    return lookup.caching.mode != "full" and lookup.caching.scarce is None
