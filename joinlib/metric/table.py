"""Every figure that is exported, once: its name, type, unit, labels and meaning.

The exporters are driven by it, the reference (`metrics.md`) is made of it, and queries of dashboards, rules and the scaler are
checked against it. All names are as a query writes them. A figure that is not known is absent, never zero.

Labels are bounded: inputs are named in the spec, units and executors are at most as many as it says, all others have the
few values that stand here. Which job a series belongs to is said by the labels `namespace` and `streamjoin`: for what a
driver exports they come with the scrape, what the operator exports carries them itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]
Unit = Literal["", "rows", "bytes", "seconds", "ratio", "rows/s"]
Source = Literal["driver", "operator"]

PHASES = ("Waiting", "Starting", "Running", "Stopping", "Failed")
EXECUTORS = ("ready", "wanted", "leaving")
STEPS = ("latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets")
THRESHOLDS = ("high", "low", "target")
DIRECTIONS = ("out", "in")
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
    "Limits",
    "Blind",
    "Pinned",
)
MAX_UNITS = 1024  # of a job with more, units are not told apart

LABELS: Mapping[str, str] = {
    "input": "the name of an input in the spec",
    "other": "as `input`, of a join of many; of joins both are aliases of the SQL, and a join below is `a+b`",
    "table": "the name of a table in the SQL",
    "unit": f"0 to `join.units` - 1; absent where there are more than {MAX_UNITS}",
    "executor": "Spark's id of an executor that is there",
    "phase": f"of the driver: {', '.join(PHASES)}; of scaling: {', '.join(SCALING)}; of a job: {', '.join(JOB)}",
    "state": ", ".join(EXECUTORS),
    "step": f"Spark's steps of a batch: {', '.join(STEPS)}",
    "threshold": ", ".join(THRESHOLDS),
    "direction": ", ".join(DIRECTIONS),
    "route": "hash: as hashes alone would send rows; rule: as they were sent, hot keys spread",
    "level": (
        "head: the rows that came last; 0: sealed, as they came; n: sorted by hash, after n merges (`join.memory`); "
        f"{LEVELS[-1]}: so many or more"
    ),
    "verdict": ", ".join(VERDICTS),
    "namespace": "of the StreamJoin",
    "streamjoin": "the name of the StreamJoin",
}
_JOB = ("namespace", "streamjoin")


@dataclass(frozen=True)
class Metric:
    """One figure. `name`: whole, as in a query, but for the suffixes of a histogram."""

    name: str
    kind: Kind
    unit: Unit
    help: str
    labels: tuple[str, ...] = ()
    source: Source = "driver"

    @property
    def series(self) -> tuple[str, ...]:
        """The names that queries may use."""
        if self.kind == "histogram":
            return tuple(f"{self.name}_{suffix}" for suffix in ("bucket", "sum", "count"))
        return (self.name,)


def _driver(name: str, kind: Kind, unit: Unit, text: str, *labels: str) -> Metric:
    return Metric(f"streamjoin_{name}", kind, unit, text, labels)


def _scaling(name: str, kind: Kind, unit: Unit, text: str, *labels: str) -> Metric:
    return Metric(f"streamjoin_scaling_{name}", kind, unit, text, (*_JOB, *labels), "operator")


METRICS: tuple[Metric, ...] = (
    # the job
    _driver("phase", "gauge", "", "1 for the phase that the driver is in, 0 for the others.", "phase"),
    _driver("batches_total", "counter", "", "Batches done."),
    _driver("batch_seconds", "histogram", "seconds", "Time of a batch, from its offsets to its commit."),
    _driver("batch_step_seconds_total", "counter", "seconds", "Time of batches, by Spark's steps.", "step"),
    _driver("last_batch_timestamp_seconds", "gauge", "seconds", "When the last batch was done."),
    _driver("rows_out_total", "counter", "rows", "Result rows."),
    _driver("state_rows", "gauge", "rows", "Rows of state."),
    _driver("state_bytes", "gauge", "bytes", "Bytes of live segments and their indexes: what executors map."),
    _driver("checkpoint_bytes", "gauge", "bytes", "Bytes of all segments, those kept for recovery included."),
    _driver("segments", "gauge", "", "Live segments."),
    _driver("runs", "gauge", "", "Runs of state: of segments under one index.", "level"),
    _driver("run_bytes", "gauge", "bytes", "Bytes of their segments.", "level"),
    _driver("merged_bytes_total", "counter", "bytes", "Bytes that merges of state have written."),
    _driver("memory_load", "gauge", "ratio", "State over what the executors that are there may hold."),
    _driver("skew", "gauge", "ratio", "Rows of state of the fullest unit over the mean, less 1; 0 is even."),
    _driver("watermark_seconds", "gauge", "seconds", "Event time of the unit that is furthest behind."),
    _driver("units", "gauge", "", "Units of the job: slices of its state."),
    _driver("partitions", "gauge", "", "Partitions of the units: tasks that can join at once."),
    _driver("executors", "gauge", "", "Executors that are there, wanted, and on their way out.", "state"),
    # its inputs
    _driver("rows_in_total", "counter", "rows", "Rows joined, late ones not among them.", "input"),
    _driver("late_rows_total", "counter", "rows", "Rows left out because they came too late.", "input"),
    _driver(
        "bad_messages_total", "counter", "", "Messages left out because they could not be decoded.", "input"
    ),
    _driver("input_rate", "gauge", "rows/s", "Rows read a second over the last batches.", "input"),
    _driver("lag_rows", "gauge", "rows", "Rows known but not read yet.", "input"),
    _driver("event_time_seconds", "gauge", "seconds", "Highest event time that was read.", "input"),
    _driver(
        "watermark_delay_seconds",
        "gauge",
        "seconds",
        "How far the highest event time is ahead of the watermark; the input with the least holds the others back.",
        "input",
    ),
    _driver(
        "input_skew",
        "gauge",
        "ratio",
        "DS of the last batch: standard deviation of the units' rows over their mean; 0 is even.",
        "input",
    ),
    _driver(
        "hottest_unit_ratio",
        "gauge",
        "ratio",
        "Share of the fullest unit in the last batch's rows; 1/units is even.",
        "input",
    ),
    _driver(
        "hot_key_ratio",
        "gauge",
        "ratio",
        "Share of hot keys in an input's rows. Where they are spread over units: of the batch before the last, sampled. "
        "Elsewhere: what units had in the last batch beyond the median one, as far as that is no chance.",
        "input",
    ),
    # its tables
    _driver("table_hits_total", "counter", "", "Rows whose key was answered from what is kept.", "table"),
    _driver("table_misses_total", "counter", "", "Rows whose key the database was asked for.", "table"),
    _driver(
        "table_expired_total",
        "counter",
        "",
        "Of the misses: an answer was kept, and was too old.",
        "table",
    ),
    _driver(
        "table_queries_total",
        "counter",
        "",
        "Queries for missing keys: one for a unit and batch, more only for very many rows.",
        "table",
    ),
    _driver("table_rows", "gauge", "rows", "Rows of the table that are kept.", "table"),
    _driver(
        "table_bytes", "gauge", "bytes", "What they take: a whole table once, caches in each unit.", "table"
    ),
    _driver("table_budget_bytes", "gauge", "bytes", "What they may take.", "table"),
    _driver("table_version", "gauge", "", "Of a table that is kept whole: how often it was loaded.", "table"),
    _driver("table_load_seconds", "gauge", "seconds", "Time that its last load took.", "table"),
    _driver("table_loaded_timestamp_seconds", "gauge", "seconds", "When that load was done.", "table"),
    _driver(
        "table_kept_loads_total",
        "counter",
        "",
        "Loads that failed or found no rows: the version of before was kept.",
        "table",
    ),
    _driver(
        "route_skew",
        "gauge",
        "ratio",
        "DS of the rows that met tables, of the batch before the last: without and with the rule for hot keys.",
        "route",
    ),
    # joins of three inputs or more: means over units
    _driver("probe_position", "gauge", "", "When rows of `input` ask `other`: 1 is first.", "input", "other"),
    _driver(
        "probe_match_ratio",
        "gauge",
        "ratio",
        "γ: share of those that ask and find something.",
        "input",
        "other",
    ),
    _driver("probe_matches", "gauge", "", "μ: what those find that find something.", "input", "other"),
    _driver("probe_keys", "gauge", "", "κ: keys of the input's state, of all units; estimated.", "input"),
    _driver(
        "probe_predicted_seconds",
        "gauge",
        "seconds",
        "Time of all probes of a row, as foretold when the orders were chosen.",
        "input",
    ),
    _driver(
        "probe_measured_seconds", "gauge", "seconds", "The same, as it was before they were chosen.", "input"
    ),
    # its executors
    _driver(
        "executor_state_bytes",
        "gauge",
        "bytes",
        "State that the executor's units hold: its load.",
        "executor",
    ),
    _driver("executor_state_rows", "gauge", "rows", "Rows of state of the executor's units.", "executor"),
    _driver(
        "executor_capacity_bytes",
        "gauge",
        "bytes",
        "State that the executor may hold: its memory less what an empty one needs.",
        "executor",
    ),
    _driver("executor_memory_load", "gauge", "ratio", "Load over capacity of the executor.", "executor"),
    _driver("executor_units", "gauge", "", "Units that the executor served last.", "executor"),
    _driver(
        "executor_working_set_bytes",
        "gauge",
        "bytes",
        "Memory of the executor's container that cannot be reclaimed at once, for alarms: mapped state hardly shows.",
        "executor",
    ),
    _driver(
        "executor_memory_limit_bytes",
        "gauge",
        "bytes",
        "Memory at which the executor's container is killed.",
        "executor",
    ),
    # its units
    _driver("unit_state_rows", "gauge", "rows", "Rows of state of the unit.", "unit"),
    _driver("unit_state_bytes", "gauge", "bytes", "Live segments and indexes of the unit.", "unit"),
    _driver("unit_rows_in_total", "counter", "rows", "Rows that came to the unit, of all inputs.", "unit"),
    _driver("unit_rows_out_total", "counter", "rows", "Result rows of the unit.", "unit"),
    _driver("unit_seconds_total", "counter", "seconds", "Time of tasks in the unit.", "unit"),
    _driver(
        "unit_commit_seconds_total", "counter", "seconds", "Of that, to log, seal and merge state.", "unit"
    ),
    # what the scaler makes of them
    _scaling("load", "gauge", "ratio", "τ: load of all executors over their capacity, as last decided on."),
    _scaling("threshold", "gauge", "ratio", "The thresholds of the spec, and what it aims at.", "threshold"),
    _scaling("votes", "gauge", "", "Periods in a row that agreed, by direction.", "direction"),
    _scaling("votes_needed", "gauge", "", "Periods in a row that must agree."),
    _scaling("executors", "gauge", "", "Executors that scaling wants."),
    _scaling("phase", "gauge", "", "1 for the phase that scaling is in, 0 for the others.", "phase"),
    _scaling("verdicts_total", "counter", "", "Decisions, by what came of them.", "verdict"),
    _scaling("blind", "gauge", "", "1 if the last period had no complete and fresh figures, else 0."),
    _scaling("last_decision_timestamp_seconds", "gauge", "seconds", "When the last period was decided on."),
    # how jobs are, also those without a driver
    Metric(
        "streamjoin_job_phase",
        "gauge",
        "",
        "1 for the phase of its status, 0 for the others.",
        (*_JOB, "phase"),
        "operator",
    ),
    Metric(
        "streamjoin_operator_streamjoins",
        "gauge",
        "",
        "StreamJoins by phase; absent: no operator works.",
        ("phase",),
        "operator",
    ),
)

BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}
SERIES: Mapping[str, Metric] = {name: metric for metric in METRICS for name in metric.series}
