"""A question about a job, which a process in its driver's container answers: its files and logins are there."""

from typing import Literal

from jobs.kubectl.cluster import ClusterNamespace
from jobs.kubectl.remote import Say
from joinlib.deploy import ASK, SPEC_FILE, SPEC_FOLDER
from joinlib.errors import SpecError

Question = Literal["why", "whynot"]  # commands of `streamjoin`


def ask(cluster: ClusterNamespace, name: str, question: Question, condition: str, say: Say) -> int:
    """Hand on the answer, line by line; return its exit code.

    Raises:
        SpecError: The job is not there or suspended, or the API server refuses.
        NotReady: The answer did not come, or not all of it.
    """
    if cluster.get(name)["spec"].get("suspend"):
        raise SpecError(
            f"{name} is suspended, so it has no driver that could answer: kubectl streamjoin resume {name} starts it; or"
            f" ask where its volumes are mounted, by `streamjoin {question}`"
        )
    return cluster.execute(name, [*ASK, question, f"{SPEC_FOLDER}/{SPEC_FILE}", condition], say)
