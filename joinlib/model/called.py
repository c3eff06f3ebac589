"""How the text of a query calls what its plan has names of its own for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Called:
    """An alias of the plan, which differs from all others.

    FROM bid ... (SELECT ... FROM bid)         alias bid_2, name bid
    WITH m AS (...) ... FROM m AS a            alias a, name a, part m
    x < (SELECT max(y) FROM ...)               alias s, no name
    """

    alias: str
    name: str  # the alias in the text; empty: the text has none
    part: str  # the CTE, view or derived table that is read; empty: an input
