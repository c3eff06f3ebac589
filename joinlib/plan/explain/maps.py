"""Warns when one process would need more memory maps than Linux allows.

The limit is 65 530 maps per process unless vm.max_map_count says otherwise. A worker process maps the files
of all units of its executor: for each unit and input up to 32 segments, and an index for each of up to 13
runs.
"""

from collections.abc import Iterator

from joinlib.model.stage import Pipeline

OF_A_SIDE = 45  # maps of a side: `Tuning.max_segments`, and one index each for `Tuning.max_runs` and the head
_LIMIT = 65_530 - 5_000  # Python, Arrow and numba have some thousands of their own


def cautions(plan: Pipeline) -> Iterator[str]:
    """Warn when a single executor could not map the state of all units."""
    sides = sum(side.of is None for stage in plan.stages for side in stage.sides)
    maps = OF_A_SIDE * sides * plan.units
    if maps > _LIMIT:
        yield (
            f"{plan.units} units may take {maps:,} memory maps, and Linux allows a process 65,530: run on"
            f" {-(-maps // _LIMIT)} executors or more, or raise vm.max_map_count on every node"
        )
