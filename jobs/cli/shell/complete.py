"""What could be typed next. Pure: the text before the cursor and the tables in, words out."""

import re
from collections.abc import Iterator, Mapping, Sequence

from joinlib.expr.functions import AGGREGATES, FUNCTIONS

Tables = Mapping[str, Sequence[str]]  # columns by table
KEYWORDS = (
    *("SELECT", "FROM", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "ON", "USING", "WHERE", "GROUP BY"),
    *("HAVING", "ORDER BY", "LIMIT", "UNION ALL", "DISTINCT", "AND", "OR", "NOT", "IN", "EXISTS", "BETWEEN"),
    *(
        "LIKE",
        "IS NULL",
        "IS NOT NULL",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "AS",
        "INTERVAL",
        "WITH",
        "OVER",
    ),
    *(
        "PARTITION BY",
        "EXPLAIN",
        "WATCH",
        "SHOW TABLES",
        "DESCRIBE",
        "CREATE VIEW",
        "DROP VIEW",
        "HELP",
        "EXIT",
    ),
)
_WORD = re.compile(r"[A-Za-z_]\w*$")
_DOTTED = re.compile(r"([A-Za-z_]\w*)\.(\w*)$")
_FIRST = "|".join(sorted({word.split()[0] for word in KEYWORDS if word != "AS"}))
_NAMED = re.compile(
    rf"\b(?:from|join|,)\s+`?([A-Za-z_]\w*)`?(?:\s+(?:as\s+)?(?!(?:{_FIRST})\b)([A-Za-z_]\w*))?",
    re.IGNORECASE,
)
_TABLE_NEXT = re.compile(r"\b(?:from|join|describe|desc|table|view)\s+\w*$", re.IGNORECASE)


def words(text: str, tables: Tables) -> tuple[str, list[str]]:
    """Return what is begun at the end of a text, and what it could become, the likeliest first."""
    if dotted := _DOTTED.search(text):
        columns = _aliases(text, tables).get(dotted[1].lower(), ())
        return dotted[2], _beginning(dotted[2], columns)
    word = _WORD.search(text)
    begun = word[0] if word else ""
    if _TABLE_NEXT.search(text):
        return begun, _beginning(begun, tables)
    if not begun:
        return "", []
    named = _aliases(text, tables)
    known = (
        *dict.fromkeys(column for columns in named.values() for column in columns),
        *named,
        *tables,
        *KEYWORDS,
        *sorted({*FUNCTIONS, *AGGREGATES}),
    )
    return begun, _beginning(begun, known)


def _beginning(begun: str, known: Sequence[str] | Tables) -> list[str]:
    return list(dict.fromkeys(word for word in known if word.lower().startswith(begun.lower())))


def _aliases(text: str, tables: Tables) -> dict[str, Sequence[str]]:
    """The columns by each name that FROM and JOIN give a table."""
    folded = {name.lower(): name for name in tables}
    return dict(_named(text, folded, tables))


def _named(text: str, folded: Mapping[str, str], tables: Tables) -> Iterator[tuple[str, Sequence[str]]]:
    for table, alias in _NAMED.findall(text):
        if name := folded.get(table.lower()):
            yield table.lower(), tables[name]
            if alias:
                yield alias.lower(), tables[name]
