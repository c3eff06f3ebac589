"""The probes of a path join, ready to run: what `joinlib.path` says in numbers, with the names of columns.

    lineitem ─orderkey► orders │ ─custkey► customer        two legs, in the units of two keys

Law: whatever route the new rows of an input take, the tuples that come out at its end are the same.
"""

from dataclasses import dataclass

import pyarrow as pa

from joinlib.model.operator import Operator


@dataclass(frozen=True)
class Hop:
    """One probe: tuples are joined with an arrangement.

    `operator` is an inner join of two: child and side 0 are the tuples so far, 1 is the arrangement. Its sides
    say what columns there are and by which of them keys are equal; classes besides the key are among these. Its
    bounds and its residual predicate are what this probe decides.
    """

    operator: Operator
    side: int  # of the PathStage: which rows are asked
    after: bool  # as they are after the batch; False: as they were before it
    asker: int  # the input of the graph whose key asks (dpPick's l)


@dataclass(frozen=True)
class Leg:
    """The probes of a route in one unit, one after the other.

    Without a hop, tuples are only cut to `schema`: rows that wait, or that come in by another key.
    """

    route: int  # its number among all routes of the path join
    hops: tuple[Hop, ...]
    schema: pa.Schema  # the columns that tuples leave with, without a hash; changes end with their weights
