"""Is the work spread evenly? DS of each input (BS-Join, Equation 3), and what each unit has to do."""

from typing import Any

from dashboards import house
from dashboards.house import Ask, Missing, Row
from dashboards.queries import by_unit, gauge, of, rate, ratio, share, total, where

HOT = 1.0  # DS at which StreamJoinSkewStaysHigh fires: half of the units idle, or one of 64 with a seventh of the rows
_TOP = 12
_NO_UNITS = Missing(
    "none", "No unit has had work yet, there are more than 1024 of them, or no driver is scraped."
)
_NO_RULE = Missing("none", "No stream of the query meets tables only, or no driver is scraped.")


def dashboard() -> dict[str, Any]:
    """The dashboard, as JSON."""
    says = "Is the work spread evenly? DS of each input, and the work of each unit."
    return house.board("skew", "Skew", says, [_inputs(), _rules(), _units(), _ranking()])


def _inputs() -> Row:
    hottest = gauge("streamjoin_hottest_unit_ratio", "input")
    fair = f"{hottest} * on () group_left () {gauge('streamjoin_units')}"
    ds = house.lines(
        "DS by input",
        "Standard deviation of the rows of the units over their mean in the last batch. 0 is "
        "even; if one of n units has all rows it is about √n. The dashed line is the "
        "threshold of the alert.",
        house.NUMBER,
        Ask(gauge("streamjoin_input_skew", "input"), "{{input}}"),
        span=6,
    )
    return Row(
        "Inputs",
        house.NO_DRIVER,
        [
            house.limit(ds.decimals(2), (HOT, house.RED)),
            house.lines(
                "Hot keys' share by input",
                "Share of an input's rows whose keys are hot, each more than about a quarter of a unit's"
                " fair share. Where rows may go to several units it is sampled; elsewhere it is what full"
                " units have beyond the median one.",
                house.RATIO,
                Ask(gauge("streamjoin_hot_key_ratio", "input"), "{{input}}"),
                span=6,
            ).max(1),
            house.lines(
                "Hottest unit, times its fair share",
                "Rows of the fullest unit of the last batch over an even share. The task that serves "
                "it takes about that much longer.",
                house.NUMBER,
                Ask(fair, "{{input}}"),
                span=6,
            ).decimals(1),
            house.lines(
                "Unevenness of the state",
                "Rows of state of the fullest unit over the mean, minus 1. A skewed input leaves "
                "uneven state behind.",
                house.NUMBER,
                Ask(gauge("streamjoin_skew"), "state"),
                span=6,
            ).decimals(2),
        ],
    )


def _rules() -> Row:
    """Empty where no stream meets tables only: elsewhere state holds rows where they are."""
    name = "streamjoin_route_skew"
    return Row(
        "Hot keys of streams that meet tables",
        _NO_RULE,
        [
            house.lines(
                "DS with and without a rule for hot keys",
                "DS of the rows that were looked up in tables: as hashing alone would route them, and "
                "as they were routed. The lines part when a rule is made, after a batch with a DS "
                "over 0.2.",
                house.NUMBER,
                Ask(gauge(name, "route"), "{{route}}"),
                span=12,
            ).decimals(2),
            house.lines(
                "What the rule gains",
                "DS without the rule over DS with it. At 1 there is no rule yet, or hashing is as good.",
                house.NUMBER,
                Ask(ratio(where(name, 'route="hash"'), where(name, 'route="rule"')), "times more even"),
                span=12,
            ).decimals(1),
        ],
        folded=True,
    )


def _units() -> Row:
    return Row(
        "Units over time",
        _NO_UNITS,
        [
            house.map_of(
                "Rows in by unit",
                "Rows per second that each unit receives. A unit that stands out has a hot key.",
                house.ROWS_RATE,
                Ask(by_unit(_rate_by_unit("streamjoin_unit_rows_in_total")), "unit {{at}}"),
                span=8,
            ),
            house.map_of(
                "Time by unit",
                "Share of the time in which a task works in the unit.",
                house.RATIO,
                Ask(by_unit(_rate_by_unit("streamjoin_unit_seconds_total")), "unit {{at}}"),
                span=8,
            ),
            house.map_of(
                "State by unit",
                "Live segments and indexes of each unit.",
                house.BYTES,
                Ask(by_unit(of("streamjoin_unit_state_bytes")), "unit {{at}}"),
                span=8,
            ),
        ],
    )


def _ranking() -> Row:
    rows_in, time = "streamjoin_unit_rows_in_total", "streamjoin_unit_seconds_total"
    state = "streamjoin_unit_state_rows"
    return Row(
        "Hottest units now",
        _NO_UNITS,
        [
            house.ranking(
                "Share of the rows",
                f"The {_TOP} units with the most rows, and their share of all rows; 1/units is even.",
                house.RATIO,
                Ask(_top(rate(rows_in, "unit"), rate(rows_in)), "unit {{unit}}"),
                span=8,
            ).max(1),
            house.ranking(
                "Share of the time",
                f"The {_TOP} units in which tasks spend the most time, and their share of all time.",
                house.RATIO,
                Ask(_top(rate(time, "unit"), rate(time)), "unit {{unit}}"),
                span=8,
            ).max(1),
            house.ranking(
                "Share of the state",
                f"The {_TOP} units with the most rows of state, and their share of all rows.",
                house.RATIO,
                Ask(_top(gauge(state, "unit"), total(of(state))), "unit {{unit}}"),
                span=8,
            ).max(1),
        ],
    )


def _rate_by_unit(name: str) -> str:
    return f"rate({of(name)}[$__rate_interval])"


def _top(parts: str, whole: str) -> str:
    """The greatest shares; where there is nothing to share out, each is 0."""
    return f"topk({_TOP}, {share(parts, whole)} or {parts})"
