"""Resolves names to columns. Law: as in Spark, names ignore case, and a name that fits twice is an error."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from joinlib.errors import SpecError, SqlError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.nested import field as field_of
from joinlib.spec.nearest import hint
from joinlib.sql.graph import Scan
from joinlib.sql.parse import place


@dataclass
class Scope:
    """The inputs that can be named at some point of the text."""

    sql: str
    visible: dict[str, Scan] = field(default_factory=dict)  # by the name in the text, in lower case
    hidden: dict[str, str] = field(default_factory=dict)  # name -> why it cannot be named any more
    merged: dict[str, Expr] = field(default_factory=dict)  # USING columns, by lower-case name
    outer: "Scope | None" = None

    def resolve(self, column: exp.Column) -> Expr:
        """Return the column, or the field of a STRUCT column, that a dotted name means.

        Raises:
            SqlError: if it is unknown or ambiguous.
        """
        parts = [p for p in column.parts if isinstance(p, exp.Identifier)]
        found = self._find([p.name for p in parts], column)
        if found is not None:
            return found
        raise self._unknown(
            parts[0].name if len(parts) == 1 else parts[-1].name, parts[0].name, len(parts), column
        )

    def given(self, node: exp.Expr) -> Expr | None:
        """Return what a whole expression is known to be; None if it must be compiled from its parts."""
        return None

    def _find(self, names: list[str], at: exp.Expr) -> Expr | None:
        """Return what a dotted name means: a column of an input, of whichever scope, before a field of a column.

        `rewrite.names` has written each column after the alias of its input: what a text calls d.n, the field of
        a column d, is here y.d.n. A column d of the inner query must not take what the input d around it has.
        """
        found = self._of_input(names, at)
        return found if found is not None else self._of_column(names, at)

    def _of_input(self, names: list[str], at: exp.Expr) -> Expr | None:
        scan = self.visible.get(names[0].lower())
        if scan is not None and len(names) > 1:
            found = column_of(scan, names[1])
            if found is not None:
                return _fields(found, names[2:], self, at)
        return self.outer._of_input(names, at) if self.outer else None

    def _of_column(self, names: list[str], at: exp.Expr) -> Expr | None:
        hits = self._unqualified(names[0])
        if len(hits) > 1:
            where = " or ".join(f"{h.sql}" for h in hits)
            raise self.error(f"column {names[0]} is ambiguous; write {where}", at)
        if hits:
            return _fields(hits[0], names[1:], self, at)
        return self.outer._of_column(names, at) if self.outer else None

    def _unqualified(self, name: str) -> list[Expr]:
        if name.lower() in self.merged:
            return [self.merged[name.lower()]]
        return [e for e in (column_of(s, name) for s in self.visible.values()) if e is not None]

    def _unknown(self, name: str, first: str, parts: int, at: exp.Expr) -> SqlError:
        if parts > 1 and first.lower() in self.hidden:
            return self.error(self.hidden[first.lower()], at)
        if parts > 1 and first.lower() in self.visible:
            scan = self.visible[first.lower()]
            return self.error(f"{first} has no column {name}{nearest(name, scan.table.schema.names)}", at)
        if parts > 1:
            return self.error(f"{first} is not an input of this query{nearest(first, self.names())}", at)
        known = [n for s in self.visible.values() for n in s.table.schema.names]
        return self.error(f"column {name} is in no input{nearest(name, known)}", at)

    def names(self) -> list[str]:
        """All inputs that can be named, including those of outer scopes."""
        return list(self.visible) + (self.outer.names() if self.outer else [])

    def error(self, message: str, at: exp.Expr | None) -> SqlError:
        return SqlError(message, *place(self.sql, at))


def column_of(scan: Scan, name: str) -> Expr | None:
    """Return the scan's column of that name in any case, preferring an exact match; None if there is none."""
    names = scan.table.schema.names
    exact = [n for n in names if n == name] or [n for n in names if n.lower() == name.lower()]
    if not exact:
        return None
    return scan.column(scan.table.schema.field(exact[0]))


def _fields(value: Expr, names: list[str], scope: Scope, at: exp.Expr) -> Expr:
    for name in names:
        kind = value.type.value_type if t.is_list(value.type) else value.type
        fields = [f.name for f in kind] if t.is_struct(kind) else []
        if fields and name.lower() not in map(str.lower, fields):
            raise scope.error(f"{value.sql} has no field {name}{nearest(name, fields)}", at)
        try:
            value = field_of(value, name)
        except SpecError as error:
            raise scope.error(str(error), at) from error
    return value


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message: the name that was probably meant, or the names there are."""
    return "; " + hint(name, list(dict.fromkeys(known)), "there is")
