"""A budget of memory: what it means for each head, where it is told, and that a checkpoint does not care."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from joinlib.checkpoint.identity import identify
from joinlib.compiled import compiled
from joinlib.model.fingerprint import compare, fingerprint
from joinlib.plan import pipeline_of
from joinlib.plan.explain import cautions, explain
from joinlib.plan.explain.formats import render
from joinlib.spec.load import parse

SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: m}
spec:
  sql: SELECT a.k AS k FROM a JOIN b ON a.k = b.k
  inputs:
    a: {schema: k BIGINT, files: {path: a, format: parquet}}
    b: {schema: k BIGINT, files: {path: b, format: parquet}}
  output: {noop: {}}
  checkpoint: {path: c}
  executors: {min: 2, max: 4}
  join: {units: 8, memory: 64Mi}
"""


def spec(old: str = "", new: str = "") -> str:
    assert old in SPEC
    return SPEC.replace(old, new) if old else SPEC


@pytest.mark.parametrize(
    ("old", "new", "mib"),
    [
        ("", "", 6),  # three quarters of 64 MiB, for 4 units of 2 inputs
        ("min: 2", "min: 4", 12),
        ("executors: {min: 2, max: 4}", "", 3),
        ("64Mi", "1Gi", 96),
        ("a.k = b.k", "a.k = b.k JOIN a AS c ON c.k = a.k", 4),
    ],
)
def test_heads_share_the_budget(old: str, new: str, mib: float) -> None:
    """As many as an executor may have at once: of each unit and input, with the fewest executors."""
    document = parse(spec(old, new), "m.yaml", Path())
    plan = pipeline_of(document)

    assert plan.budget is not None and plan.budget.head == mib * 2**20
    assert compiled(document, 1).join.tuning.seal_bytes == plan.budget.head
    assert f"a head of {mib} MiB for each unit and input" in explain(plan)
    assert json.loads(render(plan, "json"))["memory"] == vars(plan.budget)


def test_without_a_budget_nothing_is_said() -> None:
    """State takes what there is, as before."""
    plan = pipeline_of(parse(spec(", memory: 64Mi"), "m.yaml", Path()))
    assert plan.budget is None and "Memory" not in explain(plan)


def test_where_a_budget_does_not_do_what_one_might_think() -> None:
    """Too little for heads; indexes that cannot be written to disk."""
    few = pipeline_of(parse(spec("64Mi", "64Ki"), "m.yaml", Path()))
    compared = pipeline_of(parse(spec("a.k = b.k", "a.k < b.k"), "m.yaml", Path()))

    assert any("leaves 64 KiB for the newest rows" in c for c in cautions(few))
    assert any("does not bound the state of a join by comparisons" in c for c in cautions(compared))


def test_a_checkpoint_follows_any_budget(tmp_path: Path) -> None:
    """It is no part of what a checkpoint is: more, less or none, the same state goes on."""
    plans = [pipeline_of(parse(spec("64Mi", size), "m.yaml", Path())) for size in ("64Mi", "1Mi", "8Gi")]
    plans.append(replace(plans[0], budget=None))
    made = {identify(tmp_path, "m", plan) for plan in plans}

    assert len(made) == 1
    assert all(not list(compare(fingerprint(plans[0]), fingerprint(plan))) for plan in plans)
