"""What does this SELECT ask of which inputs? Law: the text becomes one join
graph, or an error at a line and column.

    parse     text -> syntax tree (sqlglot, Spark's dialect)
    depth     how deep the text may nest
    supported which parts of the syntax are read: everything else is rejected
    scope     names -> columns
    compile   syntax -> typed expressions
    tree      FROM, JOIN, WHERE -> a tree of joins with their clauses
    subquery  EXISTS, IN, NOT IN -> the clauses of semi and anti joins
    aggregate GROUP BY, DISTINCT, HAVING -> groups, and the columns of joined rows that they are computed from
    calls     calls of aggregate functions
    push      clauses move down to where they cost least, nested inner joins become one
    keys      which equalities hold for all inputs: the key classes
    stages    where no class holds for all: which inputs are joined first, so that others join the result
    tables    which inputs are looked up, after the joins of streams
    bounds    which clauses bound the time between two inputs
"""

from joinlib.sql.graph import JoinNode, KeyClass, LookupJoin, Query, RangeEnd, Result, Scan, Table
from joinlib.sql.query import analyse, analyse_stages

__all__ = [
    "JoinNode",
    "KeyClass",
    "LookupJoin",
    "Query",
    "RangeEnd",
    "Result",
    "Scan",
    "Table",
    "analyse",
    "analyse_stages",
]
