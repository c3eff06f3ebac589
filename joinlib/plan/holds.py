"""How long does each join keep the rows of each of its inputs? Asked of the engine's own layout: it is what runs."""

from collections.abc import Iterator
from dataclasses import dataclass

from joinlib.expr.bound import Bound
from joinlib.join.config import Join, Leaf
from joinlib.join.stage import Stage
from joinlib.route.config import ORDINAL
from joinlib.spec.duration import text as duration


@dataclass(frozen=True)
class Hold:
    """Rows are kept until the watermark is past `time` + `hold_us`; no time: for ever."""

    time: str | None
    hold_us: int | None

    def __str__(self) -> str:
        if self.time is None or self.hold_us is None:
            return "for ever"
        if self.time.endswith(ORDINAL):
            return f"until {self.hold_us} rows more have come"
        if self.hold_us < 0:
            return f"until the watermark is {duration(-self.hold_us)} before {self.time}"
        return f"until the watermark is {duration(self.hold_us)} past {self.time}"


def holds(stage: Stage) -> dict[int, tuple[Hold, ...]]:
    """By id() of each join in the stage's tree."""
    if isinstance(stage.tree, Leaf):
        return {}
    from joinlib.join.layout import Operator, layout  # numba: not for those who only build plans

    def pairs(join: Join, operator: Operator) -> Iterator[tuple[int, tuple[Hold, ...]]]:
        yield id(join), tuple(Hold(s.time, s.hold_us) for s in operator.sides)
        for child, below in zip(join.inputs, operator.children, strict=True):
            if isinstance(child, Join) and isinstance(below, Operator):
                yield from pairs(child, below)

    return dict(pairs(stage.tree, layout(stage.tree, stage.inputs, stage.above)))


def signed(hold_us: int | None) -> str:
    """A signed duration."""
    if hold_us is None:
        return "for ever"
    return f"-{duration(-hold_us)}" if hold_us < 0 else duration(hold_us)


def said(bound: Bound) -> str:
    """A time bound as an inequality."""
    if bound.left.endswith(ORDINAL):
        return f"rows whose numbers in {_alias(bound.left)} and {_alias(bound.right)} differ by at most {bound.high_us}"
    low = "" if bound.low_us is None else f"{signed(bound.low_us)} <= "
    high = "" if bound.high_us is None else f" <= {signed(bound.high_us)}"
    return f"{low}{bound.right} - {bound.left}{high}"


def _alias(column: str) -> str:
    return column.partition(".")[0]
