"""How long each side keeps its rows: no shorter than a partner may come, and no longer than can be known."""

import pyarrow as pa
import pytest

from joinlib.plan.build import build
from joinlib.plan.layout import layout
from joinlib.plan.options import JoinOptions
from joinlib.plan.source import SourceInput

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("t", pa.timestamp("us", "UTC"))])
NEAR = "{1}.t BETWEEN {0}.t - INTERVAL 1 SECOND AND {0}.t + INTERVAL 3 SECONDS"
A_B, A_C, B_C = (NEAR.format(*pair) for pair in ("ab", "ac", "bc"))


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (f"a JOIN b ON a.k = b.k AND {A_B}", [("a.t", 3), ("b.t", 1)]),
        ("a JOIN b ON a.k = b.k", [(None, None)] * 2),
        ("a JOIN b ON a.k = b.k AND b.t >= a.t", [(None, None), ("b.t", 0)]),
        (
            f"a JOIN b ON a.k = b.k AND {A_B} JOIN c ON a.k = c.k AND {B_C}",
            [("a.t", 6), ("b.t", 3), ("c.t", 2)],
        ),
        (f"a JOIN b ON a.k = b.k AND {A_B} JOIN c ON a.k = c.k", [(None, None)] * 3),
        # a comes out 3 s late, so c waits for it; the pair waits as long as a alone
        (
            f"a LEFT JOIN b ON a.k = b.k AND {A_B} LEFT JOIN c ON a.k = c.k AND {A_C}",
            [("a.t", 3), ("b.t", 1), ("a.t", 3), ("c.t", 4)],
        ),
        # bounds of the outer join say nothing of a pair that has no c
        (
            f"a JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k AND {A_C} AND {B_C}",
            [(None, None)] * 2 + [("a.t", 3), (None, None)],
        ),
        # but where pairs without a c vanish, they do
        (
            f"a JOIN b ON a.k = b.k JOIN c ON a.k = c.k AND {A_C} AND {B_C}",
            [("a.t", 3 + 1), ("b.t", 3 + 1), ("c.t", 1)],
        ),
        (f"c RIGHT JOIN a ON a.k = c.k AND {A_C}", [("a.t", 3), ("c.t", 1)]),
    ],
)
def test_holds(text: str, holds: list[tuple[str | None, int | None]]) -> None:
    """Side by side, children first, in seconds."""
    sql = f"SELECT a.t FROM {text}"
    stage = build(sql, dict.fromkeys("abc", SourceInput(SCHEMA, "t")), JoinOptions(units=1))
    root = layout(stage.tree, stage.inputs, tuple(c.value for c in stage.select))

    assert [
        (s.time, None if s.hold_us is None else s.hold_us // 1_000_000)
        for o in root.operators()
        for s in o.sides
    ] == holds
