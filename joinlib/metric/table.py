"""Defines every exported metric, once: its name, type, unit, labels and meaning.

The exporters are driven by this table, docs/reference/metrics.md is generated from it, and queries of
dashboards, rules and the scaler are checked against it. All names are as a query writes them. An unknown
value is absent, never zero.

The number of label values is bounded: inputs are named in the spec, units and executors are at most as many
as it says, and all others have the few values listed here. The labels `namespace` and `streamjoin` say to
which job a series belongs: the scrape adds them to what a driver exports, and the operator exports them
itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]
Unit = Literal["", "rows", "bytes", "seconds", "ratio", "rows/s"]
Source = Literal["driver", "operator", "process"]  # process: the operator's own work, not that of a job

PHASES = ("Waiting", "Starting", "Running", "Stopping", "Failed")
EXECUTORS = ("ready", "wanted", "leaving", "spare")
STEPS = ("latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets")
THRESHOLDS = ("high", "low", "target")
DIRECTIONS = ("out", "in")
WANTS = ("state", "lag")
ROUTES = ("hash", "rule")
LEVELS = ("head", "0", "1", "2", "3", "4")
JOB = ("Pending", "Running", "Suspended", "Degraded", "Failed")
SCALING = ("Idle", "Growing", "Shrinking")
VERDICTS = (
    "Steady",
    "Voting",
    "ScaleOut",
    "ScaleIn",
    "Settled",
    "RolledBack",
    "Waiting",
    "Cooling",
    "CatchingUp",
    "AtLimit",
    "Ineffective",
    "Advised",
    "Limits",
    "Blind",
    "Pinned",
)
SERIES_UNITS = 1024  # jobs with more units have no series per unit

LABELS: Mapping[str, str] = {
    "input": "the name of an input in the spec",
    "other": (
        "like `input`; in joins of three inputs or more both are aliases of the SQL, and a join below is"
        " `a+b`"
    ),
    "table": "the name of a table in the SQL",
    "unit": f"0 to `join.units` - 1; absent where there are more than {SERIES_UNITS}",
    "executor": "Spark's id of an executor",
    "phase": (
        f"of the driver: {', '.join(PHASES)}; of scaling: {', '.join(SCALING)}; of a job: {', '.join(JOB)}"
    ),
    "state": ", ".join(EXECUTORS),
    "step": f"Spark's steps of a batch: {', '.join(STEPS)}",
    "threshold": ", ".join(THRESHOLDS),
    "direction": ", ".join(DIRECTIONS),
    "by": "state: what is held in memory; lag: rows that wait and rows that come",
    "origin": "the name of the job whose state a fork began with",
    "route": "hash: as hashes alone would route rows; rule: as they were routed, with hot keys spread",
    "level": (
        "head: the newest rows; 0: sealed, in the order of arrival; n: sorted by hash, after n merges"
        f" (`join.memory`); {LEVELS[-1]}: that many or more"
    ),
    "verdict": ", ".join(VERDICTS),
    "result": "done, failed",
    "reason": "why a row is a dead letter: unreadable, expression, late, result",
    "kind": "a kind of Kubernetes' objects, as a word or in the plural",
    "verb": "what was done to an object, such as apply or delete",
    "code": "of HTTP, or 0 where there was no answer",
    "namespace": "of the StreamJoin",
    "streamjoin": "the name of the StreamJoin",
}
_JOB = ("namespace", "streamjoin")


@dataclass(frozen=True)
class Metric:
    """One metric. `name`: the whole name, as in a query, except for the suffixes of a histogram."""

    name: str
    kind: Kind
    unit: Unit
    help: str
    labels: tuple[str, ...] = ()
    source: Source = "driver"

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its series, which queries may use."""
        if self.kind == "histogram":
            return tuple(f"{self.name}_{suffix}" for suffix in ("bucket", "sum", "count"))
        return (self.name,)


def _driver(name: str, kind: Kind, unit: Unit, text: str, *labels: str) -> Metric:
    return Metric(f"streamjoin_{name}", kind, unit, text, labels)


def _process(name: str, kind: Kind, unit: Unit, text: str, *labels: str) -> Metric:
    return Metric(f"streamjoin_operator_{name}", kind, unit, text, labels, "process")


def _scaling(name: str, kind: Kind, unit: Unit, text: str, *labels: str) -> Metric:
    return Metric(f"streamjoin_scaling_{name}", kind, unit, text, (*_JOB, *labels), "operator")


METRICS: tuple[Metric, ...] = (
    # the job
    _driver("phase", "gauge", "", "1 for the phase that the driver is in, 0 for the others.", "phase"),
    _driver("batches_total", "counter", "", "Batches committed."),
    _driver("batch_seconds", "histogram", "seconds", "Duration of a batch, from its offsets to its commit."),
    _driver(
        "batch_step_seconds_total", "counter", "seconds", "Time spent in batches, by Spark's steps.", "step"
    ),
    _driver("last_batch_timestamp_seconds", "gauge", "seconds", "When the last batch was committed."),
    _driver("rows_out_total", "counter", "rows", "Result rows."),
    _driver("state_rows", "gauge", "rows", "Rows in the state."),
    _driver("dead_rows", "gauge", "rows", "Rows of the state that were deleted and are not merged away yet."),
    _driver(
        "state_bytes", "gauge", "bytes", "Bytes of live segments and their indexes, which executors map."
    ),
    _driver(
        "checkpoint_bytes", "gauge", "bytes", "Bytes of all segments, including those kept for recovery."
    ),
    _driver("segments", "gauge", "", "Live segments."),
    _driver("runs", "gauge", "", "Runs of the state; the segments of a run share one index.", "level"),
    _driver("run_bytes", "gauge", "bytes", "Bytes of the segments of these runs.", "level"),
    _driver("merged_bytes_total", "counter", "bytes", "Bytes written by merges of the state."),
    _driver(
        "memory_load",
        "gauge",
        "ratio",
        "Bytes of state in memory over the bytes that the present executors may hold.",
    ),
    _driver(
        "skew",
        "gauge",
        "ratio",
        "Rows of state of the fullest unit over the mean, minus 1; 0 is even. Absent below 10 rows a unit.",
    ),
    _driver(
        "watermark_seconds",
        "gauge",
        "seconds",
        "Watermark of the unit that is furthest behind, as an event time.",
    ),
    _driver("units", "gauge", "", "Units of the job: the slices of its state."),
    _driver(
        "forked_batch",
        "gauge",
        "",
        "Of a fork: the batch of the other job behind which it began. Absent of other jobs.",
        "origin",
    ),
    _driver("partitions", "gauge", "", "Partitions of the units: tasks that can join at the same time."),
    _driver("executors", "gauge", "", "Executors that are ready, wanted, leaving and spare.", "state"),
    _driver(
        "driver_heap_bytes", "gauge", "bytes", "Heap of the driver's JVM that is in use, garbage included."
    ),
    _driver("driver_heap_limit_bytes", "gauge", "bytes", "The most that this heap may be."),
    _driver(
        "driver_gc_seconds_total",
        "counter",
        "seconds",
        "Time that the driver's JVM spent to collect garbage.",
    ),
    _driver(
        "true_rate",
        "gauge",
        "rows/s",
        "Rows read per second of busy time, while a batch runs, by the executors that are ready; over the last"
        " minute. It is what they can do where rows wait; else a job reads no more than there is.",
    ),
    # its inputs
    _driver("rows_in_total", "counter", "rows", "Rows joined, without late ones.", "input"),
    _driver(
        "late_rows_total", "counter", "rows", "Rows left out because they were behind the watermark.", "input"
    ),
    _driver(
        "bad_messages_total", "counter", "", "Messages left out because they could not be decoded.", "input"
    ),
    _driver(
        "dead_letters_total",
        "counter",
        "",
        "Rows kept as dead letters. Those of a result, such as joined rows and groups, have the name of the output as `input`; "
        "the only output has none.",
        "input",
        "reason",
    ),
    _driver("deleted_rows_total", "counter", "rows", "Rows that came as deletions.", "input"),
    _driver(
        "unknown_deleted_rows_total",
        "counter",
        "rows",
        "Deletions left out because their row was not there.",
        "input",
    ),
    _driver("input_rate", "gauge", "rows/s", "Rows read per second over the last batches.", "input"),
    _driver("lag_rows", "gauge", "rows", "Rows known but not read yet.", "input"),
    _driver(
        "arrival_rate",
        "gauge",
        "rows/s",
        "Rows that came per second of the last minute, whether they were read or not.",
        "input",
    ),
    _driver("event_time_seconds", "gauge", "seconds", "Highest event time read.", "input"),
    _driver(
        "watermark_delay_seconds",
        "gauge",
        "seconds",
        "How far the highest event time is ahead of the watermark; the input with the lowest value holds the"
        " others back.",
        "input",
    ),
    _driver(
        "input_skew",
        "gauge",
        "ratio",
        "DS of the last batch: standard deviation of the rows of the units over their mean; 0 is even.",
        "input",
    ),
    _driver(
        "hottest_unit_ratio",
        "gauge",
        "ratio",
        "Share of the last batch's rows that the fullest unit got; 1/units is even.",
        "input",
    ),
    _driver(
        "hot_key_ratio",
        "gauge",
        "ratio",
        "Share of hot keys in the rows of an input. Where they are spread over units, it is sampled in the"
        " batch before the last. Elsewhere it is what units had beyond the median unit in the last batch, as"
        " far as that is not chance.",
        "input",
    ),
    # its tables
    _driver("table_hits_total", "counter", "", "Rows whose key was found in the cache.", "table"),
    _driver("table_misses_total", "counter", "", "Rows whose key was looked up in the database.", "table"),
    _driver(
        "table_expired_total",
        "counter",
        "",
        "Misses for which the cache had an answer that was too old.",
        "table",
    ),
    _driver(
        "table_queries_total",
        "counter",
        "",
        "Queries for missing keys: one for each unit and batch, more only for very many rows.",
        "table",
    ),
    _driver("table_rows", "gauge", "rows", "Rows of the table in the cache.", "table"),
    _driver(
        "table_bytes",
        "gauge",
        "bytes",
        "Bytes of the table in the cache: of a whole table once, of incremental caches the sum over units.",
        "table",
    ),
    _driver("table_budget_bytes", "gauge", "bytes", "Bytes that the cache of the table may take.", "table"),
    _driver("table_version", "gauge", "", "Number of times that a table was loaded as a whole.", "table"),
    _driver("table_load_seconds", "gauge", "seconds", "Duration of the last load of the table.", "table"),
    _driver(
        "table_loaded_timestamp_seconds",
        "gauge",
        "seconds",
        "When the last load of the table was finished.",
        "table",
    ),
    _driver(
        "table_kept_loads_total",
        "counter",
        "",
        "Loads that failed or found no rows, so that the previous version was kept.",
        "table",
    ),
    _driver(
        "route_skew",
        "gauge",
        "ratio",
        "DS of the rows that were looked up in tables in the batch before the last, without and with the"
        " rule for hot keys.",
        "route",
    ),
    # joins of three inputs or more: means over units
    _driver(
        "probe_position",
        "gauge",
        "",
        "Position at which rows of `input` probe `other`; 1 is first.",
        "input",
        "other",
    ),
    _driver(
        "probe_match_ratio",
        "gauge",
        "ratio",
        "γ: share of the probes that find something.",
        "input",
        "other",
    ),
    _driver("probe_matches", "gauge", "", "μ: rows found by a probe that finds something.", "input", "other"),
    _driver(
        "probe_keys",
        "gauge",
        "",
        "κ: estimated number of keys in the input's state, over all units.",
        "input",
    ),
    _driver(
        "probe_predicted_seconds",
        "gauge",
        "seconds",
        "Time of all probes of a row, as predicted when the orders were chosen.",
        "input",
    ),
    _driver(
        "probe_measured_seconds",
        "gauge",
        "seconds",
        "Time of all probes of a row, as measured before the orders were chosen.",
        "input",
    ),
    # its executors
    _driver(
        "executor_state_bytes",
        "gauge",
        "bytes",
        "Bytes of state that the executor's units hold in memory: its load. Runs that are sorted on disk"
        " (`join.memory`) are no part of it.",
        "executor",
    ),
    _driver(
        "executor_state_rows", "gauge", "rows", "Rows of state that the executor's units hold.", "executor"
    ),
    _driver(
        "executor_capacity_bytes",
        "gauge",
        "bytes",
        "Bytes of state that the executor may hold: its memory minus what an empty executor needs.",
        "executor",
    ),
    _driver("executor_memory_load", "gauge", "ratio", "Load of the executor over its capacity.", "executor"),
    _driver("executor_units", "gauge", "", "Units that the executor served in the last batch.", "executor"),
    _driver(
        "executor_working_set_bytes",
        "gauge",
        "bytes",
        "Memory of the executor's container that cannot be reclaimed at once, for alerts; mapped state is"
        " hardly part of it.",
        "executor",
    ),
    _driver(
        "executor_memory_limit_bytes",
        "gauge",
        "bytes",
        "Memory at which the executor's container is killed.",
        "executor",
    ),
    _driver(
        "executor_heap_bytes",
        "gauge",
        "bytes",
        "Heap of the executor's JVM that is in use, garbage included; rows do not pass through it.",
        "executor",
    ),
    _driver("executor_heap_limit_bytes", "gauge", "bytes", "The most that this heap may be.", "executor"),
    _driver(
        "executor_gc_seconds_total",
        "counter",
        "seconds",
        "Time that the executor's JVM spent to collect garbage.",
        "executor",
    ),
    # its units
    _driver("unit_state_rows", "gauge", "rows", "Rows in the state of the unit.", "unit"),
    _driver("unit_state_bytes", "gauge", "bytes", "Bytes of live segments and indexes of the unit.", "unit"),
    _driver("unit_rows_in_total", "counter", "rows", "Rows of all inputs that the unit received.", "unit"),
    _driver("unit_rows_out_total", "counter", "rows", "Result rows of the unit.", "unit"),
    _driver("unit_seconds_total", "counter", "seconds", "Time that tasks spent in the unit.", "unit"),
    _driver(
        "unit_commit_seconds_total",
        "counter",
        "seconds",
        "Time that tasks spent in the unit to write, seal and merge state.",
        "unit",
    ),
    # what the scaler decides from them
    _scaling(
        "load", "gauge", "ratio", "τ: load of all executors over their capacity, as of the last decision."
    ),
    _scaling("threshold", "gauge", "ratio", "Thresholds and target of the spec.", "threshold"),
    _scaling("votes", "gauge", "", "Consecutive periods that agreed, by direction.", "direction"),
    _scaling("votes_needed", "gauge", "", "Consecutive periods that have to agree."),
    _scaling("executors", "gauge", "", "Executors that scaling wants."),
    _scaling(
        "wants",
        "gauge",
        "",
        "Executors that the state wants, and that the lag wants. The larger number wins. That of the lag is absent"
        " as long as rows never waited.",
        "by",
    ),
    _scaling(
        "catch_up_seconds",
        "gauge",
        "seconds",
        "Time after which no rows wait, at the present rates; absent if rows come faster than they are read.",
    ),
    _scaling(
        "executor_rate",
        "gauge",
        "rows/s",
        "Rows that one executor reads per second of busy time, as seen when rows waited last; absent if they never"
        " did.",
    ),
    _scaling(
        "advised_executors",
        "gauge",
        "",
        "Executors that a job with `scaling.mode: advise` would be given; absent if no change is advised.",
    ),
    _scaling("phase", "gauge", "", "1 for the phase that scaling is in, 0 for the others.", "phase"),
    _scaling("verdicts_total", "counter", "", "Decisions, by verdict.", "verdict"),
    _scaling("blind", "gauge", "", "1 if the metrics of the last period were incomplete or old, else 0."),
    _scaling("last_decision_timestamp_seconds", "gauge", "seconds", "When the last decision was made."),
    # the state of jobs, including those without a driver
    Metric(
        "streamjoin_job_phase",
        "gauge",
        "",
        "1 for the phase in the job's status, 0 for the others.",
        (*_JOB, "phase"),
        "operator",
    ),
    Metric(
        "streamjoin_job_restarts",
        "gauge",
        "",
        "Times in a row that the job's driver ended by itself, as `driver.restarts` counts them.",
        _JOB,
        "operator",
    ),
    Metric(
        "streamjoin_operator_streamjoins",
        "gauge",
        "",
        "Number of StreamJoins by phase; absent if no operator is running.",
        ("phase",),
        "operator",
    ),
    # the operator's own work
    _process("leader", "gauge", "", "1 for the operator that leads, 0 for one that waits."),
    _process("reconciles_total", "counter", "", "Reconciliations, by result.", "result"),
    _process("reconcile_seconds", "histogram", "seconds", "Duration of a reconciliation."),
    _process("queue_depth", "gauge", "", "StreamJoins that wait to be reconciled."),
    _process("writes_total", "counter", "", "Objects written, by kind and verb.", "kind", "verb"),
    _process("api_errors_total", "counter", "", "Requests that the API server refused, by code.", "code"),
    _process(
        "missed_events_total",
        "counter",
        "",
        "Changes that a list showed and no watch had delivered, by kind.",
        "kind",
    ),
    _process("watch_age_seconds", "gauge", "seconds", "Time since the last event of a kind.", "kind"),
    _process("resync_age_seconds", "gauge", "seconds", "Time since everything was listed."),
)

BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}
SERIES: Mapping[str, Metric] = {name: metric for metric in METRICS for name in metric.series}
