"""How a plan speaks of window functions: what comes out when, what is kept, and what to beware of."""

import pyarrow as pa
import pytest

from joinlib.model.stage import OverStage
from joinlib.plan.blocks import pipeline
from joinlib.plan.changes import Mode
from joinlib.plan.explain import cautions, explain
from joinlib.plan.explain.formats import as_mermaid
from joinlib.plan.options import JoinOptions
from joinlib.plan.source import SourceInput

BID = SourceInput(
    pa.schema([("auction", pa.int64()), ("price", pa.int64()), ("ts", pa.timestamp("us", "UTC"))]), time="ts"
)
LATEST = (
    "SELECT auction, price FROM bid QUALIFY row_number() OVER (PARTITION BY auction ORDER BY ts DESC) = 1"
)


@pytest.mark.parametrize(
    ("sql", "mode", "said", "warned"),
    [
        (
            LATEST,
            "changelog",
            ["first row of each auction by ts DESC", "keeps   of each partition the rows up to rank 1"],
            ["first row of each auction by ts DESC: the first rows of each auction are kept forever"],
        ),
        (
            "SELECT auction, rank() OVER (ORDER BY price) AS r FROM bid",
            "changelog",
            ["all rows, in one unit", "rows whose values change go and come"],
            ["rank() OVER (ORDER BY price): there is no PARTITION BY"],
        ),
        (
            "SELECT auction, n FROM (SELECT auction, count(*) AS n FROM bid GROUP BY auction) ORDER BY n DESC LIMIT 5",
            "changelog",
            ["first 5 rows by n DESC", "all rows that are not deleted"],
            ["stage 1, first 5 rows by n DESC: its rows may be taken back"],
        ),
        (
            "SELECT auction, lag(price) OVER (PARTITION BY auction ORDER BY ts) AS p FROM bid",
            "append",
            ["once, when the watermark has passed", "the rows that frames and lag still reach"],
            [
                "lag(price, 1) OVER (PARTITION BY auction ORDER BY ts): what later rows need is kept of each auction"
            ],
        ),
        (
            "SELECT auction, sum(price) OVER (PARTITION BY auction) AS p FROM bid",
            "changelog",
            ["keeps   all rows"],
            ["sum(price) OVER (PARTITION BY auction): all rows are kept forever"],
        ),
    ],
)
def test_what_is_kept_and_when_it_comes_out(sql: str, mode: Mode, said: list[str], warned: list[str]) -> None:
    plan = pipeline(sql, {"bid": BID}, JoinOptions(), mode=mode)
    text = explain(plan)
    assert all(part in text for part in said), text
    found = [c for c in cautions(plan) if "every group" not in c]
    assert [c[: len(w)] for c, w in zip(found, warned, strict=True)] == warned


def test_a_function_is_named_by_its_whole_text() -> None:
    """It identifies the function: what differs behind the 80th character is another one."""
    frames = [
        f"max(price) OVER (PARTITION BY auction ORDER BY ts, price, auction ROWS {n} PRECEDING)"
        for n in (1, 2)
    ]
    plan = pipeline(
        f"SELECT auction, {frames[0]} AS a, {frames[1]} AS b FROM bid",
        {"bid": BID},
        JoinOptions(),
        mode="append",
    )
    assert isinstance(plan.last, OverStage)
    texts = [call.sql for call in plan.last.over.calls]
    assert len(set(texts)) == 2
    assert texts[1].endswith("ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)")
    assert "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)" in as_mermaid(plan)
