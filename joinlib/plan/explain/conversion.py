"""Explains what became of the joins that a text names (Two-Step-Convert)."""

from collections.abc import Iterator

from joinlib.model.decided import Conversion


def logical(found: Conversion) -> Iterator[str]:
    """Draw the operators that the text names."""
    if found.joins:
        yield from found.before


def converted(found: Conversion) -> Iterator[str]:
    """Draw them with the joins that one operator may do as one node."""
    if found.joins:
        yield from found.after


def became(found: Conversion) -> Iterator[str]:
    """Say of each group of joins what it became, and why."""
    for join in found.joins:
        yield f"{', '.join(join.inputs)}: {join.became}"
        yield from (f"  key  {key}" for key in join.keys)
        yield f"  why  {join.why}"
        yield from (f"  cost {price}" for price in join.prices)
