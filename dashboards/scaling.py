"""Why are there as many executors as there are? Memory load, thresholds, votes, decisions, what came of them."""

from typing import Any

from dashboards import house
from dashboards.house import Ask, Marks, Row
from dashboards.queries import gauge, of, total, where

_ACTS = 'verdict=~"ScaleOut|ScaleIn|Settled|RolledBack"'


def dashboard() -> dict[str, Any]:
    """The dashboard, as JSON. Decisions are marks on every panel."""
    says = "Why are there as many executors as there are? Memory load, thresholds, votes, decisions and what came of them."
    marks = [
        Marks(
            "Decisions",
            f"sum by (verdict) (increase({of('streamjoin_scaling_verdicts_total', _ACTS)}[$__interval])) > 0",
            "{{verdict}}",
            "A decision of two-phase scaling; the last 20, with their inputs, are in the StreamJoin's status.",
            "purple",
        )
    ]
    return house.board("scaling", "Scaling", says, [_decisions(), _votes(), _executors()], marks)


def _decisions() -> Row:
    load = house.lines(
        "τ: memory load of all executors",
        "State of all executors over what they may hold, as last decided on. Above high or below low for enough periods in a "
        "row, the number of executors changes so that it comes to the target.",
        house.RATIO,
        Ask(gauge("streamjoin_scaling_load"), "τ"),
        Ask(gauge("streamjoin_scaling_threshold", "threshold"), "{{threshold}}"),
        span=12,
    )
    for name, color in (("high", house.RED), ("low", "blue"), ("target", "#9fa7b3")):
        load = house.dashed(load, name, color)
    wanted = house.steps(
        "Executors",
        "Wanted by scaling, wanted of Spark by the driver, there, and on their way out. Once all are there a batch has a "
        "partition for each core, rounded up to a power of two.",
        house.NUMBER,
        Ask(gauge("streamjoin_scaling_executors"), "scaling wants"),
        Ask(gauge("streamjoin_executors", "state"), "{{state}}"),
        Ask(gauge("streamjoin_partitions"), "partitions"),
        span=12,
    )
    return Row(
        "Load and executors",
        [load, house.dashed(house.dashed(wanted, "scaling wants", "purple"), "partitions", "#9fa7b3")],
    )


def _votes() -> Row:
    votes = house.steps(
        "Votes",
        "Periods in a row that agreed. A spike shorter than the votes needed changes nothing.",
        house.NUMBER,
        Ask(gauge("streamjoin_scaling_votes", "direction"), "{{direction}}"),
        Ask(gauge("streamjoin_scaling_votes_needed"), "needed"),
        span=6,
    )
    ago = f"time() - {gauge('streamjoin_scaling_last_decision_timestamp_seconds')}"
    verdicts = f"sum by (verdict) (increase({of('streamjoin_scaling_verdicts_total')}[$__rate_interval])) > 0"
    return Row(
        "Decisions",
        [
            house.dashed(votes, "needed", house.RED),
            house.stacked(
                "Verdicts",
                "What came of the decisions of the last minutes. Blind: figures were missing or old. AtLimit: min, max or "
                "the number of units is reached. Cooling: it is too soon after a change.",
                house.COUNT,
                Ask(verdicts, "{{verdict}}"),
                span=6,
            ),
            house.spans(
                "Phase",
                "Idle, or on the way to another number of executors. A phase that does not end is rolled back at its deadline.",
                Ask(f"{gauge('streamjoin_scaling_phase', 'phase')} == 1", "{{phase}}"),
                span=6,
            ),
            house.flag(
                "Figures",
                "Did the last period have complete and fresh figures of all executors? Without them nothing is decided.",
                Ask(gauge("streamjoin_scaling_blind"), "figures"),
                no="complete",
                yes="missing",
            ).height(house.HEIGHT),
            house.figure(
                "Last decision",
                "Time since the operator last looked at this job's load; a period or two.",
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
        "State of the executor's units over what it may hold. At 1 it no longer fits: pages go to disk, batches slow down.",
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
                    "Working set over the limit at which the container is killed: for alarms, scaling does not look at it.",
                    house.RATIO,
                    Ask(working, "executor {{executor}}"),
                    span=6,
                ),
                (0.95, house.RED),
            ),
            house.steps(
                "Units by executor",
                "How many units each executor served last. Uneven for long: Spark's tasks stay where their state is.",
                house.NUMBER,
                Ask(gauge("streamjoin_executor_units", "executor"), "executor {{executor}}"),
                span=6,
            ),
            house.lines(
                "Rows by executor",
                "Rows of state that each executor's units hold. Whoever holds least leaves first.",
                house.COUNT,
                Ask(gauge("streamjoin_executor_state_rows", "executor"), "executor {{executor}}"),
                span=12,
            ),
            house.steps(
                "Room to grow",
                "Tasks that join at once: a partition for each core of the executors, but at most one for each unit.",
                house.NUMBER,
                Ask(where("streamjoin_executors", 'state="ready"'), "executors"),
                Ask(gauge("streamjoin_partitions"), "partitions"),
                Ask(gauge("streamjoin_units"), "units"),
                span=12,
            ),
        ],
    )
