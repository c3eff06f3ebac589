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
    hashes,
    json,
    lists,
    logic,
    mathematics,
    nested,
    numbers,
    patterns,
    strings,
    text,
    time,
    units,
    urls,
    windows,
)  # fmt: skip
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.declared import declared
from joinlib.expr.nodes import Literal, constant
from joinlib.expr.signatures import (
    INT,
    STRING,
    TIMESTAMP,
    array,
    number,
    row,
    row_call,
    text_or_binary,
    whole_number,
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
        "concat": Function(concat, 1, many),
        "length": Function(text.length, 1, 1),
        **dict.fromkeys(("len", "char_length", "character_length"), Function(text.length, 1, 1)),
        "substring": Function(substring, 2, 3),
        "substr": Function(substring, 2, 3),
        "replace": Function(replace, 2, 3),
        "datediff": Function(time.days_between, 2, 2),
        "date_diff": Function(time.days_between, 2, 2),
        "date_add": Function(partial(time.shift_days, "+"), 2, 2),
        "date_sub": Function(partial(time.shift_days, "-"), 2, 2),
        "add_months": Function(time.shift_months, 2, 2),
        "date_trunc": Function(date_trunc, 2, 2),
        "bround": Function(numbers.round_half_even, 1, 2),
        "date_part": Function(date_part, 2, 2),
        "datepart": Function(date_part, 2, 2),
        "dateadd": Function(partial(time.shift_days, "+"), 2, 2),
        "decode": Function(decode, 2, many),
        "elt": Function(nth, 2, many),
        "equal_null": Function(partial(compare.compare, "<=>"), 2, 2),
        "nanvl": Function(numbers.nan_value, 2, 2),
        "negative": Function(arithmetic.minus, 1, 1),
        "nullifzero": Function(lambda a: null_if(a, constant(pa.scalar(0, t.INT), "0")), 1, 1),
        "pmod": Function(numbers.positive_remainder, 2, 2),
        "positive": Function(partial(number, "positive"), 1, 1),
        "typeof": Function(lambda a: constant(pa.scalar(t.spelled(a.type)), f"typeof({a.sql})"), 1, 1),
        "zeroifnull": Function(lambda a: coalesce(a, constant(pa.scalar(0, t.INT), "0")), 1, 1),
        "$tumble": Function(windows.tumble, 3, 3),
        "$hop": Function(windows.hop, 4, 4),
        "$cumulate": Function(windows.cumulate, 4, 4),
        "array": Function(nested.array_of, 0, many),
        "array_insert": Function(lists.insert, 3, 3),
        "arrays_zip": Function(lists.zip_, 1, many),
        "from_json": Function(json.read, 2, 2),
        "map": Function(nested.map_of, 0, many),
        "map_concat": Function(lists.whole_maps, 1, many),
        "map_contains_key": Function(lists.key_test, 2, 2),
        "map_from_arrays": Function(nested.map_from, 2, 2),
        "named_struct": Function(nested.named_struct, 2, many),
        "reverse": Function(reverse, 1, 1),
        "sequence": Function(sequence, 2, 3),
        "struct": Function(nested.struct_, 1, many),
        "pi": Function(partial(mathematics.fixed, "pi"), 0, 0),
        "e": Function(partial(mathematics.fixed, "e"), 0, 0),
        "unix_timestamp": Function(partial(dates.unix_timestamp, "unix_timestamp"), 1, 2),
        "to_unix_timestamp": Function(partial(dates.unix_timestamp, "to_unix_timestamp"), 1, 2),
        "convert_timezone": Function(partial(dates.convert_timezone, "convert_timezone"), 2, 3),
    }
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
    for table in (strings, patterns, mathematics, digits, dates, lists, hashes, json, urls):
        found |= {n: Function(partial(g.build, n), g.least, g.most) for n, g in table.FUNCTIONS.items()}
    found |= {n: Function(partial(text.change_case, c), 1, 1) for n, c in _CASES.items()}
    found |= {n: Function(partial(trim, n), 1, 2) for n in ("trim", "btrim", "ltrim", "rtrim")}
    found |= {n: Function(partial(time.part, n), 1, 1) for n in time.PARTS}
    return found | {n: Function(partial(_cast_to, kind), 1, 1) for n, kind in _CASTS.items()}


_READ = ("to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz", "try_to_timestamp", "to_date", "try_to_date")
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


def concat(*values: Expr) -> Expr:
    """Build concat, of texts or of arrays."""
    if any(t.is_nested(v.type) for v in values):
        return lists.concatenated(*values)
    return text.concat(*values)


def substring(value: Expr, start: Expr, length: Expr | None = None) -> Expr:
    """Build substring; places and lengths may be computed."""
    rest = [start] if length is None else [start, length]
    if value.type == t.BINARY or not all(isinstance(e.node, Literal) and e.type == t.INT for e in rest):
        kind = t.BINARY if value.type == t.BINARY else t.STRING
        takes = (INT,) * len(rest)
        return row(strings.substring, kind, text_or_binary, *takes).build("substring", value, *rest)
    return text.substring(value, start, length)


def replace(value: Expr, old: Expr, new: Expr | None = None) -> Expr:
    new = constant(pa.scalar(""), "''") if new is None else new
    if all(isinstance(e.node, Literal) and e.type == t.STRING for e in (old, new)):
        return text.replace(value, old, new)
    return row(strings.replace, t.STRING, STRING, STRING, STRING).build("replace", value, old, new)


def trim(name: str, first: Expr, second: Expr | None = None) -> Expr:
    """Build trim and the like: of spaces, or of characters, which come first but for btrim."""
    if second is None:
        return text.trim(name, first)
    value, characters = (first, second) if name == "btrim" else (second, first)
    of = {"ltrim": strings.trim_left, "rtrim": strings.trim_right}.get(name, strings.trim_both)
    return row(of, t.STRING, STRING, STRING).build(name, value, characters)


def reverse(value: Expr) -> Expr:
    if t.is_nested(value.type):
        return row_call("reverse", lists.reversed_, value.type, [array("reverse", value)])
    return row_call("reverse", lists.reversed_, t.STRING, [text.text("reverse", value)])


def sequence(start: Expr, stop: Expr, step: Expr | None = None) -> Expr:
    """Build the whole numbers or times from start to stop; both ends belong to it."""
    kind = t.common(start.type, stop.type)
    if kind is not None and t.is_time(kind):
        return dates.sequence(cast(start, kind), cast(stop, kind), step)
    given = [whole_number("sequence", e) for e in (start, stop, *[step] * (step is not None)) if e]
    widest = max((e.type for e in given), key=lambda k: k.bit_width)
    return row_call("sequence", lists.numbers, pa.list_(widest), [cast(e, widest) for e in given])


def date_trunc(unit: Expr, value: Expr) -> Expr:
    """Build date_trunc; a constant unit that there is takes Arrow's kernel."""
    known = unit.node.value.as_py() if isinstance(unit.node, Literal) else None
    if isinstance(known, str) and known.lower() in time.UNITS:
        return time.truncate(known, value)
    return row(dates.truncated_moment, t.TIMESTAMP, STRING, TIMESTAMP).build("date_trunc", unit, value)


def date_part(name: Expr, value: Expr) -> Expr:
    return units.extract(text.constant_text("date_part", name), value)


def decode(value: Expr, *rest: Expr) -> Expr:
    """Build the text of bytes (bytes, charset), or a choice (value, a, x, b, y, ..., otherwise), where NULL equals NULL."""
    if len(rest) == 1:
        return strings.DECODE.build("decode", value, *rest)
    pairs = list(zip(rest[::2], rest[1::2]))
    last = rest[-1] if len(rest) % 2 else constant(pa.scalar(None), "NULL")
    conditions = [compare.compare("<=>", value, known) for known, _ in pairs]
    sql = f"decode({', '.join(e.sql for e in (value, *rest))})"
    return logic.choose(conditions, [*(found for _, found in pairs), last], sql)


def nth(number: Expr, *values: Expr) -> Expr:
    """Build elt(number, value, ...): the value of that number."""
    kind = t.BINARY if all(v.type == t.BINARY for v in values) else t.STRING
    return row_call("elt", strings.nth, kind, [INT("elt", number), *(cast(v, kind) for v in values)], True)


FUNCTIONS = _table()
