"""Lists which parts of the syntax are read.

Law: a part that no code reads is rejected at its place, with what to write instead.

The parser knows much more than Spark's SELECT, and this product less. `READ` lists for each kind of node
which of its parts are read; any other part that is set, and any other kind of node, is an error.
"""

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.sql.parse import place

_TWO = (
    exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
    exp.NullSafeEQ, exp.NullSafeNEQ, exp.And, exp.Or, exp.Is, exp.Escape, exp.Extract, exp.Dot, exp.IntervalSpan,
    exp.RegexpLike, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.Transform,
)  # fmt: skip
_ONE = (
    exp.From, exp.Where, exp.Having, exp.Paren, exp.Neg, exp.Not, exp.Exists, exp.All, exp.Any, exp.Var, exp.Boolean,
    exp.DataTypeParam, exp.BitwiseNot, exp.HexString, exp.RawString,
)  # fmt: skip
READ: dict[type[exp.Expr], frozenset[str]] = {
    **dict.fromkeys(_TWO, frozenset(("this", "expression"))),
    **dict.fromkeys(_ONE, frozenset(("this",))),
    **{
        kind: frozenset(parts.split())
        for kind, parts in {
            exp.Select: "expressions distinct from_ joins where group having",
            exp.Join: "this on using side kind method",
            exp.Table: "this alias db catalog joins",
            exp.TableAlias: "this columns",
            exp.Subquery: "this alias",
            exp.Alias: "this alias",
            exp.Group: "expressions all",
            exp.Distinct: "expressions",
            exp.Star: "except_",
            exp.Column: "this table db catalog",
            exp.Identifier: "this quoted",
            exp.Tuple: "expressions",
            exp.Literal: "this is_string",
            exp.Null: "",
            exp.Interval: "this unit",
            exp.Cast: "this to",
            exp.TryCast: "this to safe",
            exp.DataType: "this expressions nested",
            exp.Div: "this expression typed safe",  # the last two matter only for other dialects
            exp.DPipe: "this expression safe",
            exp.Concat: "expressions safe coalesce",
            exp.Between: "this low high",
            exp.In: "this expressions query field",
            exp.Like: "this expression negate",
            exp.ILike: "this expression negate",
            exp.Bracket: "this expressions",
            exp.Slice: "this expression step",
            exp.Array: "expressions",
            exp.Lambda: "this expressions",
            exp.ColumnDef: "this kind",
            exp.Case: "this ifs default",
            exp.If: "this true false",
            exp.Anonymous: "this expressions",
            exp.Filter: "this expression",
            exp.Overlay: "this expression from_ for_",
            exp.Substring: "this start length",
            exp.WithinGroup: "this expression",
            exp.Order: "expressions",
            exp.Ordered: "this desc nulls_first",
            exp.Trim: "this expression position",
        }.items()
    },
}
INNER = (
    "write what it filters and computes into the query itself; for what it groups or unites, run a job of"
    " its own, whose output is an input here"
)
_FORMS = "is not supported; write a query for each group"
_SORTED = "has no meaning for a stream"
_TIME = (
    "AS OF is not supported: a stream has no versions; give the input role: table, whose rows are looked up"
    " as they are, or join by a range of time"
)
_SET = {
    "with_": f"WITH is not supported; {INNER}",
    "hint": (
        "hints are not read, but for PATHS(a, b, c) and STAGES(a, b, c): the planner decides how inputs are"
        " joined; join.strategy in the spec overrules it"
    ),
    "order": f"ORDER BY {_SORTED}: results come out as they are found; sort the output",
    "limit": f"LIMIT {_SORTED}; filter the output",
    "offset": f"OFFSET {_SORTED}",
    "sort": f"SORT BY {_SORTED}; leave it out",
    "cluster": f"CLUSTER BY {_SORTED}; leave it out",
    "distribute": f"DISTRIBUTE BY {_SORTED}; leave it out",
    "windows": "WINDOW is not supported",
    "qualify": "QUALIFY is not supported",
    "laterals": "LATERAL is not supported",
    "into": "SELECT INTO is not supported; outputs are named in the spec",
    "pivots": "PIVOT is not supported; write one aggregate of CASE WHEN ... for each column",
    "match": "MATCH_RECOGNIZE is not supported",
    "locks": "FOR UPDATE and FOR SHARE have no meaning for a stream",
    "sample": (
        "TABLESAMPLE is not supported: it would draw other rows when a batch is run again; take a share of the"
        " keys: WHERE pmod(xxhash64(key), 100) < 10, or some rows: ORDER BY ... LIMIT n"
    ),
    "when": _TIME,
    "version": _TIME,
    "system_time": _TIME,
    "grouping_sets": f"GROUPING SETS {_FORMS}",
    "cube": f"CUBE {_FORMS}",
    "rollup": f"ROLLUP {_FORMS}",
    "totals": f"TOTALS {_FORMS}",
    "on": (
        "DISTINCT ON is not supported; write QUALIFY row_number() OVER (PARTITION BY ... ORDER BY ...) = 1"
    ),
    "symmetric": "BETWEEN SYMMETRIC is not supported",
    "field": "IN takes a list or (SELECT ...)",
    "unnest": "IN takes a list or (SELECT ...)",
    "collate": "COLLATE is not supported: text is compared by its bytes",
    "collation": "COLLATE is not supported: text is compared by its bytes",
    "replace": "* REPLACE is not supported; write * EXCEPT (...) and the columns that are replaced",
    "rename": "* RENAME is not supported; write * EXCEPT (...) and the columns with their new names",
}
_KINDS: dict[type[exp.Expr], str] = {
    exp.Window: (
        "window functions (OVER) are only allowed in the select list, QUALIFY and ORDER BY; to filter by one,"
        " write QUALIFY, or WHERE around a derived table"
    ),
    exp.Star: "* is only allowed in the select list",
    exp.Filter: "FILTER is only allowed after an aggregate",
    exp.IgnoreNulls: "IGNORE NULLS is for window functions; to an aggregate add FILTER (WHERE the value IS NOT NULL)",
    exp.RespectNulls: "RESPECT NULLS is for window functions; leave it out",
    exp.WithinGroup: "WITHIN GROUP is only allowed after an aggregate, such as percentile_cont(0.9)",
    exp.AtTimeZone: "AT TIME ZONE is not supported; write from_utc_timestamp(time, 'Europe/Oslo')",
    exp.Collate: _SET["collate"],
    exp.Rollup: _SET["rollup"],
    exp.Cube: _SET["cube"],
    exp.GroupingSets: _SET["grouping_sets"],
    exp.Lateral: _SET["laterals"],
    exp.Union: "UNION is not supported",
    exp.Intersect: "INTERSECT is not supported",
    exp.Except: "EXCEPT between queries is not supported",
    **dict.fromkeys(
        (exp.All, exp.Any),
        "this is not supported; ALL and ANY are only allowed as x <> ALL (SELECT ...) or x = ANY (SELECT"
        " ...) among the ANDs of WHERE",
    ),
    **dict.fromkeys(
        (exp.Subquery, exp.Select, exp.Exists),
        "a subquery is only allowed as [NOT] EXISTS (...) or x [NOT] IN (...) among the ANDs of WHERE",
    ),
}


_REWRITTEN = {  # before a part of the query is read here
    *(
        "with_",
        "order",
        "limit",
        "offset",
        "windows",
        "qualify",
        "laterals",
        "pivots",
        "grouping_sets",
        "cube",
        "rollup",
        "replace",
        "rename",
        "when",
        "version",
        "system_time",
    ),
    *(exp.Rollup, exp.Cube, exp.GroupingSets, exp.Lateral, exp.Union, exp.Intersect, exp.Except),
    *(exp.IgnoreNulls, exp.RespectNulls, exp.All, exp.Any, exp.Subquery, exp.Select, exp.Exists),
}


def refusals() -> list[str]:
    """Return the messages of all parts and kinds of nodes that are known and rejected, each once."""
    read = {text for part, text in _SET.items() if part not in _REWRITTEN}
    return sorted(read | {text for kind, text in _KINDS.items() if kind not in _REWRITTEN})


def check(sql: str, select: exp.Select) -> None:
    """Raise SqlError for the first part of the text that no code reads."""
    for node in select.walk(bfs=False):
        read = READ.get(type(node))
        if read is None:
            raise SqlError(refusal(node), *place(sql, node))
        for name, part in node.args.items():
            if name not in read and part not in (None, False, []):
                at = part[0] if isinstance(part, list) else part
                raise SqlError(_unread(name, node), *place(sql, at if isinstance(at, exp.Expr) else node))


def check_part(sql: str, node: exp.Expr, name: str) -> None:
    """Raise SqlError for a part of a node that is not supported."""
    part = node.args[name]
    at = part[0] if isinstance(part, list) else part
    raise SqlError(_unread(name, node), *place(sql, at if isinstance(at, exp.Expr) else node))


def unread(part: str) -> str:
    """Explain why a part that some nodes have is not read."""
    return _SET[part]


def refusal(node: exp.Expr) -> str:
    """Explain why a node is not supported, or not where it stands."""
    return _KINDS.get(type(node)) or f"{written(node)} is not supported"


def _unread(name: str, node: exp.Expr) -> str:
    return _SET.get(name) or f"{name.strip('_').upper()} in {node.key.upper()} is not supported"


def written(node: exp.Expr) -> str:
    """The node in SQL, cut to 80 characters."""
    text = node.sql(dialect="spark", normalize_functions=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


_JOINS = {
    *(("", kind) for kind in ("", "INNER", "CROSS", "SEMI", "ANTI")),
    *((side, kind) for side in ("LEFT", "RIGHT", "FULL") for kind in ("", "OUTER")),
    ("LEFT", "SEMI"),
    ("LEFT", "ANTI"),
}


def check_join(sql: str, join: exp.Join) -> None:
    """Raise SqlError for a kind of join that is not supported."""
    method, side, kind = (join.method or "").upper(), join.side.upper(), join.kind.upper()
    where = place(sql, join.this)
    if method == "NATURAL":
        raise SqlError(
            "NATURAL JOIN is not supported, its keys change with the schema; write USING (...)", *where
        )
    if kind in ("SEMI", "ANTI") and side not in ("", "LEFT"):
        raise SqlError(f"write LEFT {kind} JOIN, with the inputs exchanged", *where)
    if method or (side, kind) not in _JOINS:
        raise SqlError(f"{' '.join(filter(None, (method, side, kind)))} JOIN is not supported", *where)
    conditioned = join.args.get("on") is not None or join.args.get("using")
    if not conditioned and (side or kind in ("SEMI", "ANTI")):
        raise SqlError("this join has no ON; write ON with a condition", *where)


def check_subquery(sql: str, query: exp.Select) -> None:
    """Raise SqlError unless EXISTS or IN holds a plain SELECT."""
    for name in ("group", "having"):
        if part := query.args.get(name):
            raise SqlError(f"{name.upper()} in a subquery is not supported", *place(sql, part))
    for join in query.args.get("joins") or []:
        raise SqlError("a subquery reads one input; its joins are not supported", *place(sql, join.this))
