"""`kubectl streamjoin report`: one archive for people who help, of what the API server and the logs say of a job.

streamjoin.yaml   spec and status, which has the plan and the decisions of scaling
pods.yaml         phases, conditions and ends of its pods, without their specs
events.txt        its events
POD.log           the last lines of each pod's log, without what may be of rows
versions.txt      Kubernetes and this program
"""

from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path

import yaml

from jobs.kubectl.cluster import ClusterNamespace, Object
from jobs.report import redact
from jobs.report.archive import tried, write

_LINES = 1000


def report(cluster: ClusterNamespace, name: str, output: Path | None) -> Path:
    """Write a report of a job; return its file."""
    return write(texts(cluster, name), name, output)


def texts(cluster: ClusterNamespace, name: str) -> dict[str, str]:
    """Return the parts of a report, by their names."""
    thing, pods = cluster.get(name), cluster.pods(name)
    gone = redact.of(thing["spec"], {}, files=False)
    told: dict[str, Callable[[], str]] = {
        "streamjoin.yaml": lambda: _yaml(
            _bare(thing) | {"spec": thing["spec"], "status": thing.get("status")}, gone
        ),
        "pods.yaml": lambda: _yaml([_bare(pod) | {"status": pod.get("status")} for pod in pods], gone),
        "events.txt": lambda: "".join(
            f"{e.get('lastTimestamp')} {e.get('type')} {e.get('reason')}: {e.get('message')}\n"
            for e in cluster.events(name)
        ),
        "versions.txt": lambda: (
            f"kubernetes {cluster.version()}\nstreamjoin {metadata.version('streamjoin')}\n"
        ),
    }
    parts = {part: gone.text(tried(make)) for part, make in told.items()}
    logs = {pod["metadata"]["name"]: partial(_log, cluster, name, pod["metadata"]["name"]) for pod in pods}
    return {**parts, **{f"{pod}.log": gone.log(tried(make)) for pod, make in logs.items()}}


def _yaml(document: object, gone: redact.Redaction) -> str:
    return yaml.safe_dump(gone.document(document), sort_keys=False)


def _bare(thing: Object) -> Object:
    """Return what identifies an object; annotations may repeat anything."""
    known = ("name", "namespace", "uid", "generation", "creationTimestamp", "labels")
    return {"metadata": {part: thing["metadata"][part] for part in known if part in thing["metadata"]}}


def _log(cluster: ClusterNamespace, name: str, pod: str) -> str:
    return "\n".join(cluster.log(name, pod, _LINES)) + "\n"
