"""In which order the inputs of inner joins by several keys become stages, or by which paths they are joined, and what
was expected of it.

    (("lineitem", "orders"), "customer")    stage 0 joins lineitem and orders, stage 1 its rows and customer

Law: the answer is the same in any order. What is stored is not: a checkpoint keeps what it began with.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from joinlib.model.pathorder import PathOrder, path_order_of

Shape = str | tuple["Shape", ...]  # an input by its alias, or a stage by its parts


@dataclass(frozen=True)
class Alternative:
    """A plan that was considered, and what it takes until all rows have come."""

    name: str
    shape: Shape  # of paths: all inputs
    seconds: float  # of one core
    bytes: float  # of the state
    levels: int  # exchanges of a batch
    arrangements: tuple[tuple[str, str], ...] = ()  # of paths: which inputs are stored, and by which keys


@dataclass(frozen=True)
class ExpectedPart:
    """What a stage reads of one input, or of an earlier stage, and stores."""

    shape: Shape
    rows: float
    bytes: float


@dataclass(frozen=True)
class StageOrder:
    """The order of one group of inputs."""

    shape: Shape  # of paths: all inputs
    why: str
    parts: tuple[ExpectedPart, ...] = ()  # none where nothing is known of the inputs
    alternatives: tuple[Alternative, ...] = ()
    paths: PathOrder | None = None  # None: they become stages

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs that are joined."""
        return tuple(leaves(self.shape))

    @property
    def kept(self) -> Any:
        """What a checkpoint keeps, as values for JSON."""
        return self.shape if self.paths is None else self.paths.plain()

    def called(self, names: Mapping[str, str]) -> "StageOrder":
        """Return the order with other names of inputs."""
        return replace(
            self,
            shape=_called(self.shape, names),
            parts=tuple(replace(part, shape=_called(part.shape, names)) for part in self.parts),
            alternatives=tuple(_alternative(found, names) for found in self.alternatives),
        )


def _alternative(found: Alternative, names: Mapping[str, str]) -> Alternative:
    stored = tuple((names.get(one, one), key) for one, key in found.arrangements)
    return replace(found, shape=_called(found.shape, names), arrangements=stored)


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


def kept_of(raw: Any) -> Shape | PathOrder:
    """Return what a checkpoint has kept of an order."""
    return path_order_of(raw) if isinstance(raw, dict) else shape_of(raw)


def written(shape: Shape) -> str:
    """Return a shape for people: (lineitem, orders), customer."""
    if isinstance(shape, str):
        return shape
    return ", ".join(f"({written(part)})" if isinstance(part, tuple) else part for part in shape)


def _called(shape: Shape, names: Mapping[str, str]) -> Shape:
    if isinstance(shape, str):
        return names.get(shape, shape)
    return tuple(_called(part, names) for part in shape)
