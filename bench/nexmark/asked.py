"""The queries that are compared, and how many rows are in their answers.

Both systems are given the texts of `tests/queries/nexmark`; Flink wants two words in backticks.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import sqlglot

TEXTS = Path(__file__).parents[2] / "tests" / "queries" / "nexmark"
RESERVED = re.compile(r"\b(dateTime|final)\b")


@dataclass(frozen=True)
class Asked:
    """One query."""

    name: str
    inputs: tuple[str, ...]
    changing: bool  # is what was told taken back? Then results are told as a changelog
    joins: bool = False

    @property
    def text(self) -> str:
        """As a stream is asked."""
        return re.sub("--.*\n", "", (TEXTS / f"{self.name}.sql").read_text())

    @property
    def for_flink(self) -> str:
        """With its keywords quoted."""
        return RESERVED.sub(r"`\1`", self.text)

    @property
    def for_duckdb(self) -> str:
        """As DuckDB is asked for the answer."""
        own = TEXTS / "duckdb" / f"{self.name}.sql"
        return (
            own.read_text() if own.exists() else sqlglot.transpile(self.text, read="spark", write="duckdb")[0]
        )


QUERIES = {
    q.name: q
    for q in (
        Asked("q3", ("person", "auction"), changing=False, joins=True),
        Asked("q4", ("auction", "bid"), changing=True, joins=True),
        Asked("q5", ("bid",), changing=False),
        Asked("q7", ("bid",), changing=False),
        Asked("q8", ("person", "auction"), changing=False, joins=True),
        Asked("q9", ("auction", "bid"), changing=True, joins=True),
        Asked("q18", ("bid",), changing=True),
        Asked("q20", ("auction", "bid"), changing=False, joins=True),
    )
}
