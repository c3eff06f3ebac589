"""In which order the inputs of inner joins by several keys become stages, and what was expected of it.

    (("lineitem", "orders"), "customer")    stage 0 joins lineitem and orders, stage 1 its rows and customer

Law: the answer is the same in any order. What is stored is not: a checkpoint keeps the order with which it began.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Shape = str | tuple["Shape", ...]  # an input by its alias, or a stage by its parts


@dataclass(frozen=True)
class Alternative:
    """A plan that was considered, and what it takes until all rows have come."""

    name: str
    shape: Shape
    seconds: float  # of one core
    bytes: float  # of the state
    levels: int  # exchanges of a batch


@dataclass(frozen=True)
class ExpectedPart:
    """What a stage reads of one input, or of an earlier stage, and stores."""

    shape: Shape
    rows: float
    bytes: float


@dataclass(frozen=True)
class StageOrder:
    """The order of one group of inputs."""

    shape: Shape
    why: str
    parts: tuple[ExpectedPart, ...] = ()  # none where nothing is known of the inputs
    alternatives: tuple[Alternative, ...] = ()


def leaves(shape: Shape) -> Iterator[str]:
    """Yield the inputs of a stage, those of earlier stages among them."""
    if isinstance(shape, str):
        yield shape
        return
    for part in shape:
        yield from leaves(part)


def shape_of(raw: Any) -> Shape:
    """Return a shape that was written as JSON."""
    return raw if isinstance(raw, str) else tuple(map(shape_of, raw))


def written(shape: Shape, named: Callable[[str], str] = str) -> str:
    """Return a shape for people: (lineitem, orders), customer."""
    if isinstance(shape, str):
        return named(shape)
    return ", ".join(
        f"({written(part, named)})" if isinstance(part, tuple) else named(part) for part in shape
    )
