"""Divides `join.memory` of an executor among its units and the inputs of their joins.

    three quarters   the newest rows of each unit and input, in hash tables: the head, sealed when it is full
    a quarter        the filters that find sealed rows (10 bits a row), and the pieces of merges

A budget is not part of a checkpoint: it may change whenever a job starts, and only says where the next head
ends.
"""

from collections.abc import Iterator

from joinlib.model.stage import Budget, Pipeline

_HEADS = 3 / 4
_LEAST = 1 << 16  # bytes of a head: a smaller one would cost more to write than its rows are worth
_FEW = 1 << 20


def budget(plan: Pipeline, memory_bytes: int, executors: int) -> Budget:
    """Divide `memory_bytes` of each executor among the heads of its units, for this number of executors."""
    sides = sum(side.of is None for stage in plan.stages for side in stage.sides)
    heads = max(1, sides * -(-plan.units // executors))
    return Budget(memory_bytes, max(_LEAST, int(memory_bytes * _HEADS) // heads), executors)


def budget_lines(plan: Pipeline) -> Iterator[str]:
    """Describe the budget in lines for people."""
    if plan.budget is not None:
        many = f"of {plan.budget.executors}" if plan.budget.executors > 1 else "of one, or of a local run"
        whose = f"{_size(plan.budget.bytes)} of an executor {many}"
        yield f"{whose}: a head of {_size(plan.budget.head)} for each unit and input"
        yield (
            "a head holds the newest rows in a hash table; older rows lie on disk in the order of their"
            " hashes,"
        )
        yield "behind filters of 10 bits a row; ten such runs become one, a bounded piece in a batch"


def cautions(plan: Pipeline) -> Iterator[str]:
    """Warn where the budget does not have the effect that one might expect."""
    if plan.budget is None:
        return
    if any(stage.index != "hash" for stage in plan.stages):
        yield (
            "join.memory does not bound the state of a join by comparisons: its sorted indexes take what"
            " there is"
        )
    if plan.budget.head < _FEW:
        yield (
            f"join.memory leaves {_size(plan.budget.head)} for the newest rows of an input in a unit: rows"
            " are sorted and written again soon after they arrived; raise it, or make a checkpoint with"
            " fewer units"
        )


def _size(count: int) -> str:
    return f"{count / 2**20:.3g} MiB" if count >= 1 << 20 else f"{count / 2**10:.3g} KiB"
