"""An aggregate of the rows of a table, for tests: as units compute it, without storing anything."""

from typing import Any

import pyarrow as pa

from joinlib.aggregate.bag import added, merged
from joinlib.aggregate.finish import finished
from joinlib.aggregate.members import computed, decoded, members
from joinlib.aggregate.partial import merge, of_distinct, partial
from joinlib.model.bags import bag_of, bags_of
from joinlib.sql.aggregate import aggregated
from joinlib.sql.graph import Scan, Table
from joinlib.sql.parse import parse
from joinlib.sql.scope import Scope


def aggregate(text: str, table: pa.Table) -> tuple[pa.DataType, pa.Array]:
    """Return type and value of an expression of aggregates over all rows."""
    sql = f"SELECT {text} AS r FROM o"
    found = aggregated(parse(sql), Scope(sql, {"o": Scan("o", Table("o", table.schema, None))}))
    assert found is not None
    grouping = found.grouping
    columns = {
        n: v.evaluate(lambda name: table[name.removeprefix("o.")], table.num_rows) for n, v in found.rows
    }
    rows = pa.table(columns).combine_chunks().to_batches()[0]
    parts, bags = [partial(rows, grouping)], {}
    for bag in bags_of(grouping):
        if not bag.rest:
            bags[bag] = added(rows, grouping, bag)
    for bag in [bag for bag in bags if bag.kind == "distinct"]:
        once = decoded(bags.pop(bag), grouping, bag)
        once = once.set_column(once.num_columns - 1, "$weight", pa.array([1] * once.num_rows, pa.int64()))
        parts.append(of_distinct(once, grouping, bag))
        bags |= {
            b: added(once, grouping, b) for b in bags_of(grouping) if b.rest and b.columns == bag.columns
        }
    whole = merge(parts, grouping)
    values: dict[str, Any] = {}
    for call in grouping.calls:
        if (bag := bag_of(call, grouping.changes)) is not None:
            values[call.name] = computed(
                call, members(merged([bags[bag]], grouping, bag), whole, grouping, bag)
            )
    return grouping.select[0][1].type, finished(whole, grouping, values).column(0)
