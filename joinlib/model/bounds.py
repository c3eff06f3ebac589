"""Descriptions of time bounds and signed durations."""

from joinlib.expr.bound import Bound
from joinlib.model.inputs import ORDINAL
from joinlib.spec.duration import text as duration


def signed(us: int | None) -> str:
    """Return a duration of `us` microseconds with its sign; None is an unlimited duration."""
    if us is None:
        return "forever"
    return f"-{duration(-us)}" if us < 0 else duration(us)


def describe(bound: Bound) -> str:
    """Return a bound as an inequality of two times, or of two row numbers."""
    if bound.left.endswith(ORDINAL):
        one, two = _alias(bound.left), _alias(bound.right)
        return f"rows whose numbers in {one} and {two} differ by at most {bound.high_us}"
    low = "" if bound.low_us is None else f"{signed(bound.low_us)} <= "
    high = "" if bound.high_us is None else f" <= {signed(bound.high_us)}"
    return f"{low}{bound.right} - {bound.left}{high}"


def _alias(column: str) -> str:
    return column.partition(".")[0]
