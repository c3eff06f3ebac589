"""What does this SELECT ask of which inputs? Law: the text becomes one join graph, or an error at a line and column.

parse     text -> syntax tree (sqlglot, Spark's dialect)
scope     names -> columns
compile   syntax -> typed expressions
tree      FROM, JOIN, EXISTS, IN -> a tree of joins with their clauses
push      clauses go down to where they cost least, inner joins melt into one
keys      which equalities hold for all inputs: the key classes
tables    which inputs are looked up, after the joins of streams
bounds    which clauses bound the time between two inputs
"""

from joinlib.sql.graph import KeyClass, Lookup, Node, Query, RangeEnd, Scan, Table, TimeBound
from joinlib.sql.query import analyse

__all__ = ["KeyClass", "Lookup", "Node", "Query", "RangeEnd", "Scan", "Table", "TimeBound", "analyse"]
