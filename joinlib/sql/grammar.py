"""Syntax of time and of table functions that Spark's grammar lacks.

    FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(at), INTERVAL 10 MINUTES))       Flink
    FROM TABLE(SESSION(TABLE bids PARTITION BY k, DESCRIPTOR(at), INTERVAL 10 MINUTES))
    ASOF JOIN b MATCH_CONDITION (a.at >= b.at)                                Snowflake

TABLE before a name in an argument says nothing; PARTITION BY after it becomes the call `$partitioned(table, key)`.
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenType

PARTITIONED = "$partitioned"
KEYWORDS = {**Spark.Tokenizer.KEYWORDS, "MATCH_CONDITION": TokenType.MATCH_CONDITION}
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_BEFORE = (TokenType.L_PAREN, TokenType.COMMA, TokenType.FARROW)


class ArgumentParser(Spark.Parser):  # type: ignore[misc, valid-type]
    """Reads PARTITION BY after a table that is the argument of a function."""

    ADD_JOIN_ON_TRUE = False  # a LEFT JOIN without ON is a mistake, and one ON TRUE is none

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        found = super()._parse_lambda(alias)
        if found is not None and self._match(TokenType.PARTITION_BY):
            table = found.expression if isinstance(found, exp.Kwarg) else found
            by = exp.Anonymous(this=PARTITIONED, expressions=[table.copy(), self._parse_disjunction()])
            if table is found:
                return by
            table.replace(by)
        return found


def plain(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens, with words that are names where they stand told from keywords."""
    return list(_plain(tokens))


def _plain(tokens: Sequence[Token]) -> Iterator[Token]:
    for at, token in enumerate(tokens):
        kind = token.token_type
        after = [t.token_type for t in tokens[at + 1 : at + 4]]
        if (
            kind == TokenType.TABLE
            and at
            and tokens[at - 1].token_type in _BEFORE
            and after[:1]
            and after[0] in _NAMES
        ):
            continue
        clause = kind == TokenType.WINDOW and after[1:] == [TokenType.ALIAS, TokenType.L_PAREN]
        called = kind == TokenType.SESSION and after[:1] == [TokenType.L_PAREN]
        if (kind == TokenType.WINDOW and not clause) or called:
            token.token_type = TokenType.VAR
        yield token
