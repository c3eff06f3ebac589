"""Which plans of a block does StreamJoin run, and by whom is it measured?

auto     what the planner chooses; stages, paths: what it chooses of this kind
text     stages in the order of the text
o l c    stages in that order of `FROM`: the orders chosen by hand, or with --orders all that make plans of their own
binary   a chain within one stage, where all inputs share a key; multiway: one operator
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import task
from blocks import LETTERS, Block

from joinlib.plan import JoinOptions, Pipeline, SourceInput, pipeline
from joinlib.plan.options import STRATEGIES
from joinlib.spec import ddl

Settings = Mapping[str, str]  # of `join`
FORCED: Mapping[str, Settings] = {w: {"strategy": w} for w in ("stages", "paths") if w in STRATEGIES}
IN_ORDER: Settings = {**FORCED.get("stages", {}), "order": "text"}
ONE_KEY: Mapping[str, Settings] = {word: {"strategy": word} for word in ("multiway", "binary")}


@dataclass(frozen=True)
class Plan:
    """A way to run a block: settings, and the order of `FROM`."""

    join: Settings = field(default_factory=dict)
    order: tuple[str, ...] = ()

    def sql(self, block: Block) -> str:
        return block.sql(self.order)

    @property
    def options(self) -> list[str]:
        """Of streamjoin_join.py."""
        return ["--join", *(f"{name}={value}" for name, value in self.join.items())]


def plans(block: Block, data: Path, every: bool = False) -> Mapping[str, Plan]:
    """All plans that are measured, by name; `every`: all orders that make a plan of their own."""
    found = {"auto": Plan(), **{name: Plan(join) for name, join in FORCED.items()}}
    if len(seen := planned(block, Plan(), data)) == 1 and len(seen[0]) == len(block.tables):
        return found | {name: Plan(join) for name, join in ONE_KEY.items()}
    orders = {
        "text": block.tables,
        **{_short(o): o for o in (block.orders() if every else block.hands or block.orders())},
    }
    shapes = set()
    for name, order in orders.items():
        plan = Plan(IN_ORDER, order)
        if (shape := planned(block, plan, data)) not in shapes:
            found[name] = plan
            shapes.add(shape)
    return found


def planned(block: Block, plan: Plan, data: Path) -> tuple[frozenset[frozenset[str]], ...]:
    """What a plan becomes: for each stage, the tables that are below each of its inputs."""
    schemas = task.read(data).inputs
    inputs = {name: SourceInput(ddl.parse(schemas[name])) for name in block.tables}
    options = JoinOptions(strategy=plan.join.get("strategy", "auto"))  # stages are as the text has them
    return tuple(_stages(pipeline(plan.sql(block), inputs, options)))


def _stages(made: Pipeline) -> Iterator[frozenset[frozenset[str]]]:
    below: list[frozenset[str]] = []
    for stage in made.stages:
        parts = [frozenset([p.source]) if p.upstream is None else below[p.upstream] for p in stage.inputs]
        below.append(frozenset().union(*parts))
        yield frozenset(parts)


def _short(order: tuple[str, ...]) -> str:
    """The tables by the letters that their columns begin with."""
    return " ".join(LETTERS[table] for table in order)
