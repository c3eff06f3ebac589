"""Names that SQL has functions for, so that those of users need others: a call would be read as SQL's.

Law: whatever a name in a query is compared with before it is looked for among functions of users is here.
"""

from joinlib.expr.functions import AGGREGATES, FUNCTIONS, VOLATILE
from joinlib.sql import syntax, window
from joinlib.sql.parse import KEPT
from joinlib.sql.rewrite import asof_syntax, generators, window_calls

_OUTER = tuple(f"{name}_outer" for name in generators.GENERATORS)
_WORDS = (
    "all",
    "any",
    "array_sort",
    "between",
    "case",
    "descriptor",
    "distinct",
    "exists",
    "grouping",
    "grouping_id",
)
_MORE = (
    "in",
    "interval",
    "lateral",
    "not",
    "or",
    "and",
    "over",
    "range",
    "row",
    "rows",
    "stack",
    "table",
    "values",
)
RESERVED = frozenset(
    name.lower()
    for name in (
        *(*FUNCTIONS, *AGGREGATES, *VOLATILE),
        *(*window.FUNCTIONS, *window.SAME),
        *(*generators.GENERATORS, *_OUTER, *generators.OTHER),
        *(*syntax.HIGHER, *KEPT),
        *(*window_calls.NAMES, "cumulate", "window_time"),
        *(*asof_syntax.NOW, *_WORDS, *_MORE),
    )
)
