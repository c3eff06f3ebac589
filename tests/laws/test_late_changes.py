"""Changes behind the watermark: a row that is still stored is deleted, and is not left beside the one that replaces it."""

import datetime as dt
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from joinlib.model.inputs import WEIGHT
from joinlib.model.stage import PathStage
from joinlib.plan import JoinOptions, SourceInput, pipeline
from tests.laws.any_paths import any_paths
from tests.laws.chain import Chain

UTC = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("t", UTC)])
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SQL = (
    "SELECT a.v AS v, b.v AS w FROM a JOIN b ON a.k = b.k AND b.t BETWEEN a.t AND a.t + INTERVAL 100 SECONDS"
)


def rows(*changes: tuple[int, int, int, int]) -> pa.RecordBatch:
    """Changes: (k, v, seconds, weight)."""
    made = [{"k": k, "v": v, "t": START + dt.timedelta(seconds=s), WEIGHT: w} for k, v, s, w in changes]
    return pa.RecordBatch.from_pylist(made, SCHEMA.append(pa.field(WEIGHT, pa.int64())))


@pytest.mark.parametrize("upsert", [True, False])
def test_a_row_behind_the_watermark_is_replaced(tmp_path: Path, upsert: bool) -> None:
    """New partners find one row of the key. The pair of before stays: its partner was dropped."""
    changing = SourceInput(SCHEMA, "t", upsert=("k",)) if upsert else SourceInput(SCHEMA, "t", changes=True)
    inputs = {"a": changing, "b": SourceInput(SCHEMA, "t")}
    chain = Chain(pipeline(SQL, inputs, JoinOptions(units=2), mode="changelog"), tmp_path)
    grows = {"b": rows((1, 10, 5, 1), (2, 11, 60, 1)).drop_columns([WEIGHT])}
    assert Counter(chain.batch({"a": rows((1, 1, 0, 1), (2, 2, 60, 1)), **grows})) == {
        (1, 10, 1): 1,
        (2, 11, 1): 1,
    }

    new = [(1, 3, 61, 1)] if upsert else [(1, 1, 0, -1), (1, 3, 61, 1)]  # the old row is 60 s behind
    later = {"b": rows((1, 12, 62, 1)).drop_columns([WEIGHT])}
    assert Counter(chain.batch({"a": rows(*new), **later})) == {(3, 12, 1): 1}


def test_the_deletion_of_a_row_that_came_late(tmp_path: Path) -> None:
    """It is late as its row was, and no error; any other deletion without its row is one."""
    inputs = {"a": SourceInput(SCHEMA, "t", changes=True), "b": SourceInput(SCHEMA, "t")}
    chain = Chain(pipeline(SQL, inputs, JoinOptions(units=1), mode="changelog"), tmp_path)
    chain.batch({"a": rows((1, 1, 60, 1)), "b": rows((1, 10, 60, 1)).drop_columns([WEIGHT])})
    assert not chain.batch({"a": rows((1, 2, 0, 1))})
    assert not chain.batch({"a": rows((1, 2, 0, -1))})
    assert sum(m.late[0] for m in chain.flows[0].manifests) == 2
    with pytest.raises(Exception, match="1 deletions of this batch are of rows that are not there"):
        chain.batch({"a": rows((1, 2, 61, -1))})


BY_PATHS = (
    "SELECT a.v AS v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k AND b.t BETWEEN a.t AND a.t + INTERVAL 100 SECONDS"
    " JOIN c ON a.v = c.v AND c.t BETWEEN a.t AND a.t + INTERVAL 100 SECONDS"
)


def paths(folder: Path, seed: int, **how: bool) -> Chain:
    """a meets b by k and c by v; a is stored by both."""
    inputs = {"a": SourceInput(SCHEMA, "t", changes=True, **how)} | {
        n: SourceInput(SCHEMA, "t") for n in "bc"
    }
    with any_paths(seed):
        plan = pipeline(BY_PATHS, inputs, JoinOptions(units=2, strategy="paths"), mode="changelog")
    assert isinstance(plan.stages[0], PathStage)
    return Chain(plan, folder)


def only(*changes: tuple[int, int, int]) -> pa.RecordBatch:
    """Rows that come: (k, v, seconds)."""
    return rows(*((*row, 1) for row in changes)).drop_columns([WEIGHT])


@pytest.mark.parametrize("seed", range(5))
def test_a_row_behind_the_watermark_is_replaced_by_each_key(tmp_path: Path, seed: int) -> None:
    """Wherever it is still stored; a copy of it that has been dropped is out of reach of all that may come."""
    chain = paths(tmp_path, seed)
    assert Counter(
        chain.batch({"a": rows((1, 1, 0, 1), (2, 2, 60, 1)), "b": only((1, 10, 5)), "c": only((1, 1, 60))})
    ) == {(1, 10, 1, 1): 1}
    chain.batch({"b": only((5, 5, 60))})

    later = {"b": only((1, 12, 62)), "c": only((1, 1, 62), (1, 3, 62))}
    assert Counter(chain.batch({"a": rows((1, 1, 0, -1), (1, 3, 61, 1)), **later})) == {
        (1, 10, 1, -1): 1,
        (3, 12, 3, 1): 1,
    }


@pytest.mark.parametrize("seed", range(5))
def test_deletions_of_rows_that_are_not_there_by_paths(tmp_path: Path, seed: int) -> None:
    """Late as their row was, an error, or left out and counted: once, though it is asked of every copy."""
    chain = paths(tmp_path / "fails", seed)
    chain.batch({"a": rows((1, 1, 60, 1)), "b": only((1, 10, 60)), "c": only((1, 1, 60))})
    assert not chain.batch({"a": rows((1, 2, 0, 1))})
    assert not chain.batch({"a": rows((1, 2, 0, -1))})
    stage = chain.flows[0].stage
    counted = [plan.number for plan in stage.inputs if plan.alias == "a" and plan.again is None]
    assert [sum(m.late[n] for m in chain.flows[0].manifests) for n in counted] == [2]
    with pytest.raises(Exception, match="1 deletions of this batch are of rows that are not there"):
        chain.batch({"a": rows((1, 2, 61, -1))})

    chain = paths(tmp_path / "skips", seed, skip_unknown=True)
    chain.batch({"a": rows((1, 1, 60, 1)), "b": only((1, 10, 60)), "c": only((1, 1, 60), (1, 2, 60))})
    assert Counter(chain.batch({"a": rows((1, 2, 61, -1), (1, 1, 60, -1))})) == {(1, 10, 1, -1): 1}
