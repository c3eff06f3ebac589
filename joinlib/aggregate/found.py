"""Computes what aggregates are that are computed from bags.

Of a bag only what decides is read: all values of the groups, or those at one end.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from joinlib.aggregate import bag as bags
from joinlib.aggregate.extremes import ends
from joinlib.aggregate.finish import Found
from joinlib.aggregate.groups import with_hashes
from joinlib.aggregate.members import END, Members, computed, members
from joinlib.model.bags import Bag, bag_of
from joinlib.model.grouping import Grouping
from joinlib.model.inputs import HASH


def found(grouping: Grouping, groups: pa.RecordBatch, parts: Mapping[Bag, Sequence[pa.RecordBatch]]) -> Found:
    """Compute what is computed from bags, for each of these groups.

    parts: of each bag, sorted parts of which it is the sum; they may hold other groups too.
    """
    of: dict[tuple[Bag, str], Members] = {}
    values = {}
    for call in grouping.asked:
        bag = bag_of(call, grouping.changes)
        if bag is None:
            continue
        part = END.get(call.function, "all")  # what must be read of it
        if (bag, part) not in of:
            of[bag, part] = _members(grouping, groups, parts[bag], bag, part)
        values[call.name] = computed(call, of[bag, part])
    return values


def _members(
    grouping: Grouping, groups: pa.RecordBatch, parts: Sequence[pa.RecordBatch], bag: Bag, part: str
) -> Members:
    if part == "all":
        hashes = np.unique(groups.column(HASH).to_numpy())
        rows = bags.merged([with_hashes(p, hashes) for p in parts], grouping, bag)
    else:
        rows = ends(parts, groups, grouping, bag, last=part == "last")
    return members(rows, groups, grouping, bag)
