"""The functions that can be called by name, in one table: name, number of arguments, builder."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr import (
    Expr,
    arithmetic,
    attempts,
    compare,
    dates,
    digits,
    forms,
    further,
    hashes,
    json,
    lists,
    logic,
    mathematics,
    nested,
    numbers,
    patterns,
    single,
    strings,
    text,
    time,
    urls,
    windows,
)  # fmt: skip
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.declared import declared
from joinlib.expr.nodes import constant
from joinlib.expr.quick import quicker
from joinlib.expr.signatures import (
    number,
)

AGGREGATES = (
    "count", "sum", "avg", "mean", "min", "max", "first", "last", "collect_list", "collect_set", "stddev", "variance",
    "count_if", "any_value", "approx_count_distinct", "percentile", "median", "max_by", "min_by", "every", "some", "std",
    "stddev_samp", "stddev_pop", "var_samp", "var_pop", "bool_or", "bool_and", "first_value", "last_value", "array_agg",
    "listagg", "string_agg", "percentile_approx", "approx_percentile", "percentile_cont", "percentile_disc", "mode", "corr",
    "covar_samp", "covar_pop", "skewness", "kurtosis", "bit_and", "bit_or", "bit_xor", "regr_avgx",
    "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
)  # fmt: skip
VOLATILE = (
    "rand", "random", "randn", "uuid", "now", "current_timestamp", "current_date", "curdate", "localtimestamp",
    "monotonically_increasing_id", "unix_timestamp", "current_timezone", "spark_partition_id", "input_file_name",
    "shuffle", "randstr", "uniform", "current_user", "session_user", "current_database", "current_schema",
    "current_catalog", "input_file_block_start", "input_file_block_length",
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
}


def check_call(name: str, arguments: int) -> None:
    """Raise SpecError unless there is such a function, and it takes that many arguments."""
    if declared(name) is not None:
        return
    key = name.lower()
    if key in AGGREGATES:
        raise SpecError(f"{name}: aggregates are only allowed in the select list and in HAVING")
    if key in VOLATILE and not (key in FUNCTIONS and arguments):
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
    if (own := declared(name)) is not None:
        return own.called(arguments)
    return quicker(name.lower(), arguments, FUNCTIONS[name.lower()].build(*arguments))


_READ = ("to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz", "try_to_timestamp", "to_date", "try_to_date")
_CASES = {"upper": "upper", "ucase": "upper", "lower": "lower", "lcase": "lower"}
_CASTS = {
    "tinyint": t.TINYINT, "smallint": t.SMALLINT, "int": t.INT, "bigint": t.BIGINT, "float": t.FLOAT,
    "double": t.DOUBLE, "string": t.STRING, "boolean": t.BOOLEAN, "date": t.DATE, "timestamp": t.TIMESTAMP,
    "decimal": pa.decimal128(10, 0),
}  # fmt: skip


def _cast_to(kind: pa.DataType, value: Expr) -> Expr:
    return cast(value, kind)


_MANY = 99
_PLAIN: dict[str, Function] = {
    "coalesce": Function(forms.coalesce, 1, _MANY),
    "nvl": Function(forms.coalesce, 2, 2),
    "ifnull": Function(forms.coalesce, 2, 2),
    "nullif": Function(forms.null_if, 2, 2),
    "nvl2": Function(lambda a, b, c: forms.if_(logic.negate(logic.is_null(a)), b, c), 3, 3),
    "if": Function(forms.if_, 3, 3),
    "isnull": Function(logic.is_null, 1, 1),
    "isnotnull": Function(lambda a: logic.negate(logic.is_null(a)), 1, 1),
    "isnan": Function(numbers.is_nan, 1, 1),
    "abs": Function(arithmetic.absolute, 1, 1),
    "mod": Function(partial(arithmetic.arithmetic, "%"), 2, 2),
    "round": Function(numbers.round_half_up, 1, 2),
    "floor": Function(partial(numbers.whole, "floor"), 1, 1),
    "ceil": Function(partial(numbers.whole, "ceil"), 1, 1),
    "ceiling": Function(partial(numbers.whole, "ceil"), 1, 1),
    "least": Function(partial(numbers.extreme, "least"), 2, _MANY),
    "greatest": Function(partial(numbers.extreme, "greatest"), 2, _MANY),
    "concat": Function(forms.concat, 1, _MANY),
    "length": Function(text.length, 1, 1),
    **dict.fromkeys(("len", "char_length", "character_length"), Function(text.length, 1, 1)),
    "substring": Function(forms.substring, 2, 3),
    "substr": Function(forms.substring, 2, 3),
    "replace": Function(forms.replace, 2, 3),
    "datediff": Function(time.days_between, 2, 2),
    "date_diff": Function(time.days_between, 2, 2),
    "date_add": Function(partial(time.shift_days, "+"), 2, 2),
    "date_sub": Function(partial(time.shift_days, "-"), 2, 2),
    "add_months": Function(time.shift_months, 2, 2),
    "date_trunc": Function(forms.date_trunc, 2, 2),
    "ilike": Function(partial(patterns.like, fold=True), 2, 2),
    "like": Function(patterns.like, 2, 2),
    "time_bucket": Function(dates.time_bucket, 2, 3),
    **{n: Function(partial(forms.padded, n), 2, 3) for n in ("lpad", "rpad")},
    **{n: Function(partial(forms.cut, n), 2, 2) for n in ("left", "right")},
    "bround": Function(numbers.round_half_even, 1, 2),
    "date_part": Function(forms.date_part, 2, 2),
    "datepart": Function(forms.date_part, 2, 2),
    "dateadd": Function(partial(time.shift_days, "+"), 2, 2),
    "decode": Function(forms.decode, 2, _MANY),
    "elt": Function(forms.nth, 2, _MANY),
    "equal_null": Function(partial(compare.compare, "<=>"), 2, 2),
    "nanvl": Function(numbers.nan_value, 2, 2),
    "negative": Function(arithmetic.minus, 1, 1),
    "nullifzero": Function(lambda a: forms.null_if(a, constant(pa.scalar(0, t.INT), "0")), 1, 1),
    "pmod": Function(numbers.positive_remainder, 2, 2),
    "positive": Function(partial(number, "positive"), 1, 1),
    "typeof": Function(lambda a: constant(pa.scalar(t.spelled(a.type)), f"typeof({a.sql})"), 1, 1),
    "zeroifnull": Function(lambda a: forms.coalesce(a, constant(pa.scalar(0, t.INT), "0")), 1, 1),
    "$one": Function(single.one, 5, 5),
    "$tumble": Function(windows.tumble, 3, 3),
    "$hop": Function(windows.hop, 4, 4),
    "$cumulate": Function(windows.cumulate, 4, 4),
    "array": Function(nested.array_of, 0, _MANY),
    "array_insert": Function(lists.insert, 3, 3),
    "arrays_zip": Function(lists.zip_, 1, _MANY),
    "from_json": Function(json.read, 2, 2),
    "map": Function(nested.map_of, 0, _MANY),
    "map_concat": Function(lists.whole_maps, 1, _MANY),
    "map_contains_key": Function(lists.key_test, 2, 2),
    "map_from_arrays": Function(nested.map_from, 2, 2),
    "named_struct": Function(nested.named_struct, 2, _MANY),
    "reverse": Function(forms.reverse, 1, 1),
    "sequence": Function(forms.sequence, 2, 3),
    "struct": Function(nested.struct_, 1, _MANY),
    "pi": Function(partial(mathematics.fixed, "pi"), 0, 0),
    "e": Function(partial(mathematics.fixed, "e"), 0, 0),
    "unix_timestamp": Function(partial(dates.unix_timestamp, "unix_timestamp"), 1, 2),
    "to_unix_timestamp": Function(partial(dates.unix_timestamp, "to_unix_timestamp"), 1, 2),
    "convert_timezone": Function(partial(dates.convert_timezone, "convert_timezone"), 2, 3),
}


def _table() -> dict[str, Function]:
    found = dict(_PLAIN)
    found |= {n: Function(partial(dates.read_by, n), 1, 2) for n in _READ}
    found |= {
        n: Function(b, 1 + (n in mathematics.TWO), 1 + (n in mathematics.BOTH))
        for n, b in mathematics.BUILT.items()
    }
    found |= {n: Function(partial(lists.with_element, n, *rest), 2, 2) for n, rest in lists.ELEMENT.items()}
    found |= {n: Function(partial(lists.of_two, n, *rest), 2, 2) for n, rest in lists.TWO.items()}
    found |= {
        n: Function(partial(nested.element_at, n), 2, 2) for n in ("element_at", "try_element_at", "get")
    }
    found |= {n: Function(b, 2, 2) for n, b in attempts.BUILT.items()}
    for table in (strings, patterns, mathematics, digits, dates, lists, hashes, json, urls, further):
        found |= {n: Function(partial(g.build, n), g.least, g.most) for n, g in table.FUNCTIONS.items()}
    found |= {n: Function(partial(text.change_case, c), 1, 1) for n, c in _CASES.items()}
    found |= {n: Function(partial(forms.trim, n), 1, 2) for n in ("trim", "btrim", "ltrim", "rtrim")}
    found |= {n: Function(partial(time.part, n), 1, 1) for n in time.PARTS}
    return found | {n: Function(partial(_cast_to, kind), 1, 1) for n, kind in _CASTS.items()}


FUNCTIONS = _table()
