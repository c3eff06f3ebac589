"""The join blocks that are compared: those of TPC-H Q3, Q5, Q9 and Q10, and the four tables of TPC-DS of the papers.

Each of TPC-H as it is, with its filters, and without them (`q3-all`), where results are larger than inputs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

REVENUE = "l_extendedprice * (1 - l_discount) AS revenue"


@dataclass(frozen=True)
class Block:
    """A join of tables on equalities, with filters."""

    name: str
    select: str
    tables: tuple[str, ...]  # in the order of the text
    equal: tuple[str, ...]
    filters: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()  # the order for engines that join in the order of the text; none: as it is
    data: str = "tpch"
    hands: tuple[tuple[str, ...], ...] = ()  # orders worth a run, chosen by hand

    def sql(self, order: Sequence[str] = ()) -> str:
        """The query, with its tables in this order."""
        where = "\n  AND ".join((*self.equal, *self.filters))
        return f"SELECT {self.select}\nFROM {', '.join(order or self.tables)}\nWHERE {where}\n"

    @property
    def whole(self) -> "Block":
        """Without its filters."""
        return replace(self, name=f"{self.name}-all", filters=())

    @property
    def related(self) -> frozenset[frozenset[str]]:
        """Pairs of tables that an equality relates, what follows from two equalities included."""
        classes: list[set[str]] = []
        for text in self.equal:
            columns = set(text.split(" = "))
            met = [c for c in classes if c & columns]
            classes = [c for c in classes if c not in met] + [columns.union(*met)]
        pairs = (
            frozenset((TABLES[a.split("_")[0]], TABLES[b.split("_")[0]]))
            for c in classes
            for a in c
            for b in c
        )
        return frozenset(pair for pair in pairs if len(pair) == 2)

    def orders(self) -> Iterator[tuple[str, ...]]:
        """All orders in which each table is related to one before it; the first two in the order of the text."""
        related = self.related

        def longer(done: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
            if len(done) == len(self.tables):
                yield done
            for table in self.tables:
                near = table not in done and any(frozenset((table, d)) in related for d in done)
                first = len(done) == 1 and self.tables.index(table) < self.tables.index(done[0])
                if near and not first:
                    yield from longer((*done, table))

        for table in self.tables:
            yield from longer((table,))


TABLES: Mapping[str, str] = {  # by the letters that their columns begin with
    "c": "customer", "o": "orders", "l": "lineitem", "s": "supplier", "n": "nation", "r": "region", "p": "part",
    "ps": "partsupp", "wr": "web_returns", "cr": "catalog_returns", "sr": "store_returns",
}  # fmt: skip
LETTERS = {table: letters for letters, table in TABLES.items()}
Q3 = Block(
    "q3",
    f"l_orderkey, {REVENUE}, o_orderdate, o_shippriority",
    ("customer", "orders", "lineitem"),
    ("c_custkey = o_custkey", "l_orderkey = o_orderkey"),
    (
        "c_mktsegment = 'BUILDING'",
        "o_orderdate < DATE '1995-03-15'",
        "l_shipdate > DATE '1995-03-15'",
    ),
)
Q5 = Block(
    "q5",
    f"n_name, {REVENUE}",
    ("customer", "orders", "lineitem", "supplier", "nation", "region"),
    (
        "c_custkey = o_custkey",
        "l_orderkey = o_orderkey",
        "l_suppkey = s_suppkey",
        "c_nationkey = s_nationkey",
        "s_nationkey = n_nationkey",
        "n_regionkey = r_regionkey",
    ),
    ("r_name = 'ASIA'", "o_orderdate >= DATE '1994-01-01'", "o_orderdate < DATE '1995-01-01'"),
    peers=("region", "nation", "customer", "orders", "lineitem", "supplier"),
    hands=(
        ("region", "nation", "customer", "orders", "lineitem", "supplier"),
        ("region", "nation", "supplier", "lineitem", "orders", "customer"),
        ("orders", "lineitem", "customer", "supplier", "nation", "region"),
        ("orders", "customer", "lineitem", "supplier", "nation", "region"),
    ),
)
Q9 = Block(
    "q9",
    f"n_name, o_orderdate, {REVENUE}, ps_supplycost * l_quantity AS cost",
    ("part", "supplier", "lineitem", "partsupp", "orders", "nation"),
    (
        "s_suppkey = l_suppkey",
        "ps_suppkey = l_suppkey",
        "ps_partkey = l_partkey",
        "p_partkey = l_partkey",
        "o_orderkey = l_orderkey",
        "s_nationkey = n_nationkey",
    ),
    ("p_name LIKE '%green%'",),
    peers=("part", "lineitem", "partsupp", "supplier", "nation", "orders"),
    hands=(
        ("part", "partsupp", "lineitem", "supplier", "nation", "orders"),
        ("part", "lineitem", "partsupp", "supplier", "nation", "orders"),
        ("part", "lineitem", "orders", "partsupp", "supplier", "nation"),
        ("nation", "supplier", "partsupp", "part", "lineitem", "orders"),
    ),
)
Q10 = Block(
    "q10",
    f"c_custkey, c_name, {REVENUE}, c_acctbal, n_name, c_phone",
    ("customer", "orders", "lineitem", "nation"),
    ("c_custkey = o_custkey", "l_orderkey = o_orderkey", "c_nationkey = n_nationkey"),
    ("o_orderdate >= DATE '1993-10-01'", "o_orderdate < DATE '1994-01-01'", "l_returnflag = 'R'"),
)
FOUR = Block(
    "four",
    "c_current_addr_sk, c_customer_sk, wr_order_number, cr_order_number, sr_ticket_number",
    ("customer", "web_returns", "catalog_returns", "store_returns"),
    (
        "c_current_addr_sk = wr_refunded_addr_sk",
        "c_current_addr_sk = cr_refunded_addr_sk",
        "c_current_addr_sk = sr_addr_sk",
    ),
    data="tpcds",
)
BLOCKS: Mapping[str, Block] = {
    block.name: block for one in (Q3, Q5, Q9, Q10) for block in (one, one.whole)
} | {FOUR.name: FOUR}
