"""The three ways of routing rows to units; each stage uses one.

HashRouter        by the top bits of the key's hash; a row is stored and probes in one unit
RuleRouter        nothing is stored: by shares of observed keys, counted for the next rule
                  (BS-Join, section 4)
BicliqueRouter    stored in one unit, probing others; hot keys are counted (BiStream, section 3.2)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from joinlib.model.inputs import Biclique
from joinlib.route.biclique import BOTH, PROBE, Rules, Sent, routed
from joinlib.route.census import Census
from joinlib.route.hotspot import RoutingRule
from joinlib.route.split import split


class Router(Protocol):
    """Routes the batches of rows of a map task."""

    def parts(self, number: int, sequence: int, rows: pa.RecordBatch) -> Iterator[Sent]:
        """Yield every copy of the rows of input `number`, by unit; `sequence` numbers the batches of rows."""
        ...

    @property
    def censuses(self) -> Mapping[str, Census]:
        """The statistics so far, each with its folder's name below that of all statistics."""
        ...


@dataclass(frozen=True)
class HashRouter:
    """Routes by hash; `units` is a power of two."""

    units: int
    censuses: Mapping[str, Census] = field(default_factory=dict)

    def parts(self, number: int, sequence: int, rows: pa.RecordBatch) -> Iterator[Sent]:
        return (Sent(unit, BOTH, part) for unit, part in split(rows, self.units))


@dataclass(frozen=True)
class RuleRouter:
    """Routes by `rule`, which is None as long as batches were even."""

    units: int
    rule: RoutingRule | None
    census: Census

    def parts(self, number: int, sequence: int, rows: pa.RecordBatch) -> Iterator[Sent]:
        hashes, bits = rows.column(0).to_numpy(), self.units.bit_length() - 1
        plain = (hashes >> np.uint64(64 - bits)).astype(np.int64)  # there are at least two units
        homes = self.rule.units(hashes) if self.rule else plain
        self.census.see(hashes, homes, plain)
        return (Sent(u, BOTH, part) for u, part in split(rows, self.units, homes if self.rule else None))

    @property
    def censuses(self) -> Mapping[str, Census]:
        return {"": self.census}


@dataclass(frozen=True)
class BicliqueRouter:
    """Routes by join-biclique.

    censuses: a census for each input, by its number; empty if no key can be hot.
    """

    route: Biclique
    rules: Rules = field(default_factory=Rules)
    censuses: Mapping[str, Census] = field(default_factory=dict)

    def parts(self, number: int, sequence: int, rows: pa.RecordBatch) -> Iterator[Sent]:
        parts = list(routed(rows, self.route, number, self.rules, sequence))
        if (census := self.censuses.get(str(number))) is not None:
            kept = [p for p in parts if p.role != PROBE]
            stored = np.repeat([p.unit for p in kept], [p.rows.num_rows for p in kept])
            hashes = [p.rows.column(0).to_numpy() for p in kept]  # in cells, not those of `rows`
            census.see(np.concatenate([np.zeros(0, np.uint64), *hashes]), stored, stored)
        return iter(parts)


def default_router(units: int, route: Biclique | None) -> Router:
    """Return the router for rows that are not counted."""
    return HashRouter(units) if route is None else BicliqueRouter(route)
