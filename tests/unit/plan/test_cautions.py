"""What a run warns of before it begins."""

import pyarrow as pa

from joinlib.model.tuning import Tuning
from joinlib.plan import JoinOptions, SourceInput, pipeline
from joinlib.plan.explain import cautions
from joinlib.plan.explain.maps import OF_A_SIDE

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("k", pa.int64()), ("j", pa.int64()), ("t", TIME)])
INPUTS = dict.fromkeys("abc", SourceInput(SCHEMA, time="t"))
KEPT = (
    "stage {}, INNER JOIN of {}: {} are kept forever, state grows with every row; bound the event times in ON"
    " (a.t BETWEEN b.t - INTERVAL 1 HOUR AND b.t), or set join.retention"
)


def warned(sql: str, retention_us: int | None = None) -> list[str]:
    return list(cautions(pipeline(sql, INPUTS, JoinOptions(units=1, retention_us=retention_us))))


def test_state_that_nothing_bounds_is_named_in_every_stage() -> None:
    """Each input, and the intermediate between two stages; with a retention none."""
    sql = "SELECT a.k AS k FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j"
    assert warned(sql) == [
        KEPT.format(0, "a, b", "a and b"),
        KEPT.format(1, "the result of stage 0, c", "the result of stage 0 and c"),
    ]
    assert warned(sql, retention_us=1) == []


def test_groups_that_never_come_out_are_named() -> None:
    """No time that the watermark passes is among their keys."""
    said = warned("SELECT a.k AS k, count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k", retention_us=1)
    assert len(said) == 2
    assert "every group is kept forever" in said[0] and "only when the inputs are closed" in said[1]


def test_more_maps_than_a_process_may_have() -> None:
    """Known before the first is made."""
    sql = "SELECT a.k AS k FROM a JOIN b ON a.k = b.k"
    few, many = (
        list(cautions(pipeline(sql, INPUTS, JoinOptions(units=units, retention_us=1))))
        for units in (512, 2048)
    )
    assert few == []
    assert (
        "184,320 memory maps" in many[0]
        and "on 4 executors or more" in many[0]
        and "vm.max_map_count" in many[0]
    )
    assert Tuning().max_segments + Tuning().max_runs + 1 == OF_A_SIDE
