"""Decides for one period: from the remembered state and what is observed to the next state.

Pure; time is an argument.

    pinned?  ─► follow it
    limits changed?  ─► go there
    a change is on its way?  ─► settled │ wait │ too late: roll back to what has come
    else  ─► requesting phase: vote, and begin a change, or advise it, when enough votes agree

The caller stores the state before it acts on it. The only action is "let there be `wanted` executors", which
can be repeated: so a caller that is killed at any point, and another that takes over, do no harm.
"""

from dataclasses import replace

from joinlib.scale.load import Load, Observed, tau
from joinlib.scale.policy import Policy
from joinlib.scale.state import Decision, Direction, Learnt, State, Verdict, Wants
from joinlib.scale.wants import backlog, learnt, wants, without_effect

_EARLY = 0.9  # a period counts as over a little early, since callers check every few seconds


def due(state: State, policy: Policy, now: float) -> bool:
    """Whether a period is over. A clock that was set back does not stop scaling."""
    return state.at is None or not 0 <= now - state.at < _EARLY * policy.period_s


def step(state: State, policy: Policy, seen: Observed, now: float) -> State:
    """Return the state after a period, in constant time. `now`: seconds since 1970."""
    wanted = state.wanted if state.wanted is not None else policy.min
    load, lag = (None, None) if seen.load is None else (tau(seen.load), backlog(seen.load))
    state = replace(state, wanted=wanted, at=now, load=load, blind=seen.load is None, backlog=lag)
    return _Step(policy, seen, now).after_period(state)


class _Step:
    """The rules: each method leads from a state to the next."""

    def __init__(self, policy: Policy, seen: Observed, now: float) -> None:
        self.policy, self.seen, self.now = policy, seen, now

    def after_period(self, state: State) -> State:
        policy, wanted = self.policy, _wanted(state)
        if policy.pinned is not None:
            rest = _rest(replace(state, wanted=policy.within(policy.pinned), learnt=None, wants=None))
            return self._say(rest, "Pinned", "spec.executors.instances says how many")
        if wanted != policy.within(wanted):
            reason = f"{wanted} is not between min, {policy.min}, and max, {policy.max}"
            return self._begin(state, "Limits", policy.within(wanted), reason)
        if state.phase != "Idle":
            return self._on_the_way(state)
        return self._request(state)

    # --- the scaling phase ------------------------------------------------------------------------------

    def _begin(self, state: State, verdict: Verdict, wanted: int, reason: str) -> State:
        before = _wanted(state)
        begun = replace(
            _rest(state),
            wanted=wanted,
            phase="Growing" if wanted > before else "Shrinking",
            before=before,
            deadline=self.now + self.policy.patience_s,
        )
        return self._say(begun, verdict, reason, votes=state.votes)

    def _on_the_way(self, state: State) -> State:
        wanted, ready = _wanted(state), self.seen.ready
        if ready is None:  # without a driver no executor comes or goes, so the deadline moves on
            later = replace(state, deadline=self.now + self.policy.patience_s)
            return self._say(later, "Waiting", f"for the driver: {self.seen.why}")
        if ready == wanted and not self.seen.leaving:
            return self._say(self._cooled(state), "Settled", f"{state.before} -> {wanted} executors")
        if state.deadline is not None and self.now < state.deadline:
            return self._say(state, "Waiting", self._progress(wanted))
        return self._back(state, wanted, ready)

    def _back(self, state: State, wanted: int, ready: int) -> State:
        """Roll back after the deadline: executors that came are kept, and those that did not go stay.

        The number is never below that before a growth, nor outside the limits.
        """
        before = state.before if state.before is not None else ready
        kept = max(ready, min(before, wanted)) if state.phase == "Growing" else max(ready, wanted)
        back = self._cooled(replace(state, wanted=self.policy.within(kept)), self.policy.patience_s)
        late = f"not within {self.policy.patience_s:.0f} s: {self._progress(wanted)}"
        return self._say(back, "RolledBack", late)

    def _cooled(self, state: State, at_least_s: float = 0.0) -> State:
        return replace(_rest(state), cool_until=self.now + max(self.policy.cool_s, at_least_s))

    def _progress(self, wanted: int) -> str:
        leaving = f", {self.seen.leaving} leaving" if self.seen.leaving else ""
        return f"{self.seen.ready} of {wanted} executors work{leaving}"

    # --- the requesting phase ---------------------------------------------------------------------------

    def _request(self, state: State) -> State:
        load, wanted = self.seen.load, _wanted(state)
        if load is None:
            return self._blind(state, self.seen.why)
        if load.executors != wanted or self.seen.ready != wanted:
            return self._blind(state, f"{load.executors} of {wanted} executors have reported their state")
        if self.now < state.cool_until:
            return self._say(_unvoted(state), "Cooling", f"{state.cool_until - self.now:.0f} s more")
        knows = learnt(state.learnt, load, self.policy)
        found = wants(load, self.policy, knows)
        state, ideal = replace(state, learnt=knows, wants=found), _greater(found)
        if ideal > wanted:
            return self._vote(state, load, "out", ideal)
        if ideal < wanted:
            return self._vote(state, load, "in", ideal)
        if not self.policy.low <= tau(load) <= self.policy.high and found.state == wanted:
            return self._say(_unvoted(state), "AtLimit", f"{found.why}; {wanted} fit best")
        return self._say(_unvoted(state), "Steady", found.why)

    def _blind(self, state: State, why: str) -> State:
        """Decide nothing for lack of metrics.

        Votes to add executors are kept; those to remove some are discarded, since the need was not observed.
        """
        state = replace(state, blind=True)
        return self._say(_unvoted(state) if state.direction == "in" else state, "Blind", why)

    def _vote(self, state: State, load: Load, direction: Direction, ideal: int) -> State:
        assert state.wants is not None
        k, policy, why = _wanted(state), self.policy, state.wants.why
        wanted = policy.within(ideal)
        if wanted <= k if direction == "out" else wanted >= k:
            return self._say(_unvoted(state), "AtLimit", f"{why}; min is {policy.min}, max {policy.max}")
        if direction == "in" and load.behind(policy.period_s):
            return self._say(_unvoted(state), "CatchingUp", f"{why}, but {_waiting(load)} to be read")
        if direction == "out" and state.wants.by == "lag" and (useless := without_effect(load, state.learnt)):
            return self._say(_unvoted(state), "Ineffective", f"{why}; but {useless}")
        same = state.direction == direction
        votes, most = (state.votes + 1, max(state.most, wanted)) if same else (1, wanted)
        voted = replace(state, direction=direction, votes=votes, most=most)
        if votes < policy.votes:
            return self._say(
                voted,
                "Voting",
                f"{why}; {votes} of {policy.votes} votes for {wanted} executor{'s'[: wanted != 1]}",
            )
        return self._agreed(voted, load, policy.reachable(most, k))

    def _agreed(self, state: State, load: Load, wanted: int) -> State:
        """Begin the change that enough votes agree on, or only advise it."""
        assert state.wants is not None
        why, k = state.wants.why, _wanted(state)
        if self.policy.advises:
            advised = replace(state, votes=self.policy.votes, advised=wanted)
            return self._say(advised, "Advised", f"{why}; {wanted} executors instead of {k} are advised")
        if wanted > k and state.wants.by == "lag" and state.learnt is not None:
            state = replace(state, learnt=Learnt(state.learnt.able, k, load.true_rate))
        return self._begin(state, "ScaleOut" if wanted > k else "ScaleIn", wanted, why)

    def _say(self, state: State, verdict: Verdict, reason: str, votes: int | None = None) -> State:
        decision = Decision(
            at=self.now,
            verdict=verdict,
            wanted=_wanted(state),
            ready=self.seen.ready,
            load=state.load,
            votes=state.votes if votes is None else votes,
            reason=reason,
        )
        return replace(state, decisions=state.remembered(decision))


def _wanted(state: State) -> int:
    assert state.wanted is not None
    return state.wanted


def _greater(found: Wants) -> int:
    return max(found.state, found.lag or 0)


def _waiting(load: Load) -> str:
    return "it is not known how many rows wait" if load.lag is None else f"{load.lag:.0f} rows wait"


def _unvoted(state: State) -> State:
    return replace(state, direction=None, votes=0, most=0, advised=None)


def _rest(state: State) -> State:
    """Return the state with no change on its way and no votes."""
    return replace(_unvoted(state), phase="Idle", before=None, deadline=None)
