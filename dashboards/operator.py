"""Does the operator itself work? Reconciliations, its queue, the API server, its watches."""

from typing import Any

from dashboards import house
from dashboards.house import Ask, Row
from dashboards.queries import WINDOW, known, quantile_of, total

SLOW_S, LATE_S = 1, 60  # of a reconciliation; of a watch that is taken for dead


def dashboard() -> dict[str, Any]:
    """The dashboard, as JSON."""
    says = "Does the operator itself work? Reconciliations, its queue, the API server and its watches."
    return house.board("operator", "Operator", says, [_now(), _work(), _api(), _process()], choices=())


def _now() -> Row:
    seconds = quantile_of(0.99, known("streamjoin_operator_reconcile_seconds_bucket"))
    return Row(
        "Operator now",
        house.NO_OPERATOR,
        [
            house.figure(
                "Leaders",
                "Operators that act. 1 is right; with 0 nobody acts, and jobs run on as they are.",
                house.NUMBER,
                Ask(total(known("streamjoin_operator_leader")), "leaders"),
            ),
            house.figure(
                "Jobs served",
                "StreamJoins that the operator knows.",
                house.NUMBER,
                Ask(total(known("streamjoin_operator_streamjoins")), "jobs"),
            ),
            house.figure(
                "Queue now",
                "StreamJoins that wait to be reconciled.",
                house.NUMBER,
                Ask(_most("streamjoin_operator_queue_depth"), "waiting"),
                (100, house.YELLOW),
            ),
            house.figure(
                "Reconcile, p99",
                "99 of 100 reconciliations take no longer than this.",
                house.SECONDS,
                Ask(seconds, "p99"),
                (SLOW_S, house.YELLOW),
                (10 * SLOW_S, house.RED),
            ),
        ],
    )


def _work() -> Row:
    buckets = known("streamjoin_operator_reconcile_seconds_bucket")
    return Row(
        "Work",
        house.NO_OPERATOR,
        [
            house.stacked(
                "Reconciliations",
                "Reconciliations per second, by result. One that failed is repeated later, and less often each time.",
                house.NUMBER,
                Ask(_rate("streamjoin_operator_reconciles_total", "result"), "{{result}}"),
                span=8,
            ).decimals(2),
            house.lines(
                "Time of a reconciliation",
                "From taking a job out of the queue until its status is written. A new spec is planned, which takes"
                " milliseconds to seconds.",
                house.SECONDS,
                *(Ask(quantile_of(part, buckets), f"p{100 * part:.0f}") for part in (0.5, 0.95, 0.99)),
                span=8,
            ),
            house.steps(
                "Queue",
                "StreamJoins that wait to be reconciled. A queue that stays long means that the operator needs CPU.",
                house.NUMBER,
                Ask(_most("streamjoin_operator_queue_depth"), "waiting"),
                span=8,
            ),
        ],
    )


def _api() -> Row:
    return Row(
        "API server and watches",
        house.NO_OPERATOR,
        [
            house.stacked(
                "Objects written",
                "Objects written per second. Writes that do not end while nobody changes a spec mean that somebody"
                " else writes the same fields.",
                house.NUMBER,
                Ask(_rate("streamjoin_operator_writes_total", "kind", "verb"), "{{verb}} {{kind}}"),
                span=6,
            ).decimals(2),
            house.lines(
                "Refused requests",
                "Requests per second that the API server refused. 409: changed meanwhile, and repeated. 403: rights"
                " are missing. 429: it is busy.",
                house.NUMBER,
                Ask(
                    f"{_rate('streamjoin_operator_api_errors_total', 'code')} or on () vector(0)", "{{code}}"
                ),
                span=6,
            ).decimals(2),
            house.limit(
                house.lines(
                    "Age of what is known",
                    "Time since the last event of each kind, and since everything was listed. Quiet kinds age; a list"
                    " comes every ten minutes.",
                    house.SECONDS,
                    Ask(_most("streamjoin_operator_watch_age_seconds", "kind"), "{{kind}}"),
                    Ask(_most("streamjoin_operator_resync_age_seconds"), "list of everything"),
                    span=6,
                ),
                (1500, house.RED),
            ),
            house.lines(
                "Missed changes",
                "Changes per second that a list showed and no watch had delivered. More than a few: watches break.",
                house.NUMBER,
                Ask(
                    f"{_rate('streamjoin_operator_missed_events_total', 'kind')} or on () vector(0)",
                    "{{kind}}",
                ),
                span=6,
            ).decimals(2),
        ],
    )


def _process() -> Row:
    here = "and on (instance) streamjoin_operator_leader"
    return Row(
        "Its processes",
        house.NO_OPERATOR,
        [
            house.lines(
                "CPU of operators",
                "Cores that each operator uses; the one that leads does the work.",
                house.NUMBER,
                Ask(f"rate(process_cpu_seconds_total[{WINDOW}]) {here}", "{{instance}}"),
                span=12,
            ).decimals(2),
            house.lines(
                "Memory of operators",
                "Resident memory of each operator: `resources.limits.memory` of the chart bounds it.",
                house.BYTES,
                Ask(f"process_resident_memory_bytes {here}", "{{instance}}"),
                span=12,
            ),
        ],
    )


def _rate(name: str, *by: str) -> str:
    return total(f"rate({known(name)}[{WINDOW}])", *by)


def _most(name: str, *by: str) -> str:
    """The greatest of several operators, of which all but one wait."""
    return f"max by ({', '.join(by)}) ({known(name)})"
