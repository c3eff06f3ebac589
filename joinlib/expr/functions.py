"""The functions that can be called by name, in one table: name, number of arguments, builder."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr import Expr, arithmetic, compare, logic, numbers, text, time, windows
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.nodes import constant

AGGREGATES = (
    "count", "sum", "avg", "mean", "min", "max", "first", "last", "collect_list", "collect_set", "stddev", "variance",
    "count_if", "any_value", "approx_count_distinct", "percentile", "median", "max_by", "min_by", "every", "some", "std",
    "stddev_samp", "stddev_pop", "var_samp", "var_pop", "bool_or", "bool_and", "first_value", "last_value", "array_agg",
    "listagg", "string_agg", "percentile_approx", "approx_percentile", "percentile_cont", "percentile_disc", "mode", "corr",
    "covar_samp", "covar_pop", "skewness", "kurtosis", "bit_and", "bit_or", "bit_xor",
)  # fmt: skip
VOLATILE = (
    "rand", "random", "randn", "uuid", "now", "current_timestamp", "current_date", "curdate", "localtimestamp",
    "monotonically_increasing_id", "unix_timestamp", "current_timezone", "spark_partition_id", "input_file_name",
)  # fmt: skip


@dataclass(frozen=True)
class Function:
    """Builds a call, from `least` to `most` arguments."""

    build: Callable[..., Expr]
    least: int
    most: int


_INSTEAD = {
    "window": "group by date_trunc('hour', ...), whose units are windows of a fixed length",
    "session_window": "session windows have no equivalent",
    "unix_timestamp": "write CAST(... AS BIGINT), the seconds since 1970",
    "timestampdiff": "write CAST(... AS BIGINT) of both and subtract, for seconds",
}


def check_call(name: str, arguments: int) -> None:
    """Raise SpecError unless there is such a function, and it takes that many arguments."""
    key = name.lower()
    if key in AGGREGATES:
        raise SpecError(f"{name}: aggregates are only allowed in the select list and in HAVING")
    if key in VOLATILE and not (key in _INSTEAD and arguments):
        raise SpecError(
            f"{name}: a value that changes from run to run could not be repeated after a failure; "
            "add it where the output is read"
        )
    if key not in FUNCTIONS:
        near = get_close_matches(key, FUNCTIONS, 1, _NEAR)
        more = _INSTEAD.get(key) or (f"did you mean {near[0]}?" if near else "")
        raise SpecError(f"function {name} is not supported" + (f"; {more}" if more else ""))
    found = FUNCTIONS[key]
    if not found.least <= arguments <= found.most:
        wanted = f"{found.least}" if found.least == found.most else f"{found.least} to {found.most}"
        raise SpecError(f"{name} takes {wanted} arguments, not {arguments}")


_NEAR = 0.82  # close enough for `lenght` to suggest length, not for concat_ws to suggest concat


def function(name: str, arguments: list[Expr]) -> Expr:
    """Build the call of a function by its name.

    Raises:
        SpecError: if there is no such function; the message says what to use instead.
    """
    check_call(name, len(arguments))
    return FUNCTIONS[name.lower()].build(*arguments)


def _table() -> dict[str, Function]:
    many = 99
    found = {
        "coalesce": Function(coalesce, 1, many),
        "nvl": Function(coalesce, 2, 2),
        "ifnull": Function(coalesce, 2, 2),
        "nullif": Function(null_if, 2, 2),
        "nvl2": Function(lambda a, b, c: if_(logic.negate(logic.is_null(a)), b, c), 3, 3),
        "if": Function(if_, 3, 3),
        "isnull": Function(logic.is_null, 1, 1),
        "isnotnull": Function(lambda a: logic.negate(logic.is_null(a)), 1, 1),
        "isnan": Function(numbers.is_nan, 1, 1),
        "abs": Function(arithmetic.absolute, 1, 1),
        "mod": Function(partial(arithmetic.arithmetic, "%"), 2, 2),
        "round": Function(numbers.round_half_up, 1, 2),
        "floor": Function(partial(numbers.whole, "floor"), 1, 1),
        "ceil": Function(partial(numbers.whole, "ceil"), 1, 1),
        "ceiling": Function(partial(numbers.whole, "ceil"), 1, 1),
        "least": Function(partial(numbers.extreme, "least"), 2, many),
        "greatest": Function(partial(numbers.extreme, "greatest"), 2, many),
        "concat": Function(text.concat, 1, many),
        "length": Function(text.length, 1, 1),
        "char_length": Function(text.length, 1, 1),
        "substring": Function(text.substring, 2, 3),
        "substr": Function(text.substring, 2, 3),
        "replace": Function(text.replace, 3, 3),
        "datediff": Function(time.days_between, 2, 2),
        "date_diff": Function(time.days_between, 2, 2),
        "date_add": Function(partial(time.shift_days, "+"), 2, 2),
        "date_sub": Function(partial(time.shift_days, "-"), 2, 2),
        "add_months": Function(time.shift_months, 2, 2),
        "to_date": Function(lambda a: cast(a, t.DATE), 1, 1),
        "to_timestamp": Function(lambda a: cast(a, t.TIMESTAMP), 1, 1),
        "date_trunc": Function(date_trunc, 2, 2),
        "$tumble": Function(windows.tumble, 3, 3),
        "$hop": Function(windows.hop, 4, 4),
        "$cumulate": Function(windows.cumulate, 4, 4),
    }
    found |= {n: Function(partial(text.change_case, c), 1, 1) for n, c in _CASES.items()}
    found |= {n: Function(partial(text.trim, n), 1, 1) for n in ("trim", "btrim", "ltrim", "rtrim")}
    found |= {n: Function(partial(time.part, n), 1, 1) for n in time.PARTS}
    return found | {n: Function(partial(_cast_to, kind), 1, 1) for n, kind in _CASTS.items()}


_CASES = {"upper": "upper", "ucase": "upper", "lower": "lower", "lcase": "lower"}
_CASTS = {
    "tinyint": t.TINYINT, "smallint": t.SMALLINT, "int": t.INT, "bigint": t.BIGINT, "float": t.FLOAT,
    "double": t.DOUBLE, "string": t.STRING, "boolean": t.BOOLEAN, "date": t.DATE, "timestamp": t.TIMESTAMP,
    "decimal": pa.decimal128(10, 0),
}  # fmt: skip


def _cast_to(kind: pa.DataType, value: Expr) -> Expr:
    return cast(value, kind)


def coalesce(*values: Expr) -> Expr:
    """The first value that is not NULL."""
    sql = "coalesce(" + ", ".join(v.sql for v in values) + ")"
    conditions = [logic.negate(logic.is_null(v)) for v in values[:-1]]
    return logic.choose(conditions, list(values), sql)


def null_if(value: Expr, other: Expr) -> Expr:
    same = compare.compare("=", value, other)
    return logic.choose(
        [same], [constant(pa.scalar(None), "NULL"), value], f"nullif({value.sql}, {other.sql})"
    )


def if_(condition: Expr, value: Expr, otherwise: Expr) -> Expr:
    return logic.choose([condition], [value, otherwise], f"if({condition.sql}, {value.sql}, {otherwise.sql})")


def date_trunc(unit: Expr, value: Expr) -> Expr:
    return time.truncate(text.constant_text("date_trunc", unit), value)


FUNCTIONS = _table()
