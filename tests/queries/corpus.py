"""The queries, as texts: which there are, and which tables they are over."""

import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import sqlglot
from sqlglot import exp

T = TypeVar("T")
HERE = Path(__file__).parent
DIVISOR = "cast(pmc AS DECIMAL(15, 4))"
ADAPTED = {  # as long as no evening sale has come, the quotient is an error in Spark too
    "tpcds-q90": (DIVISOR, f"nullif({DIVISOR}, 0)"),
}
BENCHMARKS = ("tpch", "tpcds", "imdb", "nexmark", "patterns")


@dataclass(frozen=True)
class Query:
    """One text of a benchmark."""

    benchmark: str
    name: str  # q1, q14a, ...
    official: str

    @property
    def text(self) -> str:
        """The official text, but for what `ADAPTED` says."""
        old, new = ADAPTED.get(self.title, ("", ""))
        assert old in self.official
        return self.official.replace(old, new) if old else self.official

    @property
    def title(self) -> str:
        """How a test calls it."""
        return f"{self.benchmark}-{self.name}"

    @property
    def streamed(self) -> str:
        """The text without an ORDER BY at its end that no LIMIT follows: it says nothing of contents."""
        depth, start = 0, None
        for token in sqlglot.tokenize(self.text, dialect="spark"):
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0 and token.text.upper() == "ORDER BY":
                start = token.start
            elif depth == 0 and token.text.upper() == "LIMIT":
                start = None
        return self.text if start is None else self.text[:start]

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it reads."""
        return _tables(self.benchmark, self.text)


@cache
def schemas(benchmark: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Of each table its columns and their types, in Spark's words."""
    folder = "nexmark" if benchmark == "patterns" else benchmark
    lines = (HERE / folder / "tables.txt").read_text().splitlines()
    return {name: _columns(columns) for name, columns in (line.split(": ", 1) for line in lines)}


def _columns(told: str) -> tuple[tuple[str, str], ...]:
    pairs = (column.split(" ", 1) for column in told.split(", "))
    return tuple((name, kind) for name, kind in pairs)


@cache
def queries(benchmark: str) -> tuple[Query, ...]:
    """All of a benchmark, in the order of their numbers; the patterns as their file has them."""
    if benchmark == "patterns":
        return tuple(_patterns((HERE / benchmark / "queries.sql").read_text()))
    files = sorted(
        (HERE / benchmark).glob("q*.sql"), key=lambda file: (len(file.stem.rstrip("ab")), file.stem)
    )
    return tuple(Query(benchmark, file.stem, file.read_text()) for file in files)


def _patterns(text: str) -> Iterator[Query]:
    for part in text.split("-- @ ")[1:]:
        head, _, body = part.partition("\n")
        yield Query("patterns", head.split(":")[0].strip(), body.strip() + "\n")


def query(title: str) -> Query:
    """That of `tpcds-q14a`."""
    benchmark, name = title.split("-")
    return next(q for q in queries(benchmark) if q.name == name)


@cache
def _tables(benchmark: str, text: str) -> tuple[str, ...]:
    if benchmark in ("nexmark", "patterns"):  # sqlglot does not read TABLE(HOP(TABLE bid, ...)) as it is
        listed = re.findall(
            r"\b(?:FROM|JOIN|TABLE)\s+(\w+)(?: (?:AS )?[A-Z], (\w+))?", re.sub("--.*", "", text)
        )
        words = {name for names in listed for name in names}
    else:
        words = {t.name.lower() for t in sqlglot.parse_one(text, dialect="spark").find_all(exp.Table)}
    return tuple(name for name in schemas(benchmark) if name in words)


def chosen(benchmark: str, count: int) -> list[Query]:
    """So many of a benchmark, drawn by STREAMJOIN_QUERIES_SEED; all of them if STREAMJOIN_QUERIES=all."""
    return drawn(benchmark, queries(benchmark), count)


def drawn(name: str, known: Sequence[T], count: int) -> list[T]:
    """So many of what is called so, in their order."""
    if os.environ.get("STREAMJOIN_QUERIES") == "all":
        return list(known)
    seed = f"{os.environ.get('STREAMJOIN_QUERIES_SEED', '19')} {name}"
    picked = random.Random(seed).sample(known, count)
    return [one for one in known if one in picked]
