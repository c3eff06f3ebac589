"""How many executors should a job have? Two-phase scaling (2PS) of
BiStream, pure and independent of Kubernetes.

    requesting   what does each executor hold? ─► τ ─► Δ (Equation 7) ─► wanted for the state ┐
                 what waits, what comes, how fast is it read? ─► wanted for the lag ──────────┴► the larger
                 ─► limits ─► votes
    scaling      wanted is written down ─► pods come or go ─► settled, or rolled back to what has come

The paper's 2PS adds and removes processing units of a subgroup; ours adds and removes executors, which host
units: while a job runs it has the same number of units, and they move to where there is room.

Laws: the answer is between min and max; more load never means fewer executors; a missing metric is never
zero, and without all of them nothing is decided; in a steady state the decision is to stay; all that must be
remembered is a value (`State`) that the caller keeps, so that another caller can continue in the same phase.
"""

from joinlib.scale.load import Load, Observed, fitting, tau
from joinlib.scale.policy import Policy
from joinlib.scale.request import ExecutorRequest
from joinlib.scale.state import Decision, State
from joinlib.scale.step import due, step

__all__ = [
    "Decision",
    "ExecutorRequest",
    "Load",
    "Observed",
    "Policy",
    "State",
    "due",
    "fitting",
    "step",
    "tau",
]
