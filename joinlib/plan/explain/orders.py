"""Explains in which order inner joins by several keys became stages, what that is expected to take, and what else
was considered, paths among it.
"""

from collections.abc import Iterator

from joinlib.model.order import Alternative, StageOrder, written
from joinlib.model.stage import Pipeline


def orders(plan: Pipeline) -> Iterator[str]:
    """Describe the orders of a plan in the words of the text."""
    for order in (order for order in plan.orders if order.paths is None):
        yield f"{written(order.shape)}: {order.why}"
        chosen = next((found for found in order.alternatives if found.shape == order.shape), None)
        if chosen is not None:
            yield f"  expected  {_figures(chosen)}"
        for at, part in enumerate(order.parts):
            label = "stores" if at == 0 else "      "
            yield f"  {label}    {written(part.shape)}: {_count(part.rows)} rows, {_size(part.bytes)}"


def alternatives(plan: Pipeline) -> Iterator[str]:
    """Describe the plans that were considered, a line for each."""
    if not plan.orders:
        yield "Nothing is to be chosen: no inner joins of three or more inputs by several keys."
    for order in plan.orders:
        yield from (("",) if order is not plan.orders[0] else ())
        yield f"{', '.join(sorted(order.inputs))}: {order.why}"
        yield from _table(order)


def _table(order: StageOrder) -> Iterator[str]:
    if not order.alternatives:
        yield "  the rows of no input are known: write inputs.NAME.statistics"
    widest = max((len(found.name) for found in order.alternatives), default=0)
    for found in order.alternatives:
        mark = "*" if found.shape == order.shape else " "
        yield f"{mark} {found.name:{widest}}  {_figures(found)}"
        stored = (f"{one} by {key}" for one, key in found.arrangements)
        yield f"  {'':{widest}}  {'; '.join(stored) or written(found.shape)}"


def _figures(found: Alternative) -> str:
    levels = f"{found.levels} level{'s'[: found.levels != 1]}"
    return f"{_seconds(found.seconds)} of one core, {_size(found.bytes)} of state, {levels}"


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def _count(rows: float) -> str:
    return f"{rows:,.0f}"


def _size(count: float) -> str:
    power, unit = next(((p, u) for p, u in ((30, "GiB"), (20, "MiB")) if count >= 1 << p), (10, "KiB"))
    return f"{count / 2**power:,.1f} {unit}"
