"""Which StreamJoins need somebody? Phase, lag, load and restarts of all of them, of some namespaces or of all."""

from typing import Any

from dashboards import house
from dashboards.house import Ask, Missing, Row
from dashboards.queries import WINDOW, every, total

_TOP = 15
_JOB = ("namespace", "streamjoin")
_NAME = "{{namespace}}/{{streamjoin}}"
_NONE = Missing(
    "none", "There is no job in these namespaces, or Prometheus scrapes neither drivers nor operator."
)
_NO_FORK = Missing("no forks", "No job that runs is a fork of another one.")


def dashboard() -> dict[str, Any]:
    """The dashboard, as JSON."""
    says = "Which StreamJoins need somebody? Phase, lag, load and restarts of all of them."
    rows = [_now(), _alerts(), _worst(), _phases(), _flow()]
    return house.board("fleet", "Fleet", says, rows, choices=house.some_namespaces())


def _now() -> Row:
    phases = every("streamjoin_job_phase")
    bad = every("streamjoin_job_phase", 'phase=~"Pending|Degraded|Failed"')
    alerts = 'ALERTS{alertname=~"StreamJoin.*", alertstate="firing", namespace=~"$namespace|"}'
    return Row(
        "Now",
        _NONE,
        [
            house.figure(
                "Jobs",
                "StreamJoins that the operator serves, in every phase.",
                house.NUMBER,
                Ask(total(phases), "jobs"),
            ),
            house.figure(
                "Not running",
                "StreamJoins that are Pending, Degraded or Failed. `kubectl describe sj` names what is wrong.",
                house.NUMBER,
                Ask(total(bad), "not running"),
                (1, house.RED),
            ),
            house.figure(
                "Alerts",
                "Alerts of StreamJoins that fire now, where Prometheus has the chart's rules.",
                house.NUMBER,
                Ask(f"count({alerts}) or vector(0)", "alerts"),
                (1, house.RED),
            ),
            house.figure(
                "Restarts in a row",
                "Times that drivers ended by themselves and were started again, until they work for ten minutes.",
                house.NUMBER,
                Ask(total(every("streamjoin_job_restarts")), "restarts"),
                (1, house.YELLOW),
            ),
            house.figure(
                "All rows in",
                "Rows joined per second, of all jobs.",
                house.ROWS_RATE,
                Ask(total(_rate("streamjoin_rows_in_total")), "in"),
            ),
            house.figure(
                "All results",
                "Result rows per second, of all jobs.",
                house.ROWS_RATE,
                Ask(total(_rate("streamjoin_rows_out_total")), "out"),
            ),
            house.figure(
                "All lag",
                "Rows of all inputs of all jobs that are known but not read yet.",
                house.COUNT,
                Ask(total(every("streamjoin_lag_rows")), "lag"),
            ),
            house.figure(
                "All state",
                "Live segments and their indexes of all jobs, which executors map into memory.",
                house.BYTES,
                Ask(total(every("streamjoin_state_bytes")), "state"),
            ),
        ],
    )


def _alerts() -> Row:
    forked = f"max by (namespace, streamjoin, origin) ({every('streamjoin_forked_batch')})"
    return Row(
        "Alerts and forks",
        _NO_FORK,
        [
            house.alerts(
                "Alerts that fire",
                "Alerts of StreamJoins of all namespaces that fire, or will if it goes on. Empty also where Prometheus has not"
                " the chart's rules (`prometheusRule.enabled`), or Grafana does not ask it for alerts.",
                "StreamJoin",
                span=16,
            ),
            house.named(
                "Forks",
                "Jobs that run and began with the state of another one, by `streamjoin fork`, and the batch of that job"
                " behind which they began. Both read the same inputs until one of them is removed.",
                house.NUMBER,
                Ask(forked, f"{_NAME} of {{{{origin}}}}"),
                span=8,
            ),
        ],
    )


def _worst() -> Row:
    return Row(
        "Those that stand out",
        _NONE,
        [
            house.ranking(
                "Lag by job",
                f"The {_TOP} jobs with the most rows that are known but not read yet.",
                house.COUNT,
                Ask(_greatest("sum", "streamjoin_lag_rows"), _NAME),
                span=8,
            ),
            house.ranking(
                "Memory load by job",
                f"The {_TOP} jobs whose executors are fullest: state over what they may hold. At 1 it no longer fits.",
                house.RATIO,
                Ask(_greatest("max", "streamjoin_memory_load"), _NAME),
                span=8,
            ).max(1),
            house.ranking(
                "Restarts by job",
                f"The {_TOP} jobs whose driver ended by itself most often in a row; beyond `driver.restarts` a job"
                " is Failed.",
                house.NUMBER,
                Ask(_greatest("max", "streamjoin_job_restarts"), _NAME),
                span=8,
            ),
        ],
    )


def _phases() -> Row:
    phase = f"max by (namespace, streamjoin, phase) ({every('streamjoin_job_phase')}) == 1"
    return Row(
        "Phases",
        house.NO_OPERATOR,
        [
            house.spans(
                "Phases over time",
                "A bar while a job is in a phase. Degraded: it runs, or would, and something is wrong.",
                Ask(phase, f"{_NAME} {{{{phase}}}}"),
                span=12,
            ),
            house.stacked(
                "Jobs by phase",
                "Number of StreamJoins in each phase.",
                house.NUMBER,
                Ask(total(every("streamjoin_job_phase"), "phase"), "{{phase}}"),
                span=12,
            ),
        ],
    )


def _flow() -> Row:
    last = f"time() - max by (namespace, streamjoin) ({every('streamjoin_last_batch_timestamp_seconds')})"
    return Row(
        "Jobs over time",
        _NONE,
        [
            house.lines(
                "Rows in by job",
                "Rows joined per second, of each job.",
                house.ROWS_RATE,
                Ask(total(_rate("streamjoin_rows_in_total"), *_JOB), _NAME),
                span=8,
            ),
            house.lines(
                "Lag of each job",
                "Rows known but not read yet. Growth over many minutes means that a job does not keep up.",
                house.COUNT,
                Ask(total(every("streamjoin_lag_rows"), *_JOB), _NAME),
                span=8,
            ),
            house.lines(
                "Age of the last batch",
                "Time since each job committed a batch. It grows while there is nothing to read, or the job is stuck.",
                house.SECONDS,
                Ask(last, _NAME),
                span=8,
            ),
        ],
    )


def _rate(name: str) -> str:
    return f"rate({every(name)}[{WINDOW}])"


def _greatest(how: str, name: str) -> str:
    return f"topk({_TOP}, {how} by (namespace, streamjoin) ({every(name)}))"
