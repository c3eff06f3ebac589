"""Draws queries in which any two operators may meet: every one reads and makes the columns k, v, j and t.

A query is told twice, in the product's words and in DuckDB's; {now_a} stands there for now() of the stream a.
"""

from dataclasses import dataclass
from random import Random

STREAMS = "abc"
KINDS = (
    "k BIGINT",
    "j STRING",
    "v BIGINT",
    "t TIMESTAMP",
    "id BIGINT",
)  # of a stream; a table has low and high
SHOWN = "k, v, j, t"
_NEAR = "{y}.t BETWEEN {x}.t - INTERVAL 2 SECONDS AND {x}.t + INTERVAL 2 SECONDS"
_ALL = "k NULLS FIRST, v NULLS FIRST, j NULLS FIRST, t NULLS FIRST"


OPERATORS = (
    "filtered", "recent", "joined", "looked_up", "tested", "grouped", "rolled", "windows", "sessions", "over", "first", "last",
    "as_of", "united", "limited", "scalar",
)  # fmt: skip
_OFTEN = (*OPERATORS, "joined", "grouped", "over", "as_of", "united")


@dataclass(frozen=True)
class Told:
    """A relation with the columns k, v, j and t. `key`: those of which each value has one row."""

    ours: str
    duck: str
    key: tuple[str, ...] = ()

    @property
    def forms(self) -> tuple[str, str]:
        return self.ours, self.duck


@dataclass
class Crossed:
    """Draws one query. `clocked`: the streams have event times; `selfish`: it often reads a stream joined with itself."""

    random: Random
    clocked: bool = True
    selfish: bool = False
    aliases: int = 0

    def query(self, depth: int) -> Told:
        """A query whose sources nest so deep."""
        told: Told = getattr(self, self.random.choice(_OFTEN))(depth)
        return told

    # --- what is read ----------------------------------------------------------------------------------------------

    def _source(self, depth: int) -> tuple[str, str]:
        """In both dialects, to stand in FROM; its alias follows."""
        if depth <= 0 or self.random.random() < 0.25:
            name = self.random.choice(STREAMS)
            if self.selfish and self.random.random() < 0.8:
                name = f"({self._with_itself(name)})"
            return name, name
        ours, duck = self.query(depth - 1).forms
        return f"({ours})", f"({duck})"

    def _alias(self) -> str:
        self.aliases += 1
        return f"q{self.aliases}"

    def _of(self, depth: int, text: str, key: tuple[str, ...] = ()) -> Told:
        """`text` over one source, {s}, with the alias {x}."""
        alias, (ours, duck) = self._alias(), self._source(depth)
        return Told(text.format(s=f"{ours} {alias}", x=alias), text.format(s=f"{duck} {alias}", x=alias), key)

    def _of_two(self, depth: int, text: str) -> Told:
        """`text` over two sources, {s} and {u}, with the aliases {x} and {y}."""
        x, y, one, two = self._alias(), self._alias(), self._source(depth), self._source(depth - 1)
        ours, duck = (
            text.format(s=f"{s} {x}", u=f"{u} {y}", x=x, y=y) for s, u in zip(one, two, strict=True)
        )
        return Told(ours, duck)

    def _pick(self, *texts: str) -> str:
        return self.random.choice(texts)

    # --- operators -------------------------------------------------------------------------------------------------

    def filtered(self, depth: int) -> Told:
        where = self._pick("v > 0", "j = 'x'", "k IS NOT NULL OR v = 1", "t IS NOT NULL")
        return self._of(depth, f"SELECT {SHOWN} FROM {{s}} WHERE {where}")

    def recent(self, depth: int) -> Told:
        """Rows that come and go with time."""
        if not self.clocked:
            return self.filtered(depth)
        name = self.random.choice(STREAMS)
        where = self._pick(
            "t > {now} - INTERVAL 2 SECONDS",
            "t + INTERVAL 1 SECOND <= {now}",
            "t BETWEEN {now} - INTERVAL 3 SECONDS AND {now} - INTERVAL 1 SECOND",
        )
        text = f"SELECT {SHOWN} FROM {name} WHERE {where}"
        return Told(text.format(now="now()"), text.format(now=f"{{now_{name}}}"))

    def joined(self, depth: int) -> Told:
        """By an equality, comparisons, or both: of two streams, what has strategies of its own."""
        word = self._pick("JOIN", "JOIN", "JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN")
        on = ["{x}." + (c := self._pick("k", "k", "v", "j")) + " = {y}." + c]
        if word == "JOIN":
            more = ("{x}.v < {y}.v", "{x}.v >= {y}.v", "abs({x}.v - {y}.v) <= 1", "{x}.k <> {y}.v")
            on = self.random.choice(([*on], [*on, self._pick(*more)], [self._pick(*more)]))
        if self.random.random() < 0.4:
            on.append(_NEAR)
        columns = self._pick("{x}.k, {y}.v, {x}.j, {x}.t", "{y}.k, {x}.v, {y}.j, {y}.t")
        return self._of_two(depth, f"SELECT {columns} FROM {{s}} {word} {{u}} ON {' AND '.join(on)}")

    def _with_itself(self, name: str) -> str:
        """A join of a stream with itself, which may store it once."""
        x, y = self._alias(), self._alias()
        equal = self._pick("{x}.k = {y}.k", "{x}.j = {y}.j", "{x}.k = {y}.k AND {x}.j = {y}.j")
        on = self._pick(equal, f"{equal} AND {{x}}.v < {{y}}.v", "{x}.v < {y}.v", "abs({x}.v - {y}.v) <= 1")
        near = f" AND {_NEAR}" if "=" in on[:10] and self.random.random() < 0.3 else ""
        columns = self._pick("{x}.k, {y}.v, {x}.j, {y}.t", "{y}.k, {x}.v, {y}.j, {y}.t")
        text = f"SELECT {columns} FROM {name} {{x}} JOIN {name} {{y}} ON {on}{near}"
        return text.format(x=x, y=y)

    def looked_up(self, depth: int) -> Told:
        word = self._pick("JOIN p ON", "LEFT JOIN p ON", "LEFT SEMI JOIN p ON", "LEFT ANTI JOIN p ON")
        on = self._pick("{x}.k = p.k", "{x}.j = p.j AND {x}.v >= p.low", "{x}.v BETWEEN p.low AND p.high")
        value = "{x}.v" if "SEMI" in word or "ANTI" in word else "p.v"
        return self._of(depth, f"SELECT {{x}}.k, {value}, {{x}}.j, {{x}}.t FROM {{s}} {word} {on}")

    def tested(self, depth: int) -> Told:
        """By a condition over other rows."""
        where = self._pick(
            "{x}.k IN (SELECT {y}.k FROM {u})",
            "{x}.k NOT IN (SELECT {y}.v FROM {u})",
            "EXISTS (SELECT 1 FROM {u} WHERE {y}.k = {x}.k AND {y}.v > {x}.v)",
            "NOT EXISTS (SELECT 1 FROM {u} WHERE {y}.j = {x}.j)",
            "{x}.v = 2 OR EXISTS (SELECT 1 FROM {u} WHERE {y}.k = {x}.k)",
        )
        return self._of_two(depth, f"SELECT {{x}}.k, {{x}}.v, {{x}}.j, {{x}}.t FROM {{s}} WHERE {where}")

    def scalar(self, depth: int) -> Told:
        value = self._pick(
            "(SELECT max({y}.v) FROM {u} WHERE {y}.k = {x}.k)",
            "(SELECT count(*) FROM {u} WHERE {y}.j = {x}.j)",
            "(SELECT count(DISTINCT {y}.k) FROM {u})",
        )
        return self._of_two(depth, f"SELECT {{x}}.k, {value} AS v, {{x}}.j, {{x}}.t FROM {{s}}")

    def _aggregate(self) -> str:
        call = self._pick(
            "sum(v)", "count(*)", "max(v)", "min(v)", "count(DISTINCT v)", "sum(DISTINCT v)", "count(t)"
        )
        return f"{call} FILTER (WHERE v > 0)" if self.random.random() < 0.2 else call

    def grouped(self, depth: int) -> Told:
        having = self._pick(
            "", "", " HAVING count(*) > 1", " HAVING sum(v) > 1", " HAVING count(DISTINCT j) < 2"
        )
        if self.random.random() < 0.2:
            items = f"CAST(NULL AS BIGINT) AS k, {self._aggregate()} AS v, max(j) AS j, min(t) AS t"
            return self._of(depth, f"SELECT {items} FROM {{s}}{having}")
        by = self._pick("k", "j", "k, j", "k, j, t")
        j, t, k = (
            ("max(j) AS j", "j")["j" in by],
            ("max(t) AS t", "t")["t" in by],
            ("min(k) AS k", "k")["k" in by],
        )
        return self._of(
            depth,
            f"SELECT {k}, {self._aggregate()} AS v, {j}, {t} FROM {{s}} GROUP BY {by}{having}",
            tuple(by.split(", ")),
        )

    def rolled(self, depth: int) -> Told:
        sets = self._pick("ROLLUP (k, j)", "CUBE (k, j)", "GROUPING SETS ((k), (j), (k, j))")
        having = self._pick("count(*) > 0", "count(*) > 1", "count(DISTINCT v) > 0")
        value = self._pick(self._aggregate(), "grouping(k)")
        items = f"k, {value} AS v, j, max(t) AS t"
        return self._of(depth, f"SELECT {items} FROM {{s}} GROUP BY {sets} HAVING {having}")

    def windows(self, depth: int) -> Told:
        """Groups by windows of time."""
        x, (ours, duck) = self._alias(), self._source(depth)
        call = self._aggregate()
        mine = (
            f"SELECT k, {call} AS v, max(j) AS j, window_end AS t FROM TUMBLE({ours}, t, INTERVAL 2 SECONDS) {x}"
            " GROUP BY k, window_start, window_end"
        )
        end = "time_bucket(INTERVAL 2 SECONDS, t, TIMESTAMP '1970-01-01') + INTERVAL 2 SECONDS"
        theirs = f"SELECT k, {call} AS v, max(j) AS j, {end} AS t FROM {duck} {x} WHERE t IS NOT NULL GROUP BY k, {end}"
        return Told(mine, theirs, ("k", "t"))

    def sessions(self, depth: int) -> Told:
        x, (ours, duck) = self._alias(), self._source(depth)
        mine = (
            f"SELECT k, count(*) AS v, max(j) AS j, session_window.end AS t FROM {ours} {x}"
            " GROUP BY k, session_window(t, '2 seconds')"
        )
        begun = f"SELECT *, t - lag(t) OVER (PARTITION BY k ORDER BY t) <= INTERVAL 2 SECONDS AS on_ FROM {duck} {x} WHERE t IS NOT NULL"
        numbered = f"SELECT *, count(*) FILTER (WHERE on_ IS NOT TRUE) OVER (PARTITION BY k ORDER BY t) AS n FROM ({begun})"
        theirs = f"SELECT k, count(*) AS v, max(j) AS j, max(t) + INTERVAL 2 SECONDS AS t FROM ({numbered}) GROUP BY k, n"
        return Told(mine, theirs, ("k", "t"))

    def over(self, depth: int) -> Told:
        by = self._pick("PARTITION BY k", "PARTITION BY j", "")
        call = self._pick("sum(v)", "count(*)", "max(v)", "rank()", "dense_rank()", "row_number()", "lag(v)")
        order = (
            _ALL
            if call in ("row_number()", "lag(v)")
            else self._pick("t NULLS FIRST", "v NULLS FIRST, t NULLS LAST")
        )
        frame = self._pick("", "RANGE BETWEEN INTERVAL 1 SECOND PRECEDING AND CURRENT ROW")
        if "()" in call or call == "lag(v)" or "v " in order:
            frame = ""
        return self._of(depth, f"SELECT k, {call} OVER ({by} ORDER BY {order} {frame}) AS v, j, t FROM {{s}}")

    def first(self, depth: int) -> Told:
        """The first rows of each partition."""
        by, (call, end) = (
            self._pick("k", "j", "k, j"),
            self.random.choice(
                (
                    ("row_number()", "<= 1"),
                    ("row_number()", "<= 2"),
                    ("rank()", "<= 1"),
                    ("row_number()", "= 1"),
                )
            ),
        )
        order = _ALL if call == "row_number()" else "v DESC NULLS LAST"
        key = tuple(by.split(", ")) if end in ("<= 1", "= 1") and call == "row_number()" else ()
        window = f"{call} OVER (PARTITION BY {by} ORDER BY {order})"
        return self._of(depth, f"SELECT {SHOWN} FROM {{s}} QUALIFY {window} {end}", key)

    def last(self, depth: int) -> Told:
        """Of each partition the newest row."""
        window = "row_number() OVER (PARTITION BY k ORDER BY t DESC NULLS LAST, v NULLS FIRST, j NULLS FIRST)"
        return self._of(depth, f"SELECT {SHOWN} FROM {{s}} QUALIFY {window} = 1", ("k",))

    def as_of(self, depth: int) -> Told:
        """The nearest row that is not after, perhaps not before a tolerance."""
        x, y, (ours, duck), (ours_y, duck_y) = (
            self._alias(),
            self._alias(),
            self._source(depth),
            self._source(depth - 1),
        )
        sign, late = self.random.choice(((">=", "DESC"), (">", "DESC"), ("<=", "ASC"), ("<", "ASC")))
        outer = self.random.random() < 0.5
        bound = ""
        if sign[0] == ">" and self.random.random() < 0.4:
            bound = f"y.t >= x.t - INTERVAL {self._pick('1', '2')} SECONDS"
        more = f" AND {bound}".replace("y.", f"{y}.").replace("x.", f"{x}.") if bound else ""
        mine = (
            f"SELECT {x}.k, {y}.v, {x}.j, {x}.t FROM {ours} {x} ASOF {'LEFT ' * outer}JOIN {ours_y} {y}"
            f" ON {x}.k = {y}.k AND {x}.t {sign} {y}.t{more}"
        )
        nearest = (
            f"SELECT x.*, y.v AS v_, y.t AS t_ FROM (SELECT *, row_number() OVER () AS n FROM {duck}) x"
            f" LEFT JOIN {duck_y} y ON x.k = y.k AND x.t {sign} y.t"
            f" QUALIFY row_number() OVER (PARTITION BY n ORDER BY y.t {late} NULLS LAST, y.v DESC NULLS LAST) = 1"
        )
        met = bound.replace("y.t", "t_").replace("x.t", "t") if bound else "t_ IS NOT NULL"
        theirs = f"SELECT k, CASE WHEN {met} THEN v_ END AS v, j, t FROM ({nearest})" + (
            "" if outer else f" WHERE {met}"
        )
        return Told(mine, theirs)

    def united(self, depth: int) -> Told:
        word = self._pick(
            "UNION ALL",
            "UNION ALL",
            "UNION ALL",
            "UNION",
            "INTERSECT",
            "EXCEPT",
            "INTERSECT ALL",
            "EXCEPT ALL",
        )
        sides = f"SELECT {SHOWN} FROM {{s}} {word} SELECT {SHOWN} FROM {{u}}"
        return self._of_two(depth, f"SELECT {SHOWN} FROM ({sides}) AS {self._alias()}")

    def limited(self, depth: int) -> Told:
        count = self._pick("1", "2", "3 OFFSET 1")
        return self._of(depth, f"SELECT {SHOWN} FROM {{s}} ORDER BY {_ALL} LIMIT {count}")
