"""Explains how long a join keeps the rows of each of its inputs."""

from joinlib.model.inputs import ORDINAL
from joinlib.model.side import SideConfig
from joinlib.spec.duration import text as duration


def unbounded(side: SideConfig) -> bool:
    """Whether rows of the side are kept forever."""
    return side.time is None or side.hold_us is None


def retention(side: SideConfig) -> str:
    """Say how long rows of the side are kept."""
    if side.time is None or side.hold_us is None:
        return "until it is deleted" if side.mutable else "forever"
    if side.time.endswith(ORDINAL):
        return f"until {side.hold_us} more rows have arrived"
    if side.hold_us < 0:
        return f"until the watermark is {duration(-side.hold_us)} before {side.time}"
    return f"until the watermark is {duration(side.hold_us)} past {side.time}"
