"""Analyses SELECT columns FROM t QUALIFY $present(from, to): rows that come and go with the watermark."""

from sqlglot import exp

from joinlib.model.over import Over
from joinlib.sql.graph import Scan, Table
from joinlib.sql.scope import Scope
from joinlib.sql.select import select_list

CALL = "$present"  # of two columns; NULL: from the beginning, or forever


def is_present(select: exp.Select) -> bool:
    """Whether a SELECT is of this form."""
    qualify = select.args.get("qualify")
    return qualify is not None and isinstance(qualify.this, exp.Anonymous) and qualify.this.name == CALL


def present_of(sql: str, select: exp.Select, table: Table) -> Over:
    """Return what such a SELECT asks for: no function, over partitions of equal rows."""
    alias = select.args["from_"].this.alias_or_name
    scan = Scan(alias, table)
    scope = Scope(sql, {alias.lower(): scan})
    columns = select_list(select, scope)
    ends = [
        None if isinstance(e, exp.Null) else scope.resolve(e).columns[0]
        for e in select.args["qualify"].this.expressions
    ]
    read = {name for _, value in columns for name in value.columns} | {e for e in ends if e is not None}
    stored = tuple((str(c.column), c.type) for f in table.schema if (c := scan.column(f)).column in read)
    return Over(stored, tuple(name for name, _ in stored), (), None, columns, present=(ends[0], ends[1]))
