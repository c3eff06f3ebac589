"""Tables of TPC-DS, small and dense: days lie around those of the query, what is returned has been sold."""

import datetime as dt
from decimal import Decimal
from typing import Any

from tests.queries.corpus import schemas
from tests.queries.days import day, days
from tests.queries.draw import Draw, Shape, lines
from tests.queries.hints import Value

Row = dict[str, Any]
SIZES = {
    "item": 16, "customer": 14, "customer_address": 10, "customer_demographics": 12, "household_demographics": 10,
    "store": 5, "warehouse": 3, "promotion": 4, "reason": 4, "ship_mode": 4, "web_site": 3, "web_page": 4,
    "call_center": 3, "catalog_page": 5, "income_band": 3, "time_dim": 30,
}  # fmt: skip
TARGETS = (  # what a key points at, by the end of its name
    ("date_sk", "date_dim"), ("time_sk", "time_dim"), ("item_sk", "item"), ("customer_sk", "customer"),
    ("cdemo_sk", "customer_demographics"), ("hdemo_sk", "household_demographics"), ("addr_sk", "customer_address"),
    ("store_sk", "store"), ("promo_sk", "promotion"), ("reason_sk", "reason"), ("call_center_sk", "call_center"),
    ("catalog_page_sk", "catalog_page"), ("ship_mode_sk", "ship_mode"), ("warehouse_sk", "warehouse"),
    ("web_page_sk", "web_page"), ("web_site_sk", "web_site"), ("income_band_sk", "income_band"),
)  # fmt: skip
FACTS = {"store": ("ss", "sr", "ticket"), "catalog": ("cs", "cr", "order"), "web": ("ws", "wr", "order")}
ORDERS = (1, 2, 3, 6, 17)  # lines of one
COUNTRIES = ("United States", "United States", "Peru")
PAST = dt.date(1900, 1, 1)
FIRST_DAY = 2415021  # the key of that day


def rows(hints: dict[str, list[Value]], shape: Shape) -> dict[str, list[Row]]:
    """All 24 tables."""
    draw = Draw(hints, shape)
    found = {"date_dim": [_day(d) for d in days(hints, draw.random)]}
    keys: dict[str, list[int]] = {"date_dim": [r["d_date_sk"] for r in found["date_dim"]]}
    counts = {t: n if n <= 5 else int(n * shape.wide) for t, n in SIZES.items()}
    keys |= {t: list(range(1, n + 1)) for t, n in counts.items()}
    for table, count in counts.items():
        found[table] = [_dimension(draw, table, n, keys) for n in range(1, count + 1)]
    found["inventory"] = [_row(draw, "inventory", keys) for _ in range(shape.rows)]
    for row in found["inventory"]:
        row["inv_quantity_on_hand"] = draw.random.choice((0, 1, 2, 150, 600, None))
    for channel, (sold, back, order) in FACTS.items():
        sales, returns = f"{channel}_sales", f"{channel}_returns"
        found[sales] = _sales(draw, sales, sold, order, keys)
        found[returns] = [
            _returned(draw, returns, back, sold, row, keys)
            for row in draw.random.sample(found[sales], shape.rows // 3)
        ]
    return found


def _row(draw: Draw, table: str, keys: dict[str, list[int]]) -> Row:
    row: Row = {}
    for name, kind in schemas("tpcds")[table]:
        target = next((t for end, t in TARGETS if name.endswith(end)), None)
        if target is None:
            row[name] = draw.value(name, kind)
        else:
            row[name] = None if draw.random.random() < 0.03 else draw.random.choice(keys[target])
    return row


def _dimension(draw: Draw, table: str, number: int, keys: dict[str, list[int]]) -> Row:
    """Its own key comes first; its id is shared by two versions."""
    row = _row(draw, table, keys)
    own, shown, *_ = row
    row[own] = number
    if shown.endswith("_id"):
        row[shown] = f"{table[:4].upper()}{(number + 1) // 2:04d}"
    if table == "time_dim":
        row |= _time(draw)
    if table == "customer_address":
        row["ca_country"] = draw.random.choice(COUNTRIES)
    if table == "customer":
        row["c_birth_country"] = draw.random.choice(COUNTRIES).upper()
    return row


def _time(draw: Draw) -> Row:
    """A moment of a day; the hours of the query are the most frequent."""
    hour = int(draw.value("t_hour", "INT", 0)) % 24  # type: ignore[arg-type]
    minute = draw.random.choice((5, 29, 30, 45))
    meals = {"breakfast": range(6, 10), "lunch": range(11, 14), "dinner": range(17, 22)}
    meal = next((m for m, hours in meals.items() if hour in hours), None)
    told = {"t_time": hour * 3600 + minute * 60, "t_hour": hour, "t_minute": minute, "t_second": 0}
    return told | {"t_am_pm": "AM" if hour < 12 else "PM", "t_meal_time": meal}


def _day(date: dt.date) -> Row:
    known = day(date) | {"d_date_sk": FIRST_DAY + (date - PAST).days, "d_date_id": f"D{(date - PAST).days}"}
    return {name: known.get(name) for name, _ in schemas("tpcds")["date_dim"]}


def _sales(draw: Draw, table: str, sold: str, order: str, keys: dict[str, list[int]]) -> list[Row]:
    """Lines of one order share who bought, when and where."""
    shared: dict[int, Row] = {}
    found = []
    for number, _ in lines(draw.random, draw.shape.rows, ORDERS):
        row = _row(draw, table, keys)
        common = shared.setdefault(number, row)
        own = (
            f"{sold}_item_sk",
            f"{sold}_quantity",
            f"{sold}_promo_sk",
            f"{sold}_warehouse_sk",
            f"{sold}_ship_date_sk",
        )
        same = {name: common[name] for name in row if name.endswith("_sk") and name not in own}
        row |= same | {f"{sold}_{order}_number": number}
        if row.get(f"{sold}_ship_date_sk") and row[f"{sold}_sold_date_sk"]:
            near = row[f"{sold}_sold_date_sk"] + draw.random.choice((3, 10, 40, 70, 100, 130))
            row[f"{sold}_ship_date_sk"] = min(keys["date_dim"], key=lambda sk: abs(sk - near))
        found.append(row)
    return found


def _returned(draw: Draw, table: str, back: str, sold: str, sale: Row, keys: dict[str, list[int]]) -> Row:
    """The return of a sale: its item, its order, and mostly its buyer."""
    row = _row(draw, table, keys)
    for name in row:
        end = name.removeprefix(f"{back}_").removeprefix("refunded_").removeprefix("returning_")
        source = next((f"{sold}_{p}{end}" for p in ("", "bill_") if f"{sold}_{p}{end}" in sale), None)
        certain = end in ("item_sk", "ticket_number", "order_number")
        if source and (certain or (end.endswith("_sk") and draw.random.random() < 0.8)):
            row[name] = sale[source]
    amount = next(n for n in row if n.endswith(("_return_amt", "_return_amount")))
    row[amount] = Decimal(draw.random.choice((5, 50, 150, 12000)))
    for name in ("cr_refunded_cash", "cr_reversed_charge", "cr_store_credit"):
        if name in row:
            row[name] = Decimal(draw.random.choice((1, 2, 90)))
    return row
