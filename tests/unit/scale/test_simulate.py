"""Scaling in a closed loop, up to the paper's 128 executors and to 1 000."""

from dataclasses import replace
from itertools import groupby
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from jobs.cli.commands import app
from jobs.cli.scale import simulated
from joinlib.errors import InputError, SpecError
from joinlib.scale import Policy
from joinlib.scale.simulate import Period, Point, World, simulate
from joinlib.scale.trace import read
from joinlib.spec import load
from tests import configs

C = 1e9
POLICY = configs.policy(min=1, max=1000, votes=3, period_s=60, cool_s=60, patience_s=300)
HOUR = 3600.0


def loop(
    trace: list[tuple[float, float]],
    ready: int,
    policy: Policy = POLICY,
    noise: float = 0.0,
    seed: int = 0,
    **world: float,
) -> list[Period]:
    random = Random(seed)
    made = World(C, ready=ready, **world)  # type: ignore[arg-type]
    return simulate(
        policy, made, [Point(*point) for point in trace], noise=lambda _: random.uniform(-noise, noise)
    )


def sizes(ticks: list[Period]) -> list[int]:
    return [t.wanted for t in ticks]


@pytest.mark.parametrize("k", [1, 8, 128, 1000])
@given(st.integers(31, 79), st.integers(0, 10_000))
@settings(max_examples=20)
def test_no_oscillation_under_constant_load(k: int, percent: int, seed: int) -> None:
    """Between the thresholds noise of a tenth changes nothing: hardly ever do three votes in a row go the same way."""
    held = min(max(percent / 100, 0.34), 0.72) * k * C
    assert set(sizes(loop([(0, held), (10 * HOUR, held)], k, noise=0.1, seed=seed))) == {k}


@given(st.integers(1, 128), st.floats(0.05, 3.5), st.integers(0, 10_000))
@settings(max_examples=60)
def test_settles_and_stays_under_noise(k: int, load: float, seed: int) -> None:
    """Whatever the load is, in the end their number fits, and one that was given up is never taken again: noise of 5 % moves
    it at most once more, where it had come to lie at a threshold.
    """
    held = load * k * C
    taken = [n for n, _ in groupby(sizes(loop([(0, held), (6 * HOUR, held)], k, noise=0.05, seed=seed)))]
    assert len(set(taken)) == len(taken)
    assert taken == sorted(taken) or taken == sorted(taken, reverse=True)
    assert taken[-1] == 1 or POLICY.low * 0.9 <= held / (taken[-1] * C) <= POLICY.high * 1.1


@pytest.mark.parametrize(
    ("k", "load"), [(2, 1.1), (8, 0.9), (128, 0.85), (250, 2.3), (128, 0.2), (1000, 0.29)]
)
def test_settles_within_the_votes_and_two_periods(k: int, load: float) -> None:
    """After a step of the load, within the limits of a step of scaling: three votes, then pods that need a minute."""
    held = load * k * C
    ticks = loop([(0, 0.5 * k * C), (600, held), (2 * HOUR, held)], k, startup_s=60)
    done = next(t.at for t in ticks if t.at >= 600 and t.decision.verdict == "Settled")
    assert done - 600 <= (POLICY.votes + 2) * POLICY.period_s
    after = [t for t in ticks if t.at > done]
    assert {t.wanted for t in after} == {after[0].wanted}
    assert all(POLICY.low <= t.load <= POLICY.high for t in after)


def test_figure_12() -> None:
    """The paper's run: 8 units, a window's state that rises and falls with the rate; a spike is left alone."""
    minutes = [(0, 8), (8, 14.8), (22, 15.5), (23, 9), (24, 13), (31, 13), (36, 5)]  # GB in all units
    trace = [Point(60.0 * at, held * C) for at, held in [*minutes, (50, 5)]]
    policy = replace(POLICY, min=4, max=80, cool_s=120)
    ticks = simulate(policy, World(2 * C, ready=8, startup_s=60), trace)
    changes = [
        (t.at / 60, t.decision.verdict, t.wanted) for t in ticks if t.decision.verdict.startswith("Scale")
    ]
    assert [(verdict, wanted) for _, verdict, wanted in changes] == [("ScaleOut", 13), ("ScaleIn", 7)]
    assert changes[0][0] == 10, "the third vote after the step in minute 8"


def test_nodes_that_are_full() -> None:
    """It grows as far as there is room, is content with that, and tries again later."""
    held = 2.0 * 4 * C
    ticks = loop([(0, held), (2 * HOUR, held)], 4, room=9)
    assert {t.ready for t in ticks if t.at > 900} == {9}
    assert [t.decision.verdict for t in ticks].count("RolledBack") >= 2
    assert max(sizes(ticks)) == 14


# --- the command ---------------------------------------------------------------------------------------------------------

SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: scaled}
spec:
  sql: SELECT a.k, b.v FROM a JOIN b ON a.k = b.k
  inputs:
    a: {schema: "k BIGINT", generator: {rows: 10}}
    b: {schema: "k BIGINT, v BIGINT", generator: {rows: 10}}
  output: {noop: {}}
  join: {units: 16}
  checkpoint: {path: checkpoint}
  executors: {min: 2, max: 8, memory: 2Gi}
  scaling: {period: 10s, votes: 2}
"""
TRACE = "seconds,bytes\n0,1000000000\n60,4000000000\n300,200000000\n600,200000000\n"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "spec.yaml").write_text(SPEC)
    (tmp_path / "trace.csv").write_text(TRACE)
    return tmp_path / "spec.yaml"


def scale(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["scale", *map(str, arguments)])
    return done.exit_code, done.output


def test_the_command_says_what_would_happen(spec: Path) -> None:
    """One line for each change of mind, with the reason; periods that change nothing are not shown."""
    code, text = scale(spec, "--simulate", spec.parent / "trace.csv")
    assert code == 0
    lines = text.splitlines()
    assert len(lines) < 40
    assert any("ScaleOut" in line and "is over 0.8" in line for line in lines)
    assert any("ScaleIn" in line and "is under 0.3" in line for line in lines)


def test_the_command_draws(spec: Path) -> None:
    """A picture as the paper's figure 12."""
    pytest.importorskip("matplotlib")
    picture = spec.parent / "out.png"
    assert scale(spec, "--simulate", spec.parent / "trace.csv", "--plot", picture)[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_command_follows_rows_that_wait(spec: Path) -> None:
    """Columns of the lag may be left out, or empty; with them it must be told what an executor can read."""
    trace = spec.parent / "lag.csv"
    trace.write_text("seconds,bytes,arriving,waiting\n0,1000,100,\n60,1000,100,600000\n1200,1000,100,\n")
    with pytest.raises(SpecError, match="say how many one executor reads per second"):
        simulated(load(spec), trace, 30)
    code, text = scale(spec, "--simulate", trace, "--rate", "400")
    assert code == 0
    assert any("ScaleOut" in line and "rows wait and 100/s come" in line for line in text.splitlines())
    assert "waiting" in text.splitlines()[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "seconds,bytes\n",
        "a,b\n1,2\n",
        "seconds,bytes\n2,1\n1,1\n",
        "seconds,bytes\n1,-1\n",
        "seconds,bytes,arriving,waiting\n1,1,1,-1\n",
        "seconds,bytes,arriving\n1,1,many\n",
    ],
)
def test_a_trace_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    """With a word on what to write."""
    (tmp_path / "trace.csv").write_text(text)
    with pytest.raises(InputError, match="seconds"):
        read(tmp_path / "trace.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seconds,held\n0,1\n", "1: has no column bytes; "),
        ("", "1: has no column seconds; "),
        ("seconds,bytes\n0,1\n1,many\n", "3: bytes is 'many', no number; "),
        ("seconds,bytes\n0,\n", "2: bytes is empty; "),
        ("seconds,bytes,waiting\n0,1,\n0,1,x\n", "3: waiting is 'x', no number; "),
    ],
)
def test_a_trace_is_refused_where_it_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    """At its line, in the words of the file."""
    (tmp_path / "trace.csv").write_text(text)
    with pytest.raises(InputError) as error:
        read(tmp_path / "trace.csv")
    assert str(error.value).startswith(
        f"{tmp_path}/trace.csv:{said}write CSV with the columns seconds,bytes,"
    )
