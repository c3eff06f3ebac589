"""How much of its state may be in an executor's memory? `join.memory`, cut for its units and the inputs of their joins.

    three quarters   the newest rows of each unit and input, in hash tables: the head, which is sealed when it takes its share
    a quarter        what finds the rows that are sealed (10 bits a row), and the pieces of merges

A budget is no part of a checkpoint: it may change whenever a job starts, and only says where the next head ends.
"""

from collections.abc import Iterator

from joinlib.join.stage import Budget, Pipeline
from joinlib.plan.holds import holds

_HEADS = 3 / 4
_LEAST = 1 << 16  # bytes of a head: with fewer, more would be written of it than it has rows
_FEW = 1 << 20


def budget(plan: Pipeline, memory_bytes: int, executors: int) -> Budget:
    """What `memory_bytes` of each executor mean, when there are so few executors."""
    sides = sum(len(kept) for stage in plan.stages for kept in holds(stage).values())
    heads = max(1, sides * -(-plan.units // executors))
    return Budget(memory_bytes, max(_LEAST, int(memory_bytes * _HEADS) // heads), executors)


def told(plan: Pipeline) -> Iterator[str]:
    """What the budget means, for people."""
    if plan.budget is not None:
        many = f"of {plan.budget.executors}" if plan.budget.executors > 1 else "of one, or of a local run"
        whose = f"{_size(plan.budget.bytes)} of an executor {many}"
        yield f"{whose}: a head of {_size(plan.budget.head)} for each unit and input"
        yield "a head holds the newest rows in a hash table; older rows lie on disk in the order of their hashes,"
        yield "behind filters of 10 bits a row; ten such runs become one, a bounded piece in a batch"


def cautions(plan: Pipeline) -> Iterator[str]:
    """Where it does not do what one might think."""
    if plan.budget is None:
        return
    if any(stage.index != "hash" for stage in plan.stages):
        yield "join.memory does not bound the state of a join by comparisons: its sorted indexes take what there is"
    if plan.budget.head < _FEW:
        yield (
            f"join.memory leaves {_size(plan.budget.head)} for the newest rows of an input in a unit: rows are sorted and"
            " written again soon after they came; raise it, or make a checkpoint with fewer units"
        )


def _size(count: int) -> str:
    return f"{count / 2**20:.3g} MiB" if count >= 1 << 20 else f"{count / 2**10:.3g} KiB"
