"""How many executors does the state want, and how many the lag?

    state    those that bring τ to its target, where it is over high or under low; else those that are there
    lag      ⌈(arrival + rows that wait / catch-up time) / (utilisation · true rate of one executor)⌉

The second is that of DS2 and of Flink's autoscaler. What one executor can do is known only from times when rows
waited: a job that keeps up reads no more than there is, in small batches. So it is remembered from then, and
raised when an executor is seen to do more.

Laws: the lag wants more executors than there are only if rows wait for more than a period and will not be read
within the catch-up time; a job whose rows never waited has no want of its lag.
"""

from dataclasses import replace
from math import ceil, inf

from joinlib.scale.load import ROUNDING, Load, fitting, tau
from joinlib.scale.policy import Policy
from joinlib.scale.state import Backlog, Learnt, Wants
from joinlib.spec import duration

_CLEAR = 1.25  # a change of the executors by this factor is large enough to see whether it had an effect
_EFFECT = 0.25  # the least part of the expected gain that counts as an effect


def backlog(load: Load) -> Backlog | None:
    """Return the figures of the lag; None if one is not known."""
    if load.lag is None or load.arrival is None or not load.true_rate:
        return None
    more = load.true_rate - load.arrival
    seconds = 0.0 if not load.lag else load.lag / more if more > 0 else inf
    rates = round(load.arrival, 3), round(load.true_rate, 3)
    return Backlog(round(load.lag), *rates, None if seconds == inf else round(seconds, 3))


def learnt(before: Learnt | None, load: Load, policy: Policy) -> Learnt | None:
    """Return what is known of one executor after a period."""
    able = round((load.true_rate or 0) / load.executors, 3)
    if not able:
        return before
    if load.behind(policy.period_s):
        return Learnt(able) if before is None else replace(before, able=able)
    return None if before is None else Learnt(max(able, before.able))


def wants(load: Load, policy: Policy, knows: Learnt | None) -> Wants:
    """Return how many executors state and lag want."""
    state, lag = _of_state(load, policy), _of_lag(load, policy, knows)
    said = _tau_said(load, policy)
    if lag is None:
        return Wants("state", state, said)
    both = f"state wants {state}, lag {lag}"
    if lag > state:
        return Wants("lag", state, f"{_lag_said(load, policy, knows)}; {both}", lag)
    return Wants("state", state, f"{said}; {both}", lag)


def without_effect(load: Load, knows: Learnt | None) -> str:
    """Return why executors that were added for the lag were of no use; "" if they were, or it is not known."""
    if knows is None or knows.tried is None or not knows.tried_rate or not load.true_rate:
        return ""
    factor = load.executors / knows.tried
    if factor < _CLEAR or load.true_rate >= knows.tried_rate * (1 + _EFFECT * (factor - 1)):
        return ""
    return (
        f"{_readers(knows.tried)} {knows.tried_rate:.0f} rows/s, {load.executors} read"
        f" {load.true_rate:.0f}: more would not help"
    )


def _of_state(load: Load, policy: Policy) -> int:
    if policy.low <= tau(load) <= policy.high:
        return load.executors
    return fitting(load, policy.target)


def _of_lag(load: Load, policy: Policy, knows: Learnt | None) -> int | None:
    if knows is None or not policy.catch_up_s or load.lag is None or load.arrival is None:
        return None
    needed = load.arrival + load.lag / policy.catch_up_s
    found = max(1, ceil(needed / (policy.utilisation * knows.able) - ROUNDING))
    return found if _overdue(load, policy) else min(found, load.executors)


def _overdue(load: Load, policy: Policy) -> bool:
    """Whether rows wait, and will wait for longer than they should."""
    found = backlog(load)
    if found is None or not load.behind(policy.period_s):
        return False
    return found.seconds is None or found.seconds > policy.catch_up_s


def _tau_said(load: Load, policy: Policy) -> str:
    now = tau(load)
    if now > policy.high:
        return f"τ {now:.2f} is over {policy.high}"
    if now < policy.low:
        return f"τ {now:.2f} is under {policy.low}"
    return f"τ {now:.2f} is between {policy.low} and {policy.high}"


def _lag_said(load: Load, policy: Policy, knows: Learnt | None) -> str:
    found = backlog(load)
    if found is None or knows is None:
        return ""
    come = f"{found.rows} rows wait and {found.arrival:.0f}/s come"
    if not _overdue(load, policy):
        return f"{come}, an executor can read {knows.able:.0f}/s"
    read = f"{come}, {_readers(load.executors)} {found.rate:.0f}/s"
    limit = _time(policy.catch_up_s)
    if found.seconds is None:
        return f"{read} and will never catch up ({limit} are allowed)"
    return f"{read} and will catch up in {_time(found.seconds)} ({limit} are allowed)"


def _readers(executors: int) -> str:
    return "1 executor reads" if executors == 1 else f"{executors} executors read"


def _time(seconds: float) -> str:
    return duration.text(max(1, round(seconds)) * 1_000_000)
