"""Tables of TPC-H, small and dense: keys meet, dates lie around those of the query."""

import datetime as dt
from collections.abc import Callable
from random import Random

from tests.queries.corpus import schemas
from tests.queries.draw import Draw, Shape, lines
from tests.queries.hints import Value

Row = dict[str, Value | None]
SIZES = {"region": 5, "nation": 12, "supplier": 12, "customer": 20, "part": 20, "partsupp": 60}
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = [
    "FRANCE",
    "GERMANY",
    "BRAZIL",
    "CANADA",
    "SAUDI_ARABIA",
    "INDIA",
    "CHINA",
    "RUSSIA",
    "KENYA",
    "PERU",
    "IRAN",
    "JAPAN",
]
REGION_OF = (3, 3, 1, 1, 4, 2, 2, 3, 0, 1, 4, 2)


def rows(hints: dict[str, list[Value]], shape: Shape) -> dict[str, list[Row]]:
    """All eight tables."""
    draw = Draw(hints, shape)
    counts = {t: n if n <= 12 else int(n * shape.wide) for t, n in SIZES.items()}
    found = {t: [_row(draw, t, n, counts) for n in range(count)] for t, count in counts.items()}
    orders = int(shape.rows / 3)
    found["orders"] = [_row(draw, "orders", n, counts) for n in range(orders)]
    parts = [(r["ps_partkey"], r["ps_suppkey"]) for r in found["partsupp"]]
    found["lineitem"] = []
    for order, line in lines(draw.random, shape.rows, (1, 2, 3, 7)):
        row = _row(draw, "lineitem", line, counts) | {"l_orderkey": order % orders + 1, "l_linenumber": line}
        row["l_partkey"], row["l_suppkey"] = draw.random.choice(parts)
        found["lineitem"].append(row | _dates(draw, row))
    return found


def _dates(draw: Draw, row: Row) -> Row:
    """An order comes, is shipped and received within weeks; some late."""
    known = "l_receiptdate" if "l_receiptdate" in draw.hints else "l_shipdate"
    day = row[known]
    if not isinstance(day, dt.date):
        return {}
    near = {name: day + dt.timedelta(days=draw.random.randint(*span)) for name, span in _NEAR[known].items()}
    return near | ({"l_receiptdate": row["l_receiptdate"]} if draw.random.random() < 0.1 else {})


_NEAR = {  # days from one date to the others
    "l_shipdate": {"l_commitdate": (-15, 30), "l_receiptdate": (-3, 30)},
    "l_receiptdate": {"l_commitdate": (-25, 5), "l_shipdate": (-30, 0)},
}


def _row(draw: Draw, table: str, number: int, counts: dict[str, int]) -> Row:
    row: Row = {}
    for name, kind in schemas("tpch")[table]:
        made = _SPECIAL.get(name)
        row[name] = made(draw.random, number, counts) if made else draw.value(name, kind)
    return row


def _key(table: str) -> Callable[[Random, int, dict[str, int]], Value]:
    return lambda random, _, counts: random.randint(1, counts[table])


def _phone(random: Random, _: int, __: dict[str, int]) -> Value:
    return f"{random.choice((13, 31, 23, 29, 30, 18, 17, 11))}-{random.randint(100, 999)}"


def _number(_: Random, number: int, __: dict[str, int]) -> Value:
    return number + 1


def _zero(_: Random, number: int, __: dict[str, int]) -> Value:
    return number


_SPECIAL: dict[str, Callable[[Random, int, dict[str, int]], Value]] = {
    **dict.fromkeys(("c_custkey", "s_suppkey", "p_partkey", "o_orderkey"), _number),
    "r_regionkey": _zero,
    "r_name": lambda _, number, __: REGIONS[number],
    "n_nationkey": _zero,
    "n_name": lambda _, number, __: NATIONS[number].replace("_", " "),
    "n_regionkey": lambda _, number, __: REGION_OF[number],
    "s_nationkey": lambda random, _, counts: random.randrange(counts["nation"]),
    "c_nationkey": lambda random, _, counts: random.randrange(counts["nation"]),
    "ps_partkey": lambda _, number, counts: number % counts["part"] + 1,
    "ps_suppkey": lambda _, number, counts: number % counts["supplier"] + 1,
    "ps_availqty": lambda random, _, __: random.choice((1, 20, 9000)),
    "o_custkey": lambda random, _, counts: random.randint(1, max(1, counts["customer"] * 2 // 3)),
    "c_phone": _phone,
    "c_acctbal": lambda random, _, __: random.choice((-5, 10, 500, 9000)),
    "c_name": lambda _, number, __: f"Customer#{number}",
    "s_name": lambda _, number, __: f"Supplier#{number}",
}
