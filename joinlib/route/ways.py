"""How do rows go to units? Three ways, one of which a stage has.

Hashed    by the top bits of the key's hash, which stores and probes in one unit
Ruled     nothing is stored: by shares of the keys that were seen, counted for the next rule (BS-Join, section 4)
Spread    join-biclique: stored in one unit, probing others; hot keys are counted (BiStream, section 3.2)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from joinlib.route.biclique import BOTH, PROBE, Rules, Sent, routed
from joinlib.route.census import Census
from joinlib.route.config import Biclique
from joinlib.route.hotspot import Rule
from joinlib.route.split import split


class Way(Protocol):
    """What a map task asks for each batch of rows."""

    def parts(self, number: int, sequence: int, rows: pa.RecordBatch) -> Iterator[Sent]:
        """Every copy of the rows of input `number`, by unit."""
        ...

    @property
    def seen(self) -> Mapping[str, Census]:
        """What was counted, by the folder it goes to, under that of all counts."""
        ...


@dataclass(frozen=True)
class Hashed:
    """`units`: a power of two."""

    units: int
    seen: Mapping[str, Census] = field(default_factory=dict)

    def parts(self, number: int, sequence: int, rows: pa.RecordBatch) -> Iterator[Sent]:
        return (Sent(unit, BOTH, part) for unit, part in split(rows, self.units))


@dataclass(frozen=True)
class Ruled:
    """`rule`: None as long as batches were even."""

    units: int
    rule: Rule | None
    census: Census

    def parts(self, number: int, sequence: int, rows: pa.RecordBatch) -> Iterator[Sent]:
        hashes, bits = rows.column(0).to_numpy(), self.units.bit_length() - 1
        plain = (hashes >> np.uint64(64 - bits)).astype(np.int64)  # a rule is for more units than one
        homes = self.rule.units(hashes) if self.rule else plain
        self.census.see(hashes, homes, plain)
        return (Sent(u, BOTH, part) for u, part in split(rows, self.units, homes if self.rule else None))

    @property
    def seen(self) -> Mapping[str, Census]:
        return {"": self.census}


@dataclass(frozen=True)
class Spread:
    """`seen`: a census for each input, by its number; none where no key can be hot."""

    route: Biclique
    rules: Rules = field(default_factory=Rules)
    seen: Mapping[str, Census] = field(default_factory=dict)

    def parts(self, number: int, sequence: int, rows: pa.RecordBatch) -> Iterator[Sent]:
        parts = list(routed(rows, self.route, number, self.rules, sequence))
        if (census := self.seen.get(str(number))) is not None:
            stored = np.repeat([p.unit for p in parts], [p.rows.num_rows * (p.role != PROBE) for p in parts])
            census.see(rows.column(0).to_numpy(), stored, stored)
        return iter(parts)


def unruled(units: int, route: Biclique | None) -> Way:
    """The way of rows that are not counted."""
    return Hashed(units) if route is None else Spread(route)
