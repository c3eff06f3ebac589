"""The law of changes at the level of units: attempts that die, indexes that are lost, processes that are new; and state that is
bounded by what lives.

Tables and groups are not played here (test_changes.py has them); the troubles of a unit are not played there.
"""

from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import event, given, reject, settings
from hypothesis import strategies as st

from joinlib.errors import SpecError
from joinlib.model.inputs import WEIGHT
from joinlib.model.stage import PathStage, Pipeline
from joinlib.model.tuning import Tuning
from joinlib.plan import JoinOptions, SourceInput, pipeline
from tests.laws.any_paths import any_paths
from tests.laws.cases import SECOND, differences, troubles
from tests.laws.chain import Chain
from tests.laws.changelog import WEIGHTS, Answer, bare
from tests.laws.combined import TYPES, questions
from tests.laws.harness import Batch, Trouble
from tests.laws.histories import BEFORE, Event
from tests.laws.test_changes import EXAMPLES, LIVELY, Case, cases


def planned(case: Case) -> Pipeline:
    return pipeline(
        case.sql(case.question),
        {name: _source(case, name) for name in case.histories},
        JoinOptions(units=case.units, strategy=case.strategy),
        mode="changelog",
    )


def _source(case: Case, name: str) -> SourceInput:
    history, schema = case.histories[name], pa.schema([(c, TYPES[kind]) for c, kind in case.columns(name)])
    return SourceInput(
        schema,
        None if case.delay_s is None else "t",
        (case.delay_s or 0) * SECOND,
        changes=history.words is not None and history.key is None,
        upsert=tuple(schema.names[at] for at in history.key or ()),
        skip_unknown=history.unknown == "skip" or history.key is not None,
    )


def _batch(case: Case, name: str, events: tuple[Event, ...]) -> pa.RecordBatch:
    """What a reader makes of these events."""
    history = case.histories[name]
    said = [e for e in events if history.key is None or e.op != BEFORE]
    table = case.table(name, [e.row for e in said])
    if history.words is not None or history.key is not None:
        table = table.append_column(WEIGHT, pa.array([WEIGHTS[e.op] for e in said], pa.int64()))
    return pa.record_batch(table.combine_chunks().to_batches()[0]) if said else _none(table.schema)


def _none(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema)


def batches(case: Case) -> list[tuple[Batch, dict[str, int]]]:
    """The rows of each batch, and how many events of each stream have come by then."""
    found, before = [], dict.fromkeys(case.histories, 0)
    for number in range(max(map(len, case.cuts.values()))):
        read = {n: ends[min(number, len(ends) - 1)] for n, ends in case.cuts.items()}
        rows = {n: _batch(case, n, h.events[before[n] : read[n]]) for n, h in case.histories.items()}
        found.append((rows, read))
        before = read
    return found


def summed(out: list[tuple[object, ...]], changes: bool) -> Answer:
    """The rows that came out of a batch, as often as their weights say."""
    found: Answer = Counter()
    for row in out:
        *values, weight = row if changes else (*row, 1)
        found[tuple(map(bare, values))] += weight  # type: ignore[operator]
    return found


def holds(case: Case, trouble: Trouble) -> None:
    try:
        plan = planned(case)
    except SpecError as refused:
        event(f"refused: {refused}"[:150])
        reject()
    event(f"paths: {any(isinstance(stage, PathStage) for stage in plan.stages)}")
    with TemporaryDirectory() as folder:
        chain = Chain(plan, Path(folder), case.tuning, trouble, 2 if case.at_once == 2 else 1000)
        answer: Answer = Counter()
        for rows, read in batches(case):
            answer.update(summed(chain.batch(rows), plan.last.changes))
            assert differences(case.expected(read), answer) == {}
        assert not any(summed(chain.batch({}, closed=True), plan.last.changes).values())
        assert not any(count for flow in chain.flows for count in flow.late.values())


@pytest.mark.slow
@settings(LIVELY, max_examples=EXAMPLES)
@given(cases(questions(bare=True), ("auto", "auto", "binary", "multiway")), troubles(4))
def test_joins_by_equality(case: Case, trouble: Trouble) -> None:
    holds(case, trouble)


@pytest.mark.slow
@settings(LIVELY, max_examples=EXAMPLES)
@given(cases(questions(inner=True, least=3, bare=True), ("paths",)), troubles(4), st.integers(0, 999))
def test_joins_by_paths(case: Case, trouble: Trouble, seed: int) -> None:
    """By any paths; rows are settled by each key by which they are stored."""
    with any_paths(seed):
        holds(case, trouble)


@pytest.mark.slow
@settings(LIVELY, max_examples=EXAMPLES // 2)
@given(cases(questions(two=True, bare=True), ("auto", "biclique", "inequality")), troubles(4))
def test_two_streams_by_any_strategy(case: Case, trouble: Trouble) -> None:
    holds(case, trouble)


@pytest.mark.slow
@settings(LIVELY, max_examples=EXAMPLES // 2)
@given(cases(questions(kinds=("not in", "not in", "in"), bare=True), ("auto",)), troubles(4))
def test_not_in(case: Case, trouble: Trouble) -> None:
    holds(case, trouble)


# --- what is stored --------------------------------------------------------------------------------------------------

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])
KEYS, UPDATES = 50, 25
SMALL = {"seal_rows": 40, "merge_segments": 2, "max_segments": 8, "max_runs": 3, "retain_batches": 1}


def _updates(old: dict[int, int], draw: Random, number: int) -> pa.RecordBatch:
    """Some rows of `old` have another value now."""
    rows, weights = [], []
    for k in draw.sample(sorted(old), UPDATES):
        rows += [{"k": k, "v": old[k]}, {"k": k, "v": number}]
        weights += [-1, 1]
        old[k] = number
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    return pa.record_batch([*batch.columns, pa.array(weights, pa.int64())], [*SCHEMA.names, WEIGHT])


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "LEFT ANTI JOIN"])
@pytest.mark.parametrize("levelled", [False, True])
def test_dead_rows_go(kind: str, levelled: bool, tmp_path: Path) -> None:
    """Thousands of updates of fifty rows: what is stored and its bytes are those of some fifty rows, late as early."""
    shown = "a.k, a.v" if "ANTI" in kind else "a.k, a.v, b.v AS w"
    sql = f"SELECT {shown} FROM a {kind} b ON a.k = b.k"
    inputs = dict.fromkeys("ab", SourceInput(SCHEMA, changes=True))
    plan = pipeline(sql, inputs, JoinOptions(units=1), mode="changelog")
    chain, draw = Chain(plan, tmp_path, Tuning(**SMALL, levelled=levelled)), Random(1)
    there: dict[str, dict[int, int]] = {name: dict.fromkeys(range(KEYS), -1) for name in "ab"}
    first = pa.record_batch(
        [pa.array(range(KEYS)), pa.array([-1] * KEYS), pa.array([1] * KEYS)], [*SCHEMA.names, WEIGHT]
    )
    chain.batch(dict.fromkeys("ab", first))
    stored, sizes = [], []
    for number in range(120):
        chain.batch({name: _updates(old, draw, number) for name, old in there.items()})
        stored.append(sum(chain.stored))
        sizes.append(sum(f.stat().st_size for f in tmp_path.rglob("*.arrow")))

    living = 2 * KEYS
    assert max(stored[20:]) <= 3 * (living + 2 * SMALL["seal_rows"])
    assert max(stored[80:]) <= 1.25 * max(stored[20:60])
    assert max(sizes[80:]) <= 1.25 * max(sizes[20:60])
