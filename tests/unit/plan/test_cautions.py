"""What a run warns of before it begins."""

import pyarrow as pa
import pytest

from joinlib.errors import SpecError
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


def test_windows_that_never_end_are_told_why() -> None:
    """They are windows of an event time already: what lacks is a bound of the join below."""
    said = warned("SELECT count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY window(a.t, '5 minutes')")
    ends = [caution for caution in said if caution.startswith("stage 1, groups by TUMBLE(a.t, 5m): ")]
    assert len(ends) == 2
    assert all("bound the event times of joins in ON" in end for end in ends)
    assert not [end for end in ends if "group by a window" in end]


def test_order_without_a_limit_is_named() -> None:
    """An OFFSET, too, decides which rows there are."""
    told = "ORDER BY without LIMIT changes nothing"
    of = {"": True, " LIMIT 2": False, " OFFSET 2": False}
    for cut, expected in of.items():
        plan = pipeline(f"SELECT k FROM a ORDER BY k{cut}", INPUTS, JoinOptions(units=1), mode="changelog")
        assert any(caution.startswith(told) for caution in cautions(plan)) == expected, cut


NOT_FINAL = [
    ("SELECT k FROM a LIMIT 5", "which are the first 5 rows by k changes when other rows come"),
    ("SELECT k FROM a QUALIFY rank() OVER (PARTITION BY j ORDER BY k) < 3", "the rows with rank up to 2 of each j by k"),
    ("SELECT k, sum(j) OVER (PARTITION BY k) AS s FROM a", "the value of sum(j) OVER (PARTITION BY k) is taken back"),
    ("SELECT k, sum(j) OVER (PARTITION BY k ORDER BY j) AS s FROM a", "in the order of an event time alone"),
    ("SELECT a.k, (SELECT b.j FROM b WHERE b.k = a.k) AS v FROM a", "the value of a subquery is taken back"),
    ("SELECT a.k FROM a WHERE a.j > (SELECT max(j) FROM b)", "the value of a subquery is taken back"),
    ("SELECT g.n FROM (SELECT k, count(*) AS n FROM a GROUP BY k) g JOIN b ON b.k = g.k", "(GROUP BY k) is taken back"),
    ("SELECT k FROM a WHERE t > now() - INTERVAL 1 DAY", "a row that is compared with now() goes"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "clause"), NOT_FINAL)
def test_what_is_not_final_is_told_in_words_of_the_text(sql: str, clause: str) -> None:
    with pytest.raises(SpecError) as refused:
        warned(sql)
    assert clause in str(refused.value)
    assert "output.mode: changelog" in str(refused.value)


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
