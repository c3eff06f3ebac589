"""Reads the lengths of windows, and writes times that are moved by them. All in microseconds."""

from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from joinlib.errors import SpecError, SqlError
from joinlib.expr.time import Interval
from joinlib.sql.literals import interval_of
from joinlib.sql.parse import place
from joinlib.sql.supported import written


@dataclass(frozen=True)
class WindowText:
    """A text, whose places errors name."""

    sql: str

    def refuse(self, message: str, at: exp.Expr | None) -> NoReturn:
        """Raise SqlError at the place of a node."""
        raise SqlError(message, *place(self.sql, at))

    def length(self, node: exp.Expr, least: int = 1) -> int:
        """Return the µs of a constant: INTERVAL 10 MINUTES, or '10 minutes'.

        Raises:
            SqlError: if it is no constant of days or less, or below `least`.
        """
        of = exp.Interval(this=node.copy()) if isinstance(node, exp.Literal) and node.is_string else node
        if not isinstance(of, exp.Interval):
            self.refuse(
                f"the length of a window is a constant such as INTERVAL 10 MINUTES, not {written(node)}", node
            )
        try:
            found = interval_of(of).node
        except SpecError as error:
            self.refuse(str(error), node)
        assert isinstance(found, Interval)
        if found.months:
            self.refuse("a window has a fixed length, of days or less: months differ", node)
        if found.micros < least:
            self.refuse(f"the length of a window is positive, not {written(node)}", node)
        return found.micros


def micros(value: int) -> exp.Interval:
    """Write an INTERVAL of so many µs."""
    return exp.Interval(this=exp.Literal.string(str(value)), unit=exp.Var(this="MICROSECOND"))


def moved(time: exp.Expr, by: int) -> exp.Expr:
    """Write a time plus so many µs."""
    if not by:
        return time
    kind = exp.Add if by > 0 else exp.Sub
    return kind(this=time, expression=micros(abs(by)))
