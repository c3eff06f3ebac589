"""`streamjoin scale FILE --simulate TRACE`: what would scaling have done with this load?"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs.cli import words
from joinlib.errors import SpecError
from joinlib.scale.policy import Policy, of_spec
from joinlib.scale.simulate import Period, World, simulate
from joinlib.scale.trace import read
from joinlib.spec.model import StreamJoin


def simulated(
    document: StreamJoin, trace: Path, startup_s: float, rate: float | None = None
) -> tuple[Policy, list[Period]]:
    """Simulate the spec's scaling; return its policy and one tick per period of the trace.

    rate: rows that one executor reads per second while rows wait; None: as many as come.

    Raises:
        SpecError: the trace is too short, or has rows that come, and no rate is given.
    """
    from jobs.spark_conf import executors_of, initial_executors, memory

    policy, executors, loads = of_spec(document.spec), executors_of(document), read(trace)
    periods = (loads[-1].seconds - loads[0].seconds) / policy.period_s
    if periods < policy.votes:
        raise SpecError(
            f"{trace}: {periods:.0f} periods of {policy.period_s:g} s are fewer than scaling.votes,"
            f" {policy.votes}"
        )
    if rate is None and any(point.arriving or point.waiting for point in loads):
        raise SpecError(
            f"--rate: {trace} has rows that come; say how many one executor reads per second while rows wait,"
            " such as --rate 5000 (streamjoin_scaling_executor_rate of a job that fell behind)"
        )
    world = World(
        memory(executors).state,
        startup_s,
        ready=initial_executors(executors),
        rate=None if rate is None else lambda k: k * rate,
    )
    return policy, simulate(policy, world, loads)


def table(ticks: Sequence[Period]) -> str:
    """Return a line for each period with a decision that differs from the one before, and a summary."""
    rows = any(tick.waiting for tick in ticks)
    waiting = f" {'waiting':>9}" if rows else ""
    lines = [f"{'seconds':>9} {'state':>9} {'τ':>6}{waiting} {'executors':>11}  decision"]
    lines += [_line(tick, rows) for tick in _news(ticks)]
    return "\n".join([*lines, "", _summary(ticks)])


def _news(ticks: Sequence[Period]) -> Iterator[Period]:
    last = None
    for tick in ticks:
        if last is None or not last.decision.again(tick.decision):
            yield tick
        last = tick


def _line(tick: Period, rows: bool) -> str:
    change = f"{tick.ready}" if tick.ready == tick.wanted else f"{tick.ready} → {tick.wanted}"
    said = tick.decision
    waiting = f" {tick.waiting:9.0f}" if rows else ""
    return (
        f"{tick.at:9.0f} {words.size(int(tick.held)):>9} {tick.load:6.2f}{waiting} {change:>11}  {said.verdict}:"
        f" {said.reason}"
    )


def _summary(ticks: Sequence[Period]) -> str:
    over = sum(t.load > 1 for t in ticks)
    changes = sum(t.decision.verdict in ("ScaleOut", "ScaleIn") for t in ticks)
    mean = sum(t.ready for t in ticks) / len(ticks)
    return (
        f"{len(ticks)} periods, {changes} changes, {mean:.1f} executors on average, at most"
        f" {max(t.ready for t in ticks)}; {over} periods with more state than room"
    )


def plot(policy: Policy, ticks: Sequence[Period], file: Path) -> None:
    """Draw the load above and the executors below, as in figure 12 of the paper; rows that wait between them."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SpecError("--plot: needs matplotlib (pip install matplotlib)") from error
    rows = any(t.waiting for t in ticks)
    figure = Figure(figsize=(8, 7 if rows else 5), layout="constrained")
    load, *between, executors = figure.subplots(3 if rows else 2, 1, sharex=True)
    minutes = [t.at / 60 for t in ticks]
    for waiting in between:
        waiting.plot(minutes, [t.waiting for t in ticks], color="tab:red")
        waiting.set_ylabel("rows that wait")
    load.plot(minutes, [t.load for t in ticks], color="tab:blue", label="τ")
    for level, name in ((policy.high, "high"), (policy.target, "target"), (policy.low, "low")):
        load.axhline(level, color="grey", linestyle=":" if name == "target" else "--", linewidth=0.8)
        load.annotate(name, (1.0, level), xycoords=("axes fraction", "data"), fontsize=8)
    load.set_ylabel("memory load τ")
    executors.step(minutes, [t.ready for t in ticks], where="post", label="there")
    executors.step(minutes, [t.wanted for t in ticks], where="post", linestyle="--", label="wanted")
    executors.set(xlabel="minutes", ylabel="executors", ylim=(0, None))
    executors.legend()
    figure.savefig(file, dpi=120)
