"""What cannot be run is refused at its line and column, with the fix."""

import pytest

from joinlib.errors import SqlError
from joinlib.sql import analyse
from tests.unit.sql.tables import TABLES

J = "FROM orders o JOIN ships s ON o.id = s.order_id"
O_S = "SELECT o.id FROM orders o JOIN ships s ON o.id = s.order_id"

REFUSED = [
    # names
    ("SELECT o.id FROM order o JOIN ships s ON o.id = s.id", (1, 18), "did you mean 'orders'?"),
    (
        "SELECT o.idd FROM orders o JOIN ships s ON o.id = s.id",
        (1, 8),
        "o has no column idd; did you mean 'id'?",
    ),
    (
        "SELECT\n  id FROM orders o JOIN ships s ON o.id = s.id",
        (2, 3),
        "column id is ambiguous; write o.id or s.id",
    ),
    ("SELECT x.id FROM orders o JOIN ships s ON o.id = s.id", (1, 8), "x is not an input of this query"),
    ("SELECT o.id FROM orders o JOIN ships o ON o.id = o.id", (1, 32), "the name o is used twice"),
    ("SELECT o.place.town FROM orders o JOIN ships s ON o.id = s.id", (1, 8), "has no field town"),
    ("SELECT o.id.x FROM orders o JOIN ships s ON o.id = s.id", (1, 8), "o.id is BIGINT, it has no field x"),
    ("SELECT nope FROM orders o JOIN ships s ON o.id = s.id", (1, 8), "column nope is in no input"),
    ("SELECT q.* FROM orders o JOIN ships s ON o.id = s.id", (1, 8), "q is not an input of this query"),
    (
        "SELECT s.id FROM orders o LEFT SEMI JOIN ships s ON o.id = s.id",
        (1, 8),
        "LEFT SEMI JOIN does not return columns of",
    ),
    ("SELEC id FROM orders", (1, 1), "write one SELECT; SELEC begins none; did you mean 'SELECT'?"),
    ("SELEC", (1, 1), "write one SELECT; SELEC begins none; did you mean 'SELECT'?"),
    ("-- all\nsearch it", (2, 1), "search begins none; a query begins with one of: SELECT, WITH, VALUES"),
    ("DROP TABLE orders", (1, 1), "write one SELECT; DROP is not supported"),
    # the select list
    ("SELECT * FROM orders o JOIN ships s ON o.id = s.id", (1, 8), "write the columns instead of *"),
    ("SELECT o.id, s.id FROM orders o JOIN ships s ON o.id = s.id", (1, 14), "write s.id AS another_name"),
    ("SELECT o.id + 1 FROM orders o JOIN ships s ON o.id = s.id", (1, 8), "write o.id + 1 AS name"),
    ("SELECT NULL AS n FROM orders o JOIN ships s ON o.id = s.id", (1, 16), "has no type"),
    ("SELECT o.* EXCEPT (nope) FROM orders o JOIN ships s ON o.id = s.id", (1, 20), "nope is in no input"),
    (
        "SELECT o.* EXCEPT (place.city) FROM orders o JOIN ships s ON o.id = s.id",
        (1, 20),
        "not o.place.`city`",
    ),
    ("SELECT * EXCEPT (id) FROM orders o JOIN ships s ON o.id = s.id", (1, 18), "write o.id or s.id"),
    (
        "SELECT p.* EXCEPT (order_id, `sum`, at, ref) FROM pays p JOIN ships s ON p.order_id = s.id",
        (1, 10),
        "leaves no",
    ),
    (
        "SELECT o.at AT TIME ZONE 'Europe/Oslo' AS x FROM orders o JOIN ships s ON o.id = s.id",
        (1, 8),
        "AT TIME ZONE is not supported; write from_utc_timestamp(time, 'Europe/Oslo')",
    ),
    # clauses
    (O_S + " ORDER BY o.id", (1, 70), "ORDER BY has no meaning for a stream"),
    (O_S + " LIMIT 5", (1, 67), "LIMIT has no meaning for a stream"),
    (
        "WITH c AS (SELECT * FROM ships) SELECT o.id FROM orders o JOIN c ON o.id = c.id",
        (1, 6),
        "WITH is not",
    ),
    ("SELECT o.id FROM (SELECT * FROM orders) o JOIN ships s ON o.id = s.id", (1, 26), "derived table"),
    (O_S + " UNION ALL " + O_S, (1, 1), "UNION is not supported"),
    ("DELETE FROM orders", (1, 1), "DELETE is not supported"),
    (O_S + "; " + O_S, (1, 1), "there are 2 statements"),
    ("", (1, 1), "there are 0 statements"),
    ("SELECT 1 AS a", (1, 1), "there is no FROM"),
    # expressions
    (
        "SELECT row_number() OVER (ORDER BY o.id) AS n FROM orders o JOIN ships s ON o.id = s.id",
        (1, 8),
        "OVER",
    ),
    ("SELECT rand() AS r FROM orders o JOIN ships s ON o.id = s.id", (1, 8), "from run to run"),
    (O_S + " WHERE o.day < current_date", (1, 75), "from run to run"),
    ("SELECT a.i FROM orders a(i) JOIN ships s ON a.i = s.id", (1, 17), "name them in the select list"),
    ("SELECT o.id FROM orders o, ships s WHERE o.amount > 3", (1, 28), "write a condition on both"),
    (O_S + " WHERE o.at < now()", (1, 74), "from run to run"),
    ("SELECT uper(o.customer) AS c FROM orders o JOIN ships s ON o.id = s.id", (1, 8), "did you mean upper?"),
    (
        "SELECT nullif(o.id) AS c FROM orders o JOIN ships s ON o.id = s.id",
        (1, 8),
        "takes 2 arguments, not 1",
    ),
    ("SELECT o.amount & 1 AS c FROM orders o JOIN ships s ON o.id = s.id", (1, 8), "takes a whole number"),
    ("SELECT 1 / 0 AS c FROM orders o JOIN ships s ON o.id = s.id", (1, 8), "division by zero"),
    ("SELECT o.place + 1 AS c FROM orders o JOIN ships s ON o.id = s.id", (1, 8), "o.place is STRUCT"),
    (O_S + " WHERE o.id", (1, 67), "a condition is BOOLEAN, o.id is BIGINT"),
    (O_S + " AND o.day = 5", (1, 65), "cannot compare DATE with INT"),
    (O_S + " AND o.at > '2020-13-01'", (1, 65), "malformed text"),
    (O_S + " WHERE o.id = (SELECT 1)", (1, 82), "a subquery is only allowed as"),
    (
        O_S + " WHERE o.id = 1 OR EXISTS (SELECT 1 FROM pays p WHERE p.order_id = o.id)",
        (1, 94),
        "a subquery is only allowed",
    ),
    # joins
    (
        "SELECT o.id FROM orders o LEFT JOIN ships s ON o.amount > s.id",
        (1, 37),
        "only INNER JOIN works without one",
    ),
    (
        "SELECT o.id FROM orders o JOIN ships s ON o.amount > s.id JOIN pays p ON p.sum > s.id",
        (1, 64),
        "at most two inputs",
    ),
    ("SELECT o.id FROM orders o CROSS JOIN ships s", (1, 38), "every row would match every other"),
    (
        "SELECT o.id FROM orders o LEFT JOIN ships s",
        (1, 37),
        "this join has no ON; write ON with a condition",
    ),
    ("SELECT o.id FROM orders o NATURAL JOIN ships s", (1, 40), "write USING (...)"),
    ("SELECT o.id FROM orders o JOIN ships s USING (day)", (1, 47), "s has no column day"),
    (O_S + " JOIN pays p ON p.ref = s.carrier", (1, 66), "have no key in common"),
    (O_S + " JOIN cities c ON c.city <> o.customer", (1, 66), "or bounds one"),
    (O_S + " FULL JOIN cities c ON c.city = o.customer", (1, 71), "joined by INNER, LEFT, SEMI or ANTI JOIN"),
    (O_S + " JOIN cities c ON c.city = o.id", (1, 78), "write CAST(c.city AS BIGINT)"),
    ("SELECT o.id FROM cities c LEFT JOIN orders o ON o.customer = c.city", (1, 18), "begin with a stream"),
    ("SELECT c.city FROM cities c JOIN cities d ON c.city = d.city", (1, 20), "a query needs a stream"),
    (
        "SELECT o.id FROM orders o JOIN cities c ON o.customer = c.city LEFT JOIN ships s ON s.carrier = c.city",
        (1, 85),
        "lookups come last",
    ),
    ("SELECT o.id FROM orders o JOIN ships s ON o.id = s.carrier", (1, 43), "CAST(s.carrier AS BIGINT)"),
    ("SELECT o.id FROM orders o JOIN ships s ON o.day = s.at", (1, 43), "CAST(o.day AS TIMESTAMP)"),
    (
        "SELECT o.id FROM orders o LEFT JOIN ships s ON o.id = s.order_id LEFT JOIN pays p ON p.order_id = s.order_id",
        (1, 76),
        "s.order_id is NULL where the outer join below found no partner: join on o.id instead",
    ),
    (
        "SELECT o.id FROM orders o FULL JOIN ships s ON o.id = s.order_id LEFT JOIN pays p ON p.order_id = o.id",
        (1, 76),
        "o.id is NULL where the outer join below found no partner",
    ),
    (
        "SELECT id FROM orders WHERE customer NOT IN (SELECT city FROM cities)",
        (1, 29),
        "cities is a table, whose rows are looked up by key: a lookup cannot tell whether it has any row",
    ),
    (
        "SELECT id FROM orders WHERE customer <> ALL (SELECT city FROM cities WHERE city > 'b')",
        (1, 29),
        "orders.customer may be NULL; write ... IS NOT NULL in WHERE",
    ),
    ("SELECT id FROM orders WHERE id NOT IN (SELECT 1 FROM ships)", (1, 29), "NOT IN compares constants"),
    ("SELECT id FROM orders WHERE 1 <> ALL (SELECT id FROM ships)", (1, 29), "NOT IN compares constants"),
    ("SELECT id FROM orders WHERE id > ALL (SELECT id FROM ships)", (1, 46), "x <> ALL (SELECT ...)"),
    (
        "SELECT id FROM orders o WHERE EXISTS (SELECT count(*) FROM ships s WHERE s.id = o.id)",
        (1, 46),
        "EXISTS is always TRUE",
    ),
    (
        "SELECT id FROM orders o WHERE NOT EXISTS (SELECT max(id) + 1 FROM ships s WHERE s.id = o.id)",
        (1, 50),
        "NOT EXISTS is always FALSE",
    ),
    ("SELECT id FROM orders o WHERE id IN (SELECT max(id) FROM ships s)", (1, 45), "an aggregate in IN"),
    (
        "SELECT id FROM orders o WHERE EXISTS (SELECT nope FROM ships s WHERE s.id = o.id)",
        (1, 46),
        "column nope is in no input",
    ),
    ("SELECT id FROM orders WHERE id IN (SELECT id, at FROM ships)", (1, 29), "IN compares 1 values with 2"),
    (
        "SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM ships)",
        (1, 44),
        "only INNER JOIN works without one",
    ),
    # functions and clauses of others, each by its name
    (
        f"SELECT count(*) AS n {J} GROUP BY window(o.at, '5 minutes')",
        (1, 79),
        "group by date_trunc('hour', ...)",
    ),
    (f"SELECT window(o.at, '5 minutes').start AS w {J}", (1, 8), "function window is not supported"),
    (
        f"SELECT first(o.id) AS n {J} GROUP BY o.day",
        (1, 8),
        "first depends on the order of rows",
    ),
    (f"SELECT nope(o.id) AS n {J} GROUP BY o.day", (1, 8), "function nope is not supported"),
    (f"SELECT unix_timestamp() AS n {J}", (1, 8), "from run to run"),
    (f"SELECT shuffle(o.tags) AS n {J}", (1, 8), "from run to run"),
    (f"SELECT randstr(3, 0) AS n {J}", (1, 8), "from run to run"),
    (f"SELECT current_user AS n {J}", (1, 8), "from run to run"),
    (O_S + " SORT BY o.id", (1, 69), "leave it out"),
    ("SELECT o.id FROM orders o TABLESAMPLE (5 ROWS)", (1, 40), "ORDER BY ... LIMIT n"),
    (f"SELECT timestampdiff(EON, o.at, s.at) AS n {J}", (1, 22), "the unit of time is one of MICROSECOND"),
    (f"SELECT transform(o.tags, x -> x + nope) AS n {J}", (1, 35), "column nope is in no input"),
    (f"SELECT transform(o.tags, 1) AS n {J}", (1, 26), "takes a function such as x -> x + 1"),
    (f"SELECT o.customer RLIKE '(' AS n {J}", (1, 8), "the regular expression cannot be read"),
    (f"SELECT date_format(o.at, 'YYYY') AS n {J}", (1, 8), "the letter Y is not supported"),
    (f"SELECT o.tags[0:1] AS n {J}", (1, 8), "write slice(x, start, length)"),
    (
        f"SELECT o.id {J} WHERE o.id IN (SELECT p.order_id FROM pays p WHERE p.order_id IN (SELECT id FROM ships))",
        (1, 112),
        "EXISTS and IN within a subquery",
    ),
    (
        f"SELECT o.id {J} ASOF JOIN pays p MATCH_CONDITION (o.at >= p.at)",
        (1, 95),
        "MATCH_CONDITION in JOIN is not supported",
    ),
    (f"SELECT if(o.id = 1, 2, 3) + 1 / 0 AS c {J}", (1, 11), "division by zero"),
    (f"SELECT {' + '.join(['o.id'] * 30)} {J}", (1, 8), "+ ... has no name; write o.id + o.id"),
    # text that is no SQL
    ("SELECT o.id FROM orders o JOIN ships s ON (o.id = s.id", (1, 53), "Expecting )"),
    ("SELECT 'abc FROM orders", (1, 8), "a quote is not closed"),
]


@pytest.mark.parametrize(("sql", "place", "message"), REFUSED, ids=[sql[-60:] for sql, _, _ in REFUSED])
def test_refused(sql: str, place: tuple[int, int], message: str) -> None:
    """The error stands where the mistake is and says what to write instead."""
    with pytest.raises(SqlError) as e:
        analyse(sql, TABLES)

    assert message in str(e.value)
    assert (e.value.line, e.value.column) == place
