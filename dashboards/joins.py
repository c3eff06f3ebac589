"""What does the join itself do? Matches, time in units, segments, and the cost of keeping state."""

from typing import Any

from dashboards import house
from dashboards.house import Ask, Missing, Row
from dashboards.queries import by_unit, gauge, of, rate, ratio, share, total

_NO_UNITS = Missing(
    "none", "No unit has had work yet, there are more than 1024 of them, or no driver is scraped."
)
_NO_ORDER = Missing(
    "none", "The query joins fewer than three inputs, or its units have not measured their probes yet."
)
_NO_TABLE = Missing(
    "none", "The query looks up no table, or none of this kind (`cache`), or no driver is scraped."
)


def dashboard() -> dict[str, Any]:
    """The dashboard, as JSON."""
    says = "What does the join do? Matches, time in units, segments, and the cost of keeping state."
    return house.board(
        "joins",
        "Join internals",
        says,
        [_matches(), _time(), _orders(), _segments(), _runs(), _tables(), _steps()],
    )


def _matches() -> Row:
    rows_in, rows_out = rate("streamjoin_rows_in_total"), rate("streamjoin_rows_out_total")
    per_input = rate("streamjoin_rows_in_total", "input")
    return Row(
        "Matches",
        house.NO_DRIVER,
        [
            house.lines(
                "Results for each row",
                "Result rows over rows joined: the selectivity of the join.",
                house.NUMBER,
                Ask(ratio(rows_out, rows_in), "results"),
                span=8,
            ).decimals(2),
            house.stacked(
                "Share of each input",
                "Share of each input in the rows joined. A row first probes the state of the other "
                "inputs, then it is stored.",
                house.RATIO,
                Ask(share(per_input, rows_in), "{{input}}"),
                span=8,
            ),
            house.lines(
                "Rows read by input",
                "Rows per second over the last batches, as the driver counts them.",
                house.ROWS_RATE,
                Ask(gauge("streamjoin_input_rate", "input"), "{{input}}"),
                span=8,
            ),
        ],
    )


def _time() -> Row:
    busy, commit = rate("streamjoin_unit_seconds_total"), rate("streamjoin_unit_commit_seconds_total")
    return Row(
        "Time in units",
        _NO_UNITS,
        [
            house.stacked(
                "Tasks at work",
                "Mean number of tasks that probe, insert or write state at the same time.",
                house.NUMBER,
                Ask(f"{busy} - {commit}", "probe, insert, emit"),
                Ask(commit, "log, seal, merge"),
                span=8,
            ).decimals(1),
            house.lines(
                "Time for a row",
                "Time spent in units over the rows that they received, for one core.",
                house.SECONDS,
                Ask(
                    ratio(f"({busy} - {commit})", rate("streamjoin_unit_rows_in_total")),
                    "probe, insert, emit",
                ),
                Ask(ratio(commit, rate("streamjoin_unit_rows_in_total")), "log, seal, merge"),
                span=8,
            ),
            house.map_of(
                "Results by unit",
                "Result rows per second of each unit.",
                house.ROWS_RATE,
                Ask(
                    by_unit(f"rate({of('streamjoin_unit_rows_out_total')}[$__rate_interval])"), "unit {{at}}"
                ),
                span=8,
            ).height(house.HEIGHT),
        ],
    )


def _orders() -> Row:
    """Empty for joins of two inputs."""
    foretold = gauge("streamjoin_probe_predicted_seconds", "input")
    measured = gauge("streamjoin_probe_measured_seconds", "input")
    cost = house.lines(
        "Time of a row's probes",
        "Solid: measured until the orders were last chosen. Dashed: predicted for the chosen "
        "orders. If a line stays far above its dashed one, the data change faster than the "
        "orders.",
        house.SECONDS,
        Ask(measured, "{{input}}"),
        Ask(foretold, "{{input}}, foretold"),
        span=8,
    )
    return Row(
        "Probe orders of joins of three inputs or more",
        _NO_ORDER,
        [
            house.steps(
                "Place in the order",
                "Position at which rows of an input probe another one; 1 is first. Mean over the "
                "units, each of which has its own orders.",
                house.NUMBER,
                _asked("streamjoin_probe_position"),
                span=8,
            )
            .decimals(2)
            .fill_opacity(0),
            house.lines(
                "Rows that find something",
                "γ: the share of the rows of an input that find partners in another one. It is best "
                "to probe first where the fewest are found.",
                house.RATIO,
                _asked("streamjoin_probe_match_ratio"),
                span=8,
            ).max(1),
            house.lines(
                "Partners of those",
                "μ: the number of partners found by a row that finds any.",
                house.NUMBER,
                _asked("streamjoin_probe_matches"),
                span=8,
            ).decimals(2),
            house.lines(
                "Keys of state",
                "κ: estimated number of distinct keys in the state of an input, over all units.",
                house.COUNT,
                Ask(gauge("streamjoin_probe_keys", "input"), "{{input}}"),
                span=8,
            ),
            house.broken(cost, "foretold$"),
            house.lines(
                "Measured over foretold",
                "Measured over predicted time of a row's probes. Near 1 the cost model is accurate.",
                house.NUMBER,
                Ask(ratio(measured, foretold), "{{input}}"),
                span=8,
            ).decimals(2),
        ],
        folded=True,
    )


def _asked(name: str) -> Ask:
    """A series for each pair of inputs."""
    return Ask(gauge(name, "input", "other"), "{{input}} asks {{other}}")


def _segments() -> Row:
    live, rows = gauge("streamjoin_state_bytes"), gauge("streamjoin_state_rows")
    return Row(
        "Segments",
        house.NO_DRIVER,
        [
            house.lines(
                "Live segments",
                "Each batch adds a segment to a unit, and merging combines them, so the number is "
                "flat in the long run.",
                house.COUNT,
                Ask(gauge("streamjoin_segments"), "all units"),
                span=8,
            ),
            house.lines(
                "Bytes for a row of state",
                "Live: segments and indexes in memory. Checkpoint: on disk, including what is kept "
                "for recovery.",
                house.BYTES,
                Ask(ratio(live, rows), "live"),
                Ask(ratio(gauge("streamjoin_checkpoint_bytes"), rows), "checkpoint"),
                span=8,
            ).decimals(0),
            house.lines(
                "Rows in a segment",
                "Rows of state over live segments. Merging makes it grow.",
                house.COUNT,
                Ask(ratio(rows, gauge("streamjoin_segments")), "rows"),
                span=8,
            ),
        ],
    )


def _runs() -> Row:
    return Row(
        "Runs and levels",
        house.NO_DRIVER,
        [
            house.steps(
                "Runs by level",
                "Head: the run that takes new rows. 0: sealed, rows in the order of arrival. With "
                "join.memory these are sorted by hash (1), and ten runs of a level become one of the "
                "next.",
                house.COUNT,
                Ask(gauge("streamjoin_runs", "level"), "{{level}}"),
                span=8,
            ).fill_opacity(0),
            house.stacked(
                "Bytes by level",
                "Bytes of the state by level. With join.memory most of it moves to the higher levels.",
                house.BYTES,
                Ask(gauge("streamjoin_run_bytes", "level"), "{{level}}"),
                span=8,
            ),
            house.lines(
                "Written by merges in a batch",
                "Bytes written by merges over batches, for all units. A merge continues by a piece in "
                "each batch, so no batch has to do much more than the others.",
                house.BYTES,
                Ask(
                    ratio(rate("streamjoin_merged_bytes_total"), rate("streamjoin_batches_total")),
                    "all units",
                ),
                span=8,
            ),
        ],
    )


def _tables() -> Row:
    hits, misses = (
        rate("streamjoin_table_hits_total", "table"),
        rate("streamjoin_table_misses_total", "table"),
    )
    taken = house.lines(
        "Kept of tables",
        "Bytes in the cache: a whole table once, incremental caches in every unit. Dashed: "
        "the budget. A full cache drops what was not used for long.",
        house.BYTES,
        Ask(gauge("streamjoin_table_bytes", "table"), "{{table}}"),
        Ask(gauge("streamjoin_table_budget_bytes", "table"), "{{table}}, budget"),
        span=8,
    )
    return Row(
        "Tables",
        _NO_TABLE,
        [
            house.lines(
                "Answered from what is kept",
                "Share of lookups that were answered from the cache. If it stays low, the budget is "
                "too small or keys are always new.",
                house.RATIO,
                Ask(ratio(hits, f"({hits} + {misses})"), "{{table}}"),
                span=8,
            ).max(1),
            house.stacked(
                "Lookups",
                "Rows per second whose key was looked up, over all tables. Expired: the cached answer "
                "is older than refresh.",
                house.ROWS_RATE,
                Ask(rate("streamjoin_table_hits_total"), "kept"),
                Ask(
                    f"{rate('streamjoin_table_misses_total')} - {rate('streamjoin_table_expired_total')}",
                    "asked for: new",
                ),
                Ask(rate("streamjoin_table_expired_total"), "asked for: expired"),
                span=8,
            ),
            house.broken(taken, "budget$"),
            house.lines(
                "Queries",
                "Queries per second for missing keys: at most one for each unit and batch.",
                house.NUMBER,
                Ask(rate("streamjoin_table_queries_total", "table"), "{{table}}"),
                span=8,
            ).decimals(2),
            house.lines(
                "Time to load",
                "Duration of the last load of a whole table.",
                house.SECONDS,
                Ask(gauge("streamjoin_table_load_seconds", "table"), "{{table}}"),
                span=8,
            ),
            house.lines(
                "Age of whole tables",
                "Time since the last load. If it exceeds refresh, loads fail or find the table empty, "
                "and the previous version is kept.",
                house.SECONDS,
                Ask(f"time() - {gauge('streamjoin_table_loaded_timestamp_seconds', 'table')}", "{{table}}"),
                span=8,
            ),
        ],
        folded=True,
    )


def _steps() -> Row:
    steps = rate("streamjoin_batch_step_seconds_total", "step")
    return Row(
        "Around the join",
        house.NO_DRIVER,
        [
            house.stacked(
                "Share of a batch's time",
                "Share of each of Spark's steps. Much time outside of addBatch means that the "
                "checkpoint's volume is slow or batches are too small.",
                house.RATIO,
                Ask(share(steps, total(steps)), "{{step}}"),
                span=8,
            ),
            house.lines(
                "Busy",
                "Share of the time in which a batch runs. Near 100 % batches follow each other "
                "without a pause, and more rows make them longer.",
                house.RATIO,
                Ask(rate("streamjoin_batch_seconds_sum"), "a batch runs"),
                span=8,
            ),
            house.lines(
                "Batches",
                "Batches per second. Each takes some tenths of a second, however small it is.",
                house.NUMBER,
                Ask(rate("streamjoin_batches_total"), "batches"),
                span=8,
            ).decimals(2),
        ],
    )
