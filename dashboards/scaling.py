"""Why are there as many executors as there are?

Memory load, lag, what each of them wants, thresholds, votes, decisions, what came of them.
"""

from typing import Any

from dashboards import house
from dashboards.house import Ask, Marks, Missing, Row
from dashboards.queries import gauge, of, total, where

_ACTS = 'verdict=~"ScaleOut|ScaleIn|Settled|RolledBack"'

_NO_DECISION = Missing(
    "no decision", "The operator has decided nothing of this job yet, or Prometheus does not scrape it."
)
_NO_EXECUTOR = Missing(
    "none",
    "A job on one machine has no executors of its own; those of a cluster tell with their first batches.",
)


def dashboard() -> dict[str, Any]:
    """The dashboard, as JSON. Decisions are marks on every panel."""
    says = "Why are there so many executors? Memory load, lag, what they want, votes and decisions."
    marks = [
        Marks(
            "Decisions",
            f"sum by (verdict) (increase({of('streamjoin_scaling_verdicts_total', _ACTS)}[$__interval])) > 0",
            "{{verdict}}",
            "A decision of two-phase scaling; the last 20, with their inputs, are in the StreamJoin's"
            " status.",
            "purple",
        )
    ]
    return house.board("scaling", "Scaling", says, [_decisions(), _lag(), _votes(), _executors()], marks)


def _decisions() -> Row:
    load = house.lines(
        "τ: memory load of all executors",
        "State of all executors over what they may hold, as of the last decision. If it is "
        "above high or below low for enough consecutive periods, the number of executors "
        "changes so that it reaches the target.",
        house.RATIO,
        Ask(gauge("streamjoin_scaling_load"), "τ"),
        Ask(gauge("streamjoin_scaling_threshold", "threshold"), "{{threshold}}"),
        span=12,
    )
    for name, color in (("high", house.RED), ("low", "blue"), ("target", "#9fa7b3")):
        load = house.dashed(load, name, color)
    wanted = house.steps(
        "Executors",
        "Executors wanted by scaling, requested from Spark by the driver, ready, leaving, and spare. "
        "Once all are ready, a batch has a partition for each core, rounded up to a power of "
        "two.",
        house.NUMBER,
        Ask(gauge("streamjoin_scaling_executors"), "scaling wants"),
        Ask(gauge("streamjoin_executors", "state"), "{{state}}"),
        Ask(gauge("streamjoin_partitions"), "partitions"),
        span=12,
    )
    return Row(
        "Load and executors",
        _NO_DECISION,
        [load, house.dashed(house.dashed(wanted, "scaling wants", "purple"), "partitions", "#9fa7b3")],
    )


def _lag() -> Row:
    wants = house.steps(
        "What state and lag want",
        "Executors that the state in memory wants, and that the rows that wait and come want, before the limits of the"
        " spec. The larger number wins; status.scaling.wants says why, in a sentence. The lag wants none as long as"
        " rows never waited. With scaling.mode: advise, advised differs from scaling wants.",
        house.NUMBER,
        Ask(gauge("streamjoin_scaling_wants", "by"), "{{by}}"),
        Ask(gauge("streamjoin_scaling_executors"), "scaling wants"),
        Ask(
            f"{gauge('streamjoin_scaling_advised_executors')} or {gauge('streamjoin_scaling_executors')}",
            "advised",
        ),
        span=12,
    )
    rates = house.lines(
        "Rows that come and true rate",
        "Rows that come per second, and rows read per second of busy time, while a batch runs. Where rows wait, the"
        " latter is all that the executors can do; else a job reads no more than comes.",
        house.ROWS_RATE,
        Ask(total(gauge("streamjoin_arrival_rate", "input")), "come"),
        Ask(gauge("streamjoin_true_rate"), "true rate"),
        span=12,
    )
    return Row(
        "Lag",
        _NO_DECISION,
        [
            house.dashed(house.dashed(wants, "scaling wants", "purple"), "advised", "#9fa7b3"),
            rates,
            house.stacked(
                "Backlog",
                "Rows that are known and not read yet, by input. More of them than are read in a period are a"
                " backlog; executors are not removed as long as there is one.",
                house.COUNT,
                Ask(gauge("streamjoin_lag_rows", "input"), "{{input}}"),
                span=8,
            ),
            house.lines(
                "Time to catch up",
                "Time after which no rows wait, if rows come and are read as now. If it is longer than"
                " scaling.lag.catchUp, executors are added. A gap with a backlog: more rows come than are read.",
                house.SECONDS,
                Ask(gauge("streamjoin_scaling_catch_up_seconds"), "catch up in"),
                span=8,
            ),
            house.lines(
                "What an executor can do",
                "Rows that one executor reads per second of busy time, as seen when rows waited last. If it falls as"
                " executors are added, they do not help: look for a hot key, or a slow sink.",
                house.ROWS_RATE,
                Ask(gauge("streamjoin_scaling_executor_rate"), "one executor"),
                span=8,
            ),
        ],
    )


def _votes() -> Row:
    votes = house.steps(
        "Votes",
        "Consecutive periods that agreed. A spike that is shorter than the votes needed changes nothing.",
        house.NUMBER,
        Ask(gauge("streamjoin_scaling_votes", "direction"), "{{direction}}"),
        Ask(gauge("streamjoin_scaling_votes_needed"), "needed"),
        span=6,
    )
    ago = f"time() - {gauge('streamjoin_scaling_last_decision_timestamp_seconds')}"
    verdicts = f"sum by (verdict) (increase({of('streamjoin_scaling_verdicts_total')}[$__rate_interval])) > 0"
    return Row(
        "Decisions",
        _NO_DECISION,
        [
            house.dashed(votes, "needed", house.RED),
            house.stacked(
                "Verdicts",
                "Verdicts of the last minutes. Blind: metrics were missing or old. AtLimit: min or "
                "max is reached. Cooling: it is too soon after a change. Ineffective: rows wait, but more "
                "executors did not read faster. Advised: the spec wants no more than advice.",
                house.COUNT,
                Ask(verdicts, "{{verdict}}"),
                span=6,
            ),
            house.spans(
                "Phase",
                "Idle, or changing the number of executors. A change that does not finish is rolled "
                "back at its deadline.",
                Ask(f"{gauge('streamjoin_scaling_phase', 'phase')} == 1", "{{phase}}"),
                span=6,
            ),
            house.flag(
                "Figures",
                "Whether the last period had complete and fresh metrics of all executors. Without "
                "them nothing is decided.",
                Ask(gauge("streamjoin_scaling_blind"), "figures"),
                no="complete",
                yes="missing",
            ).height(house.HEIGHT),
            house.figure(
                "Last decision",
                "Time since the operator last evaluated this job's load; normally one or two periods.",
                house.SECONDS,
                Ask(ago, "ago"),
                (300, house.YELLOW),
                (900, house.RED),
                span=3,
            ).height(house.HEIGHT),
        ],
    )


def _executors() -> Row:
    load = house.lines(
        "Memory load by executor",
        "State of the executor's units over what it may hold. At 1 it no longer fits into "
        "memory: pages go to disk and batches slow down.",
        house.RATIO,
        Ask(gauge("streamjoin_executor_memory_load", "executor"), "executor {{executor}}"),
        span=6,
    )
    working = (
        f"{gauge('streamjoin_executor_working_set_bytes', 'executor')}"
        f" / {gauge('streamjoin_executor_memory_limit_bytes', 'executor')}"
    )
    return Row(
        "Executors",
        _NO_EXECUTOR,
        [
            house.limit(load, (1.0, house.RED)),
            house.lines(
                "State and room",
                "State of all executors, and what they may hold together.",
                house.BYTES,
                Ask(total(gauge("streamjoin_executor_state_bytes", "executor")), "state"),
                Ask(total(gauge("streamjoin_executor_capacity_bytes", "executor")), "room"),
                span=6,
            ),
            house.limit(
                house.lines(
                    "Memory of containers",
                    "Working set over the limit at which the container is killed. For alerts only; "
                    "scaling does not use it.",
                    house.RATIO,
                    Ask(working, "executor {{executor}}"),
                    span=6,
                ),
                (0.95, house.RED),
            ),
            house.steps(
                "Units by executor",
                "Number of units that each executor served in the last batch.",
                house.NUMBER,
                Ask(gauge("streamjoin_executor_units", "executor"), "executor {{executor}}"),
                span=6,
            ),
            house.lines(
                "Rows by executor",
                "Rows of state that each executor's units hold. The executor that holds the least "
                "leaves first.",
                house.COUNT,
                Ask(gauge("streamjoin_executor_state_rows", "executor"), "executor {{executor}}"),
                span=12,
            ),
            house.steps(
                "Room to grow",
                "Tasks that can join at the same time: one for each core of the executors, but at "
                "most one for each unit.",
                house.NUMBER,
                Ask(where("streamjoin_executors", 'state="ready"'), "executors"),
                Ask(gauge("streamjoin_partitions"), "partitions"),
                Ask(gauge("streamjoin_units"), "units"),
                span=12,
            ),
        ],
    )
