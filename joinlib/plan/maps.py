"""How many files of its state may a process have mapped? Linux allows 65 530 maps, unless vm.max_map_count says otherwise.

A process of workers maps what the units of its executor have: of each unit and input up to 32 segments, and an index of each
of up to 13 runs.
"""

from collections.abc import Iterator

from joinlib.join.stage import Pipeline
from joinlib.plan.holds import holds

OF_A_SIDE = 45  # `Tuning.max_segments`, and an index of each of `Tuning.max_runs` and of the head
_LIMIT = 65_530 - 5_000  # Python, Arrow and numba have some thousands of their own


def cautions(plan: Pipeline) -> Iterator[str]:
    """Where one executor could not have all units."""
    sides = sum(len(kept) for stage in plan.stages for kept in holds(stage).values())
    maps = OF_A_SIDE * sides * plan.units
    if maps > _LIMIT:
        yield (
            f"{plan.units} units may take {maps:,} memory maps, and Linux allows a process 65,530: run on {-(-maps // _LIMIT)}"
            " executors or more, or raise vm.max_map_count on every node"
        )
