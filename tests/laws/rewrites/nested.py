"""Random queries that nest every clause within every other, over small tables of whole numbers.

Every query has columns c0, c1, ...; LIMIT and row_number order by all columns, so that answers are certain.
"""

from dataclasses import dataclass, field
from random import Random

TABLES = {"t": ("k", "a", "b"), "u": ("k", "x", "y"), "v": ("a", "x", "z")}
Row = tuple[int | None, ...]


def rows(random: Random, most: int = 7) -> dict[str, list[Row]]:
    """Rows of the tables, with NULLs and duplicates; some tables are empty."""
    values = (None, 0, 1, 1, 2, 3)
    return {
        name: [tuple(random.choice(values) for _ in columns) for _ in range(random.choice((0, 3, most)))]
        for name, columns in TABLES.items()
    }


@dataclass
class Nested:
    """Draws queries."""

    random: Random
    aliases: int = 0
    ctes: list[tuple[str, int]] = field(default_factory=list)  # name and width of those that can be named

    def text(self, depth: int = 3) -> str:
        """A query whose derived tables and subqueries nest so deep."""
        if self.random.random() < 0.3:
            width = self.width()
            body = self.query(depth - 1, width)
            name = f"w{len(self.ctes)}"
            self.ctes.append((name, width))
            return f"WITH {name} AS ({body}) {self.query(depth, self.width())}"
        return self.query(depth, self.width())

    def width(self) -> int:
        return self.random.choice((1, 2, 2, 3))

    def alias(self) -> str:
        self.aliases += 1
        return f"q{self.aliases}"

    def query(self, depth: int, width: int) -> str:
        if depth <= 0:
            return self.plain(width)
        form = self.random.choice(
            (self.select, self.select, self.select, self.grouped, self.grouped, self.united, self.limited,
             self.windowed, self.top, self.distinct, self.rolled, self.lateral, self.semi, self.turned)
        )  # fmt: skip
        return form(depth, width)

    def plain(self, width: int) -> str:
        name = self.random.choice(list(TABLES))
        items = [f"{self.random.choice(TABLES[name])} AS c{i}" for i in range(width)]
        where = f" WHERE {self.random.choice(TABLES[name])} > 0" if self.random.random() < 0.3 else ""
        return f"SELECT {', '.join(items)} FROM {name}{where}"

    def source(self, depth: int) -> tuple[str, list[str]]:
        """A table, CTE or derived table with its alias; the columns, written with it."""
        alias = self.alias()
        if self.ctes and self.random.random() < 0.3:
            name, width = self.random.choice(self.ctes)
            return f"{name} AS {alias}", [f"{alias}.c{i}" for i in range(width)]
        if self.random.random() < 0.1:
            width = self.width()
            rows = ", ".join(self.constants(width) for _ in range(self.random.choice((1, 2, 3))))
            columns = [f"c{i}" for i in range(width)]
            return f"(VALUES {rows}) AS {alias}({', '.join(columns)})", [f"{alias}.{c}" for c in columns]
        if depth <= 0 or self.random.random() < 0.4:
            name = self.random.choice(list(TABLES))
            return f"{name} AS {alias}", [f"{alias}.{c}" for c in TABLES[name]]
        width = self.width()
        return f"({self.query(depth - 1, width)}) AS {alias}", [f"{alias}.c{i}" for i in range(width)]

    def constants(self, width: int) -> str:
        first = self.random.choice(("0", "1", "2"))  # a column of NULLs alone would have no type
        return f"({', '.join((first, *(self.random.choice(('1', '2', '3')) for _ in range(width - 1))))})"

    def joined(self, depth: int) -> tuple[str, list[str]]:
        """A source, or a join in parentheses."""
        text, columns = self.source(depth)
        if self.random.random() > 0.15:
            return text, columns
        more, others = self.source(depth - 1)
        word = self.random.choice(("JOIN", "LEFT JOIN", "FULL JOIN"))
        on = f"{self.random.choice(columns)} = {self.random.choice(others)}"
        return f"({text} {word} {more} ON {on})", columns + others

    def sources(self, depth: int) -> tuple[str, list[str]]:
        text, columns = self.joined(depth)
        for _ in range(self.random.choice((0, 1, 1, 2))):
            more, others = self.joined(depth - 1)
            one, two = self.random.choice(columns), self.random.choice(others)
            word = self.random.choice(("JOIN", "JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN"))
            on = f"{one} = {two}"
            if self.random.random() < 0.3 and word in ("JOIN", "LEFT JOIN"):
                on += f" AND {self.random.choice(columns)} < {self.random.choice(others)}"
            text += f" {word} {more} ON {on}"
            columns = columns + others
        return text, columns

    def value(self, columns: list[str], depth: int) -> str:
        one = self.random.choice(columns)
        drawn = self.random.random()
        if drawn < 0.6:
            return one
        if drawn < 0.75:
            return f"{one} + {self.random.choice(columns)}"
        if drawn < 0.85 or depth <= 0:
            return f"CASE WHEN {self.compared(columns)} THEN {one} ELSE 1 END"
        return self.scalar(columns, depth - 1)

    def compared(self, columns: list[str]) -> str:
        sign = self.random.choice(("=", "<>", "<", ">=", ">"))
        other = self.random.choice((*columns, "1", "2"))
        return f"{self.random.choice(columns)} {sign} {other}"

    def scalar(self, columns: list[str], depth: int) -> str:
        """An aggregate over another query, which may depend on a row of this one."""
        text, inner = self.source(depth)
        call = self.random.choice(
            ("max({})", "min({})", "sum({})", "count({})", "count(*)", "count(DISTINCT {}) + 1")
        )
        where = self.where(self.related(columns, inner), inner)
        return f"(SELECT {call.format(self.random.choice(inner))} FROM {text}{where})"

    def related(self, columns: list[str], inner: list[str]) -> list[str]:
        if self.random.random() < 0.35:
            return []
        found = [f"{self.random.choice(inner)} = {self.random.choice(columns)}"]
        if self.random.random() < 0.2:
            sign = self.random.choice(("=", "<", "<>"))
            found.append(f"{self.random.choice(columns)} {sign} {self.random.choice(inner)}")
        return found

    def where(self, parts: list[str], inner: list[str]) -> str:
        if self.random.random() < 0.3:
            parts = [*parts, self.compared(inner)]
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def test(self, columns: list[str], depth: int, top: bool) -> str:
        """[NOT] EXISTS or IN; among the ANDs of WHERE (`top`) it may depend on a row by any condition."""
        text, inner = self.sources(depth)
        parts = self.related(columns, inner)
        if top and parts and self.random.random() < 0.4:
            parts.append(f"{self.random.choice(inner)} <> {self.random.choice(columns)}")
        where = self.where(parts, inner)
        no = self.random.choice(("", "NOT "))
        if self.random.random() < 0.5:
            return f"{no}EXISTS (SELECT 1 FROM {text}{where})"
        return f"{self.random.choice(columns)} {no}IN (SELECT {self.random.choice(inner)} FROM {text}{where})"

    def condition(self, columns: list[str], depth: int) -> str:
        drawn = self.random.random()
        if drawn < 0.45 or depth <= 0:
            return self.compared(columns)
        if drawn < 0.65:
            return self.test(columns, depth - 1, True)
        if drawn < 0.75:
            return f"{self.random.choice(columns)} >= {self.scalar(columns, depth - 1)}"
        if drawn < 0.9:
            return f"({self.compared(columns)} OR {self.test(columns, depth - 1, False)})"
        return f"NOT ({self.compared(columns)} AND {self.test(columns, depth - 1, False)})"

    def filtered(self, depth: int) -> tuple[str, list[str]]:
        text, columns = self.sources(depth)
        parts = [self.condition(columns, depth) for _ in range(self.random.choice((0, 0, 1, 1, 2)))]
        return text + (f" WHERE {' AND '.join(parts)}" if parts else ""), columns

    def select(self, depth: int, width: int) -> str:
        text, columns = self.filtered(depth)
        items = [f"{self.value(columns, depth)} AS c{i}" for i in range(width)]
        return f"SELECT {', '.join(items)} FROM {text}"

    def distinct(self, depth: int, width: int) -> str:
        text, columns = self.filtered(depth)
        items = [f"{self.value(columns, 0)} AS c{i}" for i in range(width)]
        return f"SELECT DISTINCT {', '.join(items)} FROM {text}"

    def semi(self, depth: int, width: int) -> str:
        text, columns = self.source(depth)
        more, others = self.source(depth - 1)
        word = self.random.choice(("SEMI", "ANTI"))
        items = [f"{self.random.choice(columns)} AS c{i}" for i in range(width)]
        on = f"{self.random.choice(columns)} = {self.random.choice(others)}"
        return f"SELECT {', '.join(items)} FROM {text} LEFT {word} JOIN {more} ON {on}"

    def aggregate(self, columns: list[str]) -> str:
        one = self.random.choice(columns)
        call = self.random.choice(("sum({})", "count({})", "count(*)", "max({})", "count(DISTINCT {})"))
        if self.random.random() < 0.15:
            call = f"{call} FILTER (WHERE {self.compared(columns)})"
        return call.format(one)

    def grouped(self, depth: int, width: int) -> str:
        text, columns = self.filtered(depth)
        keys = self.random.sample(columns, min(width - 1, len(columns)))
        items = [*keys, *(self.aggregate(columns) for _ in range(width - len(keys)))]
        named = [f"{item} AS c{i}" for i, item in enumerate(items)]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        drawn, having = self.random.random(), ""
        if drawn < 0.2:
            having = " HAVING count(*) > 1"
        elif drawn < 0.35 and keys:
            having = f" HAVING max({self.random.choice(columns)}) >= {self.scalar(keys, depth - 2)}"
        return f"SELECT {', '.join(named)} FROM {text}{group}{having}"

    def rolled(self, depth: int, width: int) -> str:
        text, columns = self.sources(depth)
        if width < 2:
            return self.grouped(depth, width)
        keys = list(dict.fromkeys(self.random.choice(columns) for _ in range(width - 1)))
        items = [*keys, *(self.aggregate(columns) for _ in range(width - len(keys)))]
        if self.random.random() < 0.3:
            items[-1] = f"grouping({keys[0]})"
        named = [f"{item} AS c{i}" for i, item in enumerate(items)]
        word = self.random.choice(("ROLLUP", "CUBE"))
        return (
            f"SELECT {', '.join(named)} FROM {text} GROUP BY {word} ({', '.join(keys)}) HAVING count(*) > 0"
        )

    def united(self, depth: int, width: int) -> str:
        word = self.random.choice(
            ("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
        )
        one, two = self.query(depth - 1, width), self.query(depth - 1, width)
        return f"SELECT * FROM (({one}) {word} ({two})) AS {self.alias()}"

    def limited(self, depth: int, width: int) -> str:
        text, alias = self.query(depth - 1, width), self.alias()
        order = ", ".join(f"{alias}.c{i}{self.random.choice(('', ' DESC'))}" for i in range(width))
        more = self.random.choice(("", " OFFSET 1"))
        return f"SELECT * FROM ({text}) AS {alias} ORDER BY {order} LIMIT {self.random.randint(1, 3)}{more}"

    def windowed(self, depth: int, width: int) -> str:
        text, columns = self.filtered(depth)
        items = [self.value(columns, 0) for _ in range(width - 1)]
        call = self.random.choice(("sum({})", "max({})", "count(*)", "rank()", "dense_rank()", "count({})"))
        call = call.format(self.random.choice(columns))
        over = f"PARTITION BY {self.random.choice(columns)}" if self.random.random() < 0.7 else ""
        if "rank" in call or self.random.random() < 0.3:
            over += f" ORDER BY {self.random.choice(columns)}"
        value = f"{call} OVER ({over.strip()})"
        items.append(self.random.choice((value, f"{value} + 1")))
        named = [f"{item} AS c{i}" for i, item in enumerate(items)]
        return f"SELECT {', '.join(named)} FROM {text}"

    def top(self, depth: int, width: int) -> str:
        """The first rows of each value of a column."""
        inner, alias, outer = self.query(depth - 1, width), self.alias(), self.alias()
        order = ", ".join(f"{alias}.c{i}" for i in range(width))
        columns = ", ".join(f"{outer}.c{i}" for i in range(width))
        return (
            f"SELECT {columns} FROM (SELECT {alias}.*, row_number() OVER (PARTITION BY {alias}.c0 ORDER BY {order})"
            f" AS n FROM ({inner}) AS {alias}) AS {outer} WHERE {outer}.n <= {self.random.choice((1, 2))}"
        )

    def turned(self, depth: int, width: int) -> str:
        """PIVOT and UNPIVOT."""
        alias = self.alias()
        if self.random.random() < 0.5:
            call = self.random.choice(("sum", "max", "min"))
            text = (
                f"({self.query(depth - 1, 3)}) PIVOT ({call}(c2) FOR c1 IN (1 AS one, 2 AS two)) AS {alias}"
            )
            columns = [f"{alias}.{c}" for c in ("c0", "one", "two")]
        else:
            text = f"({self.query(depth - 1, 3)}) UNPIVOT (v FOR n IN (c1, c2)) AS {alias}"
            columns = [f"{alias}.{c}" for c in ("c0", "v")]
        items = [f"{self.random.choice(columns)} AS c{i}" for i in range(width)]
        return f"SELECT {', '.join(items)} FROM {text}"

    def lateral(self, depth: int, width: int) -> str:
        text, columns = self.source(depth)
        name, alias = self.random.choice(list(TABLES)), self.alias()
        inner, outer = TABLES[name], self.alias()
        on = f"{alias}.{self.random.choice(inner)} = {self.random.choice(columns)}"
        order = ", ".join(f"{alias}.{c}" for c in inner)
        query = self.random.choice(
            (
                f"SELECT {alias}.{inner[1]} AS m FROM {name} AS {alias} WHERE {on} ORDER BY {order} LIMIT 2",
                f"SELECT count(*) AS m FROM {name} AS {alias} WHERE {on}",
                f"SELECT {alias}.{inner[2]} AS m FROM {name} AS {alias} WHERE {on}",
            )
        )
        items = [f"{outer}.m AS c0", *(f"{self.random.choice(columns)} AS c{i}" for i in range(1, width))]
        return f"SELECT {', '.join(items)} FROM {text}, LATERAL ({query}) AS {outer}"
