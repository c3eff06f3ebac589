"""What was decided about the joins of a query, for people: nothing reads it."""

from dataclasses import dataclass
from typing import Literal

Became = Literal["one operator", "paths", "stages"]


@dataclass(frozen=True)
class JoinDecision:
    """What became of an inner join of three inputs or more."""

    inputs: tuple[str, ...]  # by their aliases
    keys: tuple[str, ...]  # what is equal in which of them
    became: Became
    why: str
    prices: tuple[
        str, ...
    ] = ()  # what each way is expected to take; none where nothing is known of the inputs


@dataclass(frozen=True)
class Conversion:
    """The operators that a text names, the same with each group of joins as one, and what each of these became."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    joins: tuple[JoinDecision, ...] = ()
