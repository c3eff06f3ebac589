"""What does the join itself do? Matches, time in units, segments, and the cost of keeping state."""

from typing import Any

from dashboards import house
from dashboards.house import Ask, Row
from dashboards.queries import by_unit, gauge, of, rate, ratio, share, total


def dashboard() -> dict[str, Any]:
    """The dashboard, as JSON."""
    says = "What does the join itself do? Matches, time in units, segments, and the cost of keeping state."
    return house.board("joins", "Join internals", says, [_matches(), _time(), _segments(), _steps()])


def _matches() -> Row:
    rows_in, rows_out = rate("streamjoin_rows_in_total"), rate("streamjoin_rows_out_total")
    per_input = rate("streamjoin_rows_in_total", "input")
    return Row(
        "Matches",
        [
            house.lines(
                "Results for each row",
                "Result rows over rows joined: how selective the join is.",
                house.NUMBER,
                Ask(ratio(rows_out, rows_in), "results"),
                span=8,
            ).decimals(2),
            house.stacked(
                "Share of each input",
                "Of the rows that are joined. Each is probed against the state of the others, then stored.",
                house.RATIO,
                Ask(share(per_input, rows_in), "{{input}}"),
                span=8,
            ),
            house.lines(
                "Rows read by input",
                "Rows a second over the last batches, as the driver counts them.",
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
        [
            house.stacked(
                "Tasks at work",
                "Mean number of tasks that probe and insert, or write the state of a batch, at any time.",
                house.NUMBER,
                Ask(f"{busy} - {commit}", "probe, insert, emit"),
                Ask(commit, "log, seal, merge"),
                span=8,
            ).decimals(1),
            house.lines(
                "Time for a row",
                "Time in units over rows that came to them, of one core.",
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
                "Result rows a second of each unit.",
                house.ROWS_RATE,
                Ask(
                    by_unit(f"rate({of('streamjoin_unit_rows_out_total')}[$__rate_interval])"), "unit {{at}}"
                ),
                span=8,
            ).height(house.HEIGHT),
        ],
    )


def _segments() -> Row:
    live, rows = gauge("streamjoin_state_bytes"), gauge("streamjoin_state_rows")
    return Row(
        "Segments",
        [
            house.lines(
                "Live segments",
                "Each batch adds one for a unit, merging makes few of many: flat in the long run.",
                house.COUNT,
                Ask(gauge("streamjoin_segments"), "all units"),
                span=8,
            ),
            house.lines(
                "Bytes for a row of state",
                "Live: segment and index, in memory. Checkpoint: on disk, with what is kept for recovery.",
                house.BYTES,
                Ask(ratio(live, rows), "live"),
                Ask(ratio(gauge("streamjoin_checkpoint_bytes"), rows), "checkpoint"),
                span=8,
            ).decimals(0),
            house.lines(
                "Rows in a segment",
                "Rows of state over live segments. It grows as merging makes few of many.",
                house.COUNT,
                Ask(ratio(rows, gauge("streamjoin_segments")), "rows"),
                span=8,
            ),
        ],
    )


def _steps() -> Row:
    steps = rate("streamjoin_batch_step_seconds_total", "step")
    return Row(
        "Around the join",
        [
            house.stacked(
                "Share of a batch's time",
                "By Spark's steps. Much outside addBatch: the checkpoint's volume is slow, or batches are too small.",
                house.RATIO,
                Ask(share(steps, total(steps)), "{{step}}"),
                span=8,
            ),
            house.lines(
                "Busy",
                "Share of the time in which a batch runs. Near 100 %: batches follow each other without a pause, more rows "
                "make them longer.",
                house.RATIO,
                Ask(rate("streamjoin_batch_seconds_sum"), "a batch runs"),
                span=8,
            ),
            house.lines(
                "Batches",
                "Batches a second. Each costs some tenths of a second however small it is.",
                house.NUMBER,
                Ask(rate("streamjoin_batches_total"), "batches"),
                span=8,
            ).decimals(2),
        ],
    )
