"""What the parser knows and nobody reads is refused, whatever it is."""

import pytest
from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.sql import analyse, supported
from joinlib.sql.supported import READ, check
from tests.unit.sql.tables import TABLES

UNREAD = [(kind, name) for kind in READ for name in kind.arg_types if name not in READ[kind]]
TEXTS = {
    "SELECT o.* REPLACE (1 AS id) FROM orders o": "* REPLACE",
    "SELECT o.* RENAME (id AS i) FROM orders o": "* RENAME",
    "SELECT count(o.*) AS n FROM orders o": "* is only allowed",
    "SELECT count(* EXCEPT (id)) AS n FROM orders o": "count(* EXCEPT",
    "SELECT o.* FROM orders o TABLESAMPLE (10 PERCENT)": "TABLESAMPLE",
    "SELECT o.id FROM orders FOR SYSTEM_TIME AS OF o.at o": "role: table",
    "SELECT o.id FROM orders FOR VERSION AS OF 1": "role: table",
    "SELECT /*+ BROADCAST(s) */ o.id FROM orders o": "hints are not read",
    "SELECT o.id FROM orders o PIVOT (sum(id) FOR id IN (1, 2))": "PIVOT",
    "SELECT o.id FROM orders o QUALIFY row_number() OVER (ORDER BY id) = 1": "QUALIFY",
    "SELECT o.id FROM orders o WINDOW w AS (ORDER BY id)": "WINDOW",
    "SELECT first(o.id) IGNORE NULLS AS n FROM orders o": "IGNORE NULLS",
    "SELECT max(o.id) RESPECT NULLS AS n FROM orders o": "RESPECT NULLS",
    "SELECT max(o.id IGNORE NULLS) AS n FROM orders o": "IGNORE NULLS",
    "SELECT max(o.id) WITHIN GROUP (ORDER BY o.id) AS n FROM orders o": "WITHIN GROUP",
    "SELECT CAST(o.id AS STRING COLLATE UTF8_LCASE) AS n FROM orders o": "COLLATE",
    "SELECT o.customer COLLATE UTF8_LCASE AS n FROM orders o": "COLLATE",
    "SELECT CAST(o.id AS INT DEFAULT 1 ON CONVERSION ERROR) AS n FROM orders o": "DEFAULT in CAST",
    "SELECT o.id FROM orders(5) o": "orders(5) in FROM",
    "SELECT o.id FROM orders o WHERE o.id IN ships": "IN takes a list",
    "SELECT o.id FROM orders o WHERE o.customer LIKE 'a' ESCAPE '!!'": "ESCAPE takes one character",
    "SELECT o.id FROM orders o WHERE o.id BETWEEN SYMMETRIC 1 AND 2": "SYMMETRIC",
    "SELECT DISTINCT ON (o.id) o.id FROM orders o": "DISTINCT ON",
    "SELECT count(*) AS n FROM orders o GROUP BY o.id WITH ROLLUP": "ROLLUP",
    "SELECT count(*) AS n FROM orders o GROUP BY o.id, CUBE(o.id)": "CUBE",
    "SELECT count(*) AS n FROM orders o GROUP BY GROUPING SETS ((o.id))": "GROUPING SETS",
    "SELECT count(*) AS n FROM orders o GROUP BY o.id WITH TOTALS": "TOTALS",
    "SELECT o.id FROM orders o LATERAL VIEW explode(o.tags) t AS x": "LATERAL",
    "SELECT o.id FROM orders o FOR UPDATE": "FOR UPDATE",
    "SELECT o.id INTO z FROM orders o": "SELECT INTO",
    "SELECT o.id FROM orders o LEFT INNER JOIN ships s ON o.id = s.id": "LEFT INNER JOIN",
    "SELECT o.id FROM orders o FULL CROSS JOIN ships s": "FULL CROSS JOIN",
    "SELECT o.id FROM orders o ASOF JOIN ships s ON o.id = s.id": "ASOF JOIN",
    "SELECT o.id FROM orders o WHERE EXISTS (SELECT 1 FROM ships s WHERE s.id = o.id LIMIT 1)": "LIMIT",
    "SELECT o.id FROM orders o WHERE o.id IN (SELECT id FROM ships UNION SELECT 1)": "UNION",
}


@pytest.mark.parametrize(("kind", "name"), UNREAD, ids=[f"{k.__name__}-{n}" for k, n in UNREAD])
def test_every_other_part(kind: type[exp.Expr], name: str) -> None:
    """Whatever node has it, and whatever its value: a word, a flag, another node."""
    for part in ("x", True, exp.to_identifier("x"), [exp.to_identifier("x")]):
        node = kind(this=exp.DType.INT) if kind is exp.DataType else kind()
        node.set(name, part)

        with pytest.raises(SqlError):
            check("", exp.Select(expressions=[node]))


def test_the_parts_are_the_parsers() -> None:
    """A part that the parser does not know would stand for one that it calls otherwise."""
    assert [(k, n) for k in READ for n in READ[k] if n not in k.arg_types] == []


def test_other_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand kinds of nodes only those are read of which it is said what of them is."""
    kinds = [
        k
        for k in vars(exp).values()
        if isinstance(k, type) and issubclass(k, exp.Expression) and k not in READ
    ]

    monkeypatch.setattr(supported, "written", lambda node: node.key)  # an empty node has no text

    assert len(kinds) > 500
    for kind in kinds:
        with pytest.raises(SqlError):
            check("", exp.Select(expressions=[kind()]))


@pytest.mark.parametrize(("sql", "word"), TEXTS.items(), ids=TEXTS)
def test_texts(sql: str, word: str) -> None:
    """As people write them."""
    with pytest.raises(SqlError) as e:
        analyse(sql, TABLES)

    assert word in str(e.value)
    assert e.value.line == 1


@pytest.mark.parametrize(
    ("stars", "expected"),
    [
        ("p.* EXCEPT (at, REF), s.id", ["order_id", "sum", "id"]),
        ("* EXCEPT (p.at, s.order_id, id)", ["order_id", "sum", "ref", "carrier", "at"]),
    ],
)
def test_except(stars: str, expected: list[str]) -> None:
    """Columns are named as anywhere; the others come out in their order."""
    found = analyse(f"SELECT {stars} FROM pays p JOIN ships s ON p.order_id = s.order_id", TABLES)

    assert [name for name, _ in found.select] == expected


def test_except_of_merged_columns() -> None:
    """A USING column goes by its name; the inputs' own cannot be named by a star any more."""
    found = analyse("SELECT * EXCEPT (order_id, s.at) FROM pays p FULL JOIN ships s USING (order_id)", TABLES)

    assert [name for name, _ in found.select] == ["sum", "at", "ref", "id", "carrier"]
