"""Is it keeping up? Rates, lag, time of batches, state and executors of one StreamJoin."""

from typing import Any

from dashboards import house
from dashboards.house import Ask, Row
from dashboards.queries import gauge, quantile, rate, ratio, share, total, where

SLOW_S, LATE_S = 10, 60


def dashboard() -> dict[str, Any]:
    """The dashboard, as JSON."""
    says = "Is it keeping up? Rates, lag, time of batches, state and executors of one StreamJoin."
    return house.board("overview", "Overview", says, [_now(), _flow(), _batches(), _time(), _state()])


def _now() -> Row:
    ready = where("streamjoin_executors", 'state="ready"')
    return Row(
        "Now",
        [
            house.word(
                "Phase",
                "What the driver is doing. Anything but Running for minutes: see its log and `kubectl describe sj`.",
                Ask(f"{gauge('streamjoin_phase', 'phase')} == 1", "{{phase}}"),
                ["Running"],
            ),
            house.figure(
                "Rows in",
                "Rows of all inputs that were joined, a second.",
                house.ROWS_RATE,
                Ask(rate("streamjoin_rows_in_total"), "in"),
            ),
            house.figure(
                "Rows out",
                "Result rows a second.",
                house.ROWS_RATE,
                Ask(rate("streamjoin_rows_out_total"), "out"),
            ),
            house.figure(
                "Lag",
                "Rows of all inputs that are known but not read yet.",
                house.COUNT,
                Ask(total(gauge("streamjoin_lag_rows", "input")), "lag"),
            ),
            house.figure(
                "Since last batch",
                "Time since a batch was last committed. It grows while nothing gets done, or nothing comes.",
                house.SECONDS,
                Ask(f"time() - {gauge('streamjoin_last_batch_timestamp_seconds')}", "ago"),
                (LATE_S, house.YELLOW),
                (5 * LATE_S, house.RED),
            ),
            house.figure(
                "Slow batches",
                "95 of 100 batches take no longer than this, from their offsets to their commit.",
                house.SECONDS,
                Ask(quantile(0.95, "streamjoin_batch_seconds"), "p95"),
                (SLOW_S, house.YELLOW),
                (6 * SLOW_S, house.RED),
            ),
            house.figure(
                "State",
                "Live segments and their indexes: what executors map into memory.",
                house.BYTES,
                Ask(gauge("streamjoin_state_bytes"), "state"),
            ),
            house.figure(
                "Executors",
                "Executors that are there. A driver on one machine has none of its own.",
                house.NUMBER,
                Ask(ready, "ready"),
            ),
        ],
    )


def _flow() -> Row:
    return Row(
        "Rows",
        [
            house.lines(
                "Rows in by input",
                "Rows joined a second, late ones not among them.",
                house.ROWS_RATE,
                Ask(rate("streamjoin_rows_in_total", "input"), "{{input}}"),
                span=8,
            ),
            house.lines(
                "Results",
                "Result rows a second. None while rows come in: keys do not meet, or rows wait for their watermark.",
                house.ROWS_RATE,
                Ask(rate("streamjoin_rows_out_total"), "results"),
                span=8,
            ),
            house.lines(
                "Lag by input",
                "Rows known but not read yet. Growth over many minutes means that rows come faster than they are joined.",
                house.COUNT,
                Ask(gauge("streamjoin_lag_rows", "input"), "{{input}}"),
                span=8,
            ),
        ],
    )


def _batches() -> Row:
    batches = rate("streamjoin_batches_total")
    return Row(
        "Batches",
        [
            house.lines(
                "Time of a batch",
                "From its offsets to its commit: how long a row waits at most before its results are out.",
                house.SECONDS,
                Ask(quantile(0.5, "streamjoin_batch_seconds"), "half"),
                Ask(quantile(0.95, "streamjoin_batch_seconds"), "95 of 100"),
                Ask(quantile(0.99, "streamjoin_batch_seconds"), "99 of 100"),
                span=8,
            ),
            house.stacked(
                "Where a batch's time goes",
                "Mean time of each of Spark's steps: addBatch is the join, walCommit and commitOffsets write the checkpoint.",
                house.SECONDS,
                Ask(
                    share(rate("streamjoin_batch_step_seconds_total", "step"), batches),
                    "{{step}}",
                ),
                span=8,
            ),
            house.lines(
                "Rows in a batch",
                "Mean number of rows that a batch joins; `batch.maxRows` bounds it.",
                house.COUNT,
                Ask(ratio(rate("streamjoin_rows_in_total"), batches), "rows"),
                span=8,
            ),
        ],
    )


def _time() -> Row:
    return Row(
        "Event time",
        [
            house.lines(
                "Age of the newest row",
                "Time since the highest event time that was read. Grows: the input brings old rows, or none.",
                house.SECONDS,
                Ask(f"time() - {gauge('streamjoin_event_time_seconds', 'input')}", "{{input}}"),
                span=8,
            ),
            house.lines(
                "Ahead of the watermark",
                "How far an input is ahead of the watermark. The one with the least holds the others, and their state, back.",
                house.SECONDS,
                Ask(gauge("streamjoin_watermark_delay_seconds", "input"), "{{input}}"),
                span=8,
            ),
            house.lines(
                "Late rows",
                "Rows left out a second because they came after the watermark: a greater `eventTime.delay` lets them in.",
                house.ROWS_RATE,
                Ask(rate("streamjoin_late_rows_total", "input"), "{{input}}"),
                span=8,
            ),
        ],
    )


def _state() -> Row:
    executors = gauge("streamjoin_executors", "state")
    return Row(
        "State and executors",
        [
            house.lines(
                "Rows of state",
                "Rows kept because a partner may still come. Without time bounds or `join.retention` it grows for ever.",
                house.COUNT,
                Ask(gauge("streamjoin_state_rows"), "rows"),
                span=8,
            ),
            house.lines(
                "Bytes of state",
                "Live: segments in use and their indexes, in memory. Checkpoint: all segments on disk, those kept for "
                "recovery included.",
                house.BYTES,
                Ask(gauge("streamjoin_state_bytes"), "live"),
                Ask(gauge("streamjoin_checkpoint_bytes"), "checkpoint"),
                span=8,
            ),
            house.steps(
                "Executors over time",
                "That are there, that are wanted, and that are being sent away.",
                house.NUMBER,
                Ask(executors, "{{state}}"),
                span=8,
            ),
        ],
    )
