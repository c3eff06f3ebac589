"""A nested query with a key over rows that come and go, for outputs that take changes."""

from collections import Counter

from tests.spark.trial import Trial

SQL = (
    "SELECT g.s AS s, g.n AS n, p.v AS v FROM (SELECT s, count(*) AS n FROM orders GROUP BY s) g"
    " LEFT JOIN (SELECT s, max(v) AS v FROM payments GROUP BY s HAVING count(*) > 1) p ON g.s = p.s"
)
ORDERS = [  # of each batch: some groups come, some go, one comes back
    [("a", 1, "insert"), ("a", 2, "insert"), ("b", 3, "insert"), ("c", 4, "insert")],
    [("a", 1, "delete"), ("b", 3, "delete"), ("d", 5, "insert"), ("d", 6, "insert")],
    [("b", 7, "insert"), ("c", 4, "delete"), ("d", 5, "delete")],
]
PAYMENTS = [[("a", 10), ("d", 7), ("b", 1)], [("a", 30), ("b", 2)], [("a", 20), ("d", 5), ("b", 9)]]
ANSWER = Counter([("a", 1, 30), ("b", 1, 9), ("d", 1, 7)])


def fill(trial: Trial) -> None:
    """The inputs, a file of each a batch."""
    one = {"maxFilesPerBatch": 1, "orderBy": "name"}
    trial.input("orders", "s STRING, id BIGINT, op STRING", changes={"op": "op"}, **one)
    trial.input("payments", "s STRING, v BIGINT", **one)
    for at, (orders, payments) in enumerate(zip(ORDERS, PAYMENTS, strict=True)):
        trial.write("orders", str(at), orders)
        trial.write("payments", str(at), payments)
