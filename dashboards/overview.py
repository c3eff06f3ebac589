"""Is it keeping up? Rates, lag, time of batches, state and executors of one StreamJoin."""

from typing import Any

from dashboards import house
from dashboards.house import Ask, Missing, Row
from dashboards.queries import WINDOW, gauge, quantile, rate, ratio, share, total, where

SLOW_S, LATE_S = 10, 60
_NO_TIME = Missing(
    "no time", "No input has an event time (`eventTime`), no row has come yet, or no driver is scraped."
)
_NO_JVM = Missing("no JVM", "Batches run without Spark, the JVM has just started, or no driver is scraped.")
_NO_KUBELET = Missing(
    "not known",
    "Prometheus scrapes neither kubelet nor kube-state-metrics, or its series have other labels than theirs.",
)


def dashboard() -> dict[str, Any]:
    """The dashboard, as JSON."""
    says = "Is it keeping up? Rates, lag, time of batches, state and executors of one StreamJoin."
    return house.board(
        "overview",
        "Overview",
        says,
        [_now(), _flow(), _batches(), _time(), _changes(), _state(), _heaps(), _pods()],
    )


def _now() -> Row:
    ready = where("streamjoin_executors", 'state="ready"')
    return Row(
        "Now",
        house.NO_DRIVER,
        [
            house.word(
                "Phase",
                "What the driver is doing. If it is not Running for minutes, see its log and `kubectl "
                "describe sj`.",
                Ask(f"{gauge('streamjoin_phase', 'phase')} == 1", "{{phase}}"),
                ["Running"],
            ),
            house.figure(
                "Rows in",
                "Rows of all inputs joined per second.",
                house.ROWS_RATE,
                Ask(rate("streamjoin_rows_in_total"), "in"),
            ),
            house.figure(
                "Rows out",
                "Result rows per second.",
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
                "Time since a batch was last committed. It grows while there is no progress or no input.",
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
                "Live segments and their indexes, which executors map into memory.",
                house.BYTES,
                Ask(gauge("streamjoin_state_bytes"), "state"),
            ),
            house.figure(
                "Executors",
                "Executors that are ready. A driver on one machine has none of its own.",
                house.NUMBER,
                Ask(ready, "ready"),
            ),
        ],
    )


def _flow() -> Row:
    return Row(
        "Rows",
        house.NO_DRIVER,
        [
            house.lines(
                "Rows in by input",
                "Rows joined per second, without late ones.",
                house.ROWS_RATE,
                Ask(rate("streamjoin_rows_in_total", "input"), "{{input}}"),
                span=8,
            ),
            house.lines(
                "Results",
                "Result rows per second. If there are none while rows come in, keys do not match or "
                "rows wait for the watermark.",
                house.ROWS_RATE,
                Ask(rate("streamjoin_rows_out_total"), "results"),
                span=8,
            ),
            house.lines(
                "Lag by input",
                "Rows known but not read yet. Growth over many minutes means that rows arrive faster "
                "than they are joined.",
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
        house.NO_DRIVER,
        [
            house.lines(
                "Time of a batch",
                "Time from a batch's offsets to its commit.",
                house.SECONDS,
                Ask(quantile(0.5, "streamjoin_batch_seconds"), "p50"),
                Ask(quantile(0.95, "streamjoin_batch_seconds"), "p95"),
                Ask(quantile(0.99, "streamjoin_batch_seconds"), "p99"),
                span=8,
            ),
            house.stacked(
                "Where a batch's time goes",
                "Mean time of each of Spark's steps: addBatch is the join, walCommit and commitOffsets write"
                " the checkpoint.",
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
        _NO_TIME,
        [
            house.lines(
                "Age of the newest row",
                "Time since the highest event time read. It grows if the input brings old rows or none.",
                house.SECONDS,
                Ask(f"time() - {gauge('streamjoin_event_time_seconds', 'input')}", "{{input}}"),
                span=8,
            ),
            house.lines(
                "Ahead of the watermark",
                "How far an input is ahead of the watermark. The input with the lowest value holds "
                "back the others and keeps their state.",
                house.SECONDS,
                Ask(gauge("streamjoin_watermark_delay_seconds", "input"), "{{input}}"),
                span=8,
            ),
            house.lines(
                "Late rows",
                "Rows per second that were left out because they were behind the watermark. A larger "
                "`eventTime.delay` lets them in.",
                house.ROWS_RATE,
                Ask(rate("streamjoin_late_rows_total", "input"), "{{input}}"),
                span=8,
            ),
            house.lines(
                "Dead letters",
                "Rows per second that were left out and kept in the folder of `deadLetters`, by input (or by output, if "
                "they failed behind the inputs) and reason. Each file there says where a row came from and why it is there.",
                house.ROWS_RATE,
                Ask(rate("streamjoin_dead_letters_total", "input", "reason"), "{{input}} {{reason}}"),
                span=24,
            ),
        ],
    )


def _changes() -> Row:
    return Row(
        "Changes",
        house.NO_DRIVER,
        [
            house.lines(
                "Deleted rows",
                "Rows per second that came as deletions; an update is a deletion and an insertion. Unknown: those"
                " whose row was not there, which were left out.",
                house.ROWS_RATE,
                Ask(rate("streamjoin_deleted_rows_total", "input"), "{{input}}"),
                Ask(rate("streamjoin_unknown_deleted_rows_total", "input"), "{{input}} unknown"),
                span=12,
            ),
            house.lines(
                "Dead rows",
                "Rows of the state that were deleted and are not merged away yet: up to a third of what is there.",
                house.COUNT,
                Ask(gauge("streamjoin_dead_rows"), "dead"),
                Ask(gauge("streamjoin_state_rows"), "all"),
                span=12,
            ),
        ],
    )


def _state() -> Row:
    executors = gauge("streamjoin_executors", "state")
    return Row(
        "State and executors",
        house.NO_DRIVER,
        [
            house.lines(
                "Rows of state",
                "Rows kept because a partner may still come. Without time bounds or `join.retention` it"
                " grows forever.",
                house.COUNT,
                Ask(gauge("streamjoin_state_rows"), "rows"),
                span=8,
            ),
            house.lines(
                "Bytes of state",
                "Live: segments in use and their indexes, in memory. Checkpoint: all segments on "
                "disk, including those kept for recovery.",
                house.BYTES,
                Ask(gauge("streamjoin_state_bytes"), "live"),
                Ask(gauge("streamjoin_checkpoint_bytes"), "checkpoint"),
                span=8,
            ),
            house.steps(
                "Executors over time",
                "Executors that are ready, wanted, leaving and spare.",
                house.NUMBER,
                Ask(executors, "{{state}}"),
                span=8,
            ),
        ],
    )


def _heaps() -> Row:
    """Of a job on a cluster. Without Spark there is no JVM."""
    driver = house.lines(
        "Heap of the driver",
        "What the driver's JVM has in use, garbage included, and the most it may have. Rows do not pass through"
        " it: if it stays full, give `driver.memory` more.",
        house.BYTES,
        Ask(gauge("streamjoin_driver_heap_bytes"), "used"),
        Ask(gauge("streamjoin_driver_heap_limit_bytes"), "limit"),
        span=8,
    )
    executors = house.lines(
        "Heap of executors",
        "What each executor's JVM has in use, garbage included, and the most that any may have. Rows do not pass through"
        " it, and most of `executors.memory` is not heap.",
        house.BYTES,
        Ask(gauge("streamjoin_executor_heap_bytes", "executor"), "executor {{executor}}"),
        Ask(gauge("streamjoin_executor_heap_limit_bytes"), "limit"),
        span=8,
    )
    return Row(
        "Heaps",
        _NO_JVM,
        [
            house.dashed(driver, "limit", house.RED),
            house.empty(
                house.dashed(executors, "limit", house.RED),
                "A job on one machine has no executors; those of a cluster tell every ten seconds.",
            ),
            house.lines(
                "Time for garbage",
                "Share of the time in which a JVM collects garbage and does nothing else. Above a tenth, its heap is"
                " too small for what it holds.",
                house.RATIO,
                Ask(rate("streamjoin_driver_gc_seconds_total"), "driver"),
                Ask(rate("streamjoin_executor_gc_seconds_total", "executor"), "executor {{executor}}"),
                span=8,
            ),
        ],
    )


def _pods() -> Row:
    """What kubelet and kube-state-metrics say, where Prometheus scrapes them."""
    pods = 'namespace="$namespace", pod=~"$streamjoin-driver-0|$streamjoin-exec-.+"'
    each, full = f'{pods}, container!="", container!="POD"', 'namespace="$namespace"'
    volumes = f"kubelet_volume_stats_used_bytes{{{full}}} / kubelet_volume_stats_capacity_bytes{{{full}}}"
    throttled = f"sum by (pod) (rate(container_cpu_cfs_throttled_seconds_total{{{each}}}[{WINDOW}]))"
    return Row(
        "Pods and volumes (from kubelet and kube-state-metrics)",
        _NO_KUBELET,
        [
            house.lines(
                "CPU by pod",
                "Cores that the driver and each executor use. Throttled: how much more a limit keeps from them.",
                house.NUMBER,
                Ask(f"sum by (pod) (rate(container_cpu_usage_seconds_total{{{each}}}[{WINDOW}]))", "{{pod}}"),
                Ask(f"{throttled} > 0", "{{pod}} throttled"),
                span=6,
            ).decimals(2),
            house.lines(
                "Memory by pod",
                "Working set of each pod: heap of the JVM, Python, and state that cannot be dropped at once.",
                house.BYTES,
                Ask(f"sum by (pod) (container_memory_working_set_bytes{{{each}}})", "{{pod}}"),
                span=6,
            ),
            house.steps(
                "Restarts by pod",
                "Restarts of a pod's container. A driver that restarts goes on from its last batch; "
                "`kubectl describe sj` has its last words.",
                house.NUMBER,
                Ask(f"sum by (pod) (kube_pod_container_status_restarts_total{{{pods}}})", "{{pod}}"),
                span=6,
            ),
            house.limit(
                house.lines(
                    "Volumes",
                    "How full the claims of the namespace are. A full one stops jobs, and loses nothing.",
                    house.RATIO,
                    Ask(volumes, "{{persistentvolumeclaim}}"),
                    span=6,
                ).max(1),
                (0.9, house.RED),
            ),
        ],
        folded=True,
    )
