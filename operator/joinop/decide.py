"""Decide the desired state of a job from its observed state. Pure.

Law: once the desired state is written, the next decision writes nothing.

A rejected document changes nothing that runs: the ConfigMap holds the last accepted one, and the job's
objects are kept as that document wants them. Only `suspend` is always obeyed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from joinlib import deploy
from joinlib.scale import ExecutorRequest, Observed
from joinop import build, names, node_loss, status
from joinop.admission import Admitted, Rejected, permitted, pinned, validate, verdict_of
from joinop.build.settings import accepted
from joinop.classify import Change, Cost, classify
from joinop.config import Config
from joinop.degradation import Degradation
from joinop.drift import covers, stamped
from joinop.events import Event, between
from joinop.names import JobKey, Object
from joinop.scrape import Scrape
from joinop.status import JobView

Child = tuple[str, str]  # kind and name


@dataclass(frozen=True)
class ObservedState:
    """Everything that a decision depends on."""

    stream_join: Object
    children: Mapping[Child, Object]
    pods: tuple[Object, ...] = ()
    claims: Mapping[str, bool] | None = None  # which of them exist
    checkpoint_owner: JobKey | None = None
    scrape: Scrape | None = None  # None: no driver, or its last answer is too old
    monitored: bool = False
    write_error: Degradation | None = None  # why the last write failed
    unacknowledged: str = ""  # why the driver has not accepted a number of executors
    scaling_input: Observed | None = None  # load of the executors; None: no scaling period has ended
    # Nodes of pods that are not ready.
    nodes: Mapping[str, node_loss.NodeHealth] = field(default_factory=dict)
    lapsed: bool = False  # the driver's Lease has expired
    pod_problem: Degradation | None = None  # why the driver's pod is not created, or does not start
    executor_problem: Degradation | None = None  # why an executor's pod does not start
    now: float = 0.0  # seconds since 1970
    at: str = ""  # now, for the status


@dataclass(frozen=True)
class DesiredState:
    """The objects and the status that a job should have."""

    job: build.JobBlueprint | None  # None: no document was ever accepted
    apply: tuple[Object, ...]
    prune: tuple[Object, ...]
    status: Object
    events: tuple[Event, ...]
    executors: ExecutorRequest | None = None  # None: the driver has them
    remove: tuple[Object, ...] = ()  # pods to delete without waiting for their node

    @property
    def starting(self) -> bool:
        """Is a driver starting? Then the passing of time alone may change the status."""
        conditions = self.status["conditions"]
        return any(c["type"] == "Progressing" and c["status"] == "True" for c in conditions)

    def follows(self, before: Object) -> bool:
        """Has scaling decided on another number of executors? It is acted upon once the status holds it."""
        return (before.get("scaling") or {}).get("wanted") != (self.status.get("scaling") or {}).get("wanted")


def decide(observed: ObservedState, config: Config) -> DesiredState:
    """Return the desired state. Takes a few milliseconds for a document that was not validated before."""
    view, change = _viewed(observed, config)
    runs = view.runs
    resting = view.suspended or view.exhausted
    job = _job(observed, runs, config, view.image, suspended=resting) if runs is not None else None
    desired = build.children(job, monitored=observed.monitored) if job is not None else ()
    after = status.of(view, observed.at)
    remove = node_loss.removable(observed.pods, observed.nodes, lapsed=observed.lapsed, now=observed.now)
    return DesiredState(
        job=job,
        apply=tuple(
            child
            for child in map(stamped, desired)
            if not covers(observed.children.get(_child(child)), child)
        ),
        prune=tuple(_extra(observed, desired)) if job is not None else (),
        status=after,
        events=(
            *between(observed.stream_join.get("status", {}), after, change),
            *_removed(remove, observed.nodes),
        ),
        executors=status.executors_to_request(view),
        remove=tuple(remove),
    )


def view_of(observed: ObservedState, config: Config) -> JobView:
    """Return what the status is derived from."""
    return _viewed(observed, config)[0]


def _removed(pods: list[Object], nodes: Mapping[str, node_loss.NodeHealth]) -> Iterator[Event]:
    for pod in pods:
        message = (
            f"pod {pod['metadata']['name']} is deleted without waiting for its node:"
            f" {node_loss.description(pod, nodes)}"
        )
        yield Event("Warning", "Replaced", message)


def _viewed(observed: ObservedState, config: Config) -> tuple[JobView, Change]:
    held = _held(observed, config)
    verdict = permitted(verdict_of(observed.stream_join), config)
    problem, change = _refusal(observed, verdict, held)
    runs = held if problem is not None or not isinstance(verdict, Admitted) else verdict
    view = JobView(
        stream_join=observed.stream_join,
        runs=runs,
        suspended=observed.stream_join.get("spec", {}).get("suspend") is True
        or observed.checkpoint_owner is not None,
        pods=observed.pods,
        scrape=observed.scrape,
        refusal=problem or observed.write_error,
        unacknowledged=observed.unacknowledged,
        scaling_input=observed.scaling_input,
        now=observed.now,
        nodes=observed.nodes,
        pod_problem=observed.pod_problem,
        executor_problem=observed.executor_problem,
        image=""
        if runs is None
        else runs.model.spec.image or _retained_image(observed, runs) or config.image,
    )
    return view, change


def _held(observed: ObservedState, config: Config) -> Admitted | None:
    """The document that was accepted last, from the ConfigMap."""
    found = accepted(
        observed.children.get(("ConfigMap", names.spec(observed.stream_join["metadata"]["name"])))
    )
    if found is None or "metadata" not in found:
        return None
    # The allow lists may be stricter by now.
    verdict = permitted(validate(found, pinned(observed.stream_join)), config)
    return verdict if isinstance(verdict, Admitted) else None


def _refusal(
    observed: ObservedState, verdict: Admitted | Rejected, held: Admitted | None
) -> tuple[Degradation | None, Change]:
    """Return why the document is not followed, if so, and what its change would cost."""
    if isinstance(verdict, Rejected):
        return Degradation("SpecRefused", "\n".join(verdict.problems)), Change(Cost.NOTHING)
    change = classify(held, verdict, pinned(observed.stream_join))
    if observed.checkpoint_owner is not None:
        owner = (
            observed.checkpoint_owner.name
            if observed.checkpoint_owner.namespace == observed.stream_join["metadata"]["namespace"]
            else "of another namespace"
        )
        message = (
            f"spec.checkpoint.path: checkpoint {verdict.folder} belongs to StreamJoin {owner}; use another"
            " folder"
        )
        return Degradation("CheckpointTaken", message), replace(change, refused=True)
    if change.refused:
        fix = "set it back, or begin a new checkpoint: change spec.checkpoint.path, or spec.checkpoint.reset"
        return Degradation("NewCheckpointNeeded", f"{'; '.join(change.reasons)}. {fix}"), change
    missing = [claim for claim, existing in (observed.claims or {}).items() if not existing]
    if missing:
        message = (
            f"spec.volumes: PersistentVolumeClaim {', '.join(missing)} is not in this namespace; create it"
        )
        return Degradation("ClaimMissing", message), replace(change, refused=True)
    return None, change


def _job(
    observed: ObservedState, runs: Admitted, config: Config, image: str, *, suspended: bool
) -> build.JobBlueprint:
    metadata = observed.stream_join["metadata"]
    return build.JobBlueprint(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        document=runs.document,
        model=runs.model,
        config_hash=runs.config_hash,
        image=image,
        pull_policy=config.pull_policy,
        cpu_request=config.cpu_request,
        default_pods=config.pods,
        node_loss_s=config.node_loss_s,
        http_secret=config.http_secret,
        suspended=suspended,
        operator=config.namespace,
        scrapers=config.scrapers,
    )


def _retained_image(observed: ObservedState, runs: Admitted) -> str | None:
    """The image of a driver that needs no restart: it stays even when the operator's default has changed."""
    found = observed.children.get(
        ("StatefulSet", deploy.driver(observed.stream_join["metadata"]["name"])), {}
    )
    spec = found.get("spec", {})
    annotations = spec.get("template", {}).get("metadata", {}).get("annotations") or {}
    if not spec.get("replicas") or annotations.get(names.CONFIG_HASH) != runs.config_hash:
        return None
    image: str | None = (found["metadata"].get("annotations") or {}).get(names.IMAGE)
    return image


def _child(obj: Object) -> Child:
    return obj["kind"], obj["metadata"]["name"]


def _extra(observed: ObservedState, desired: tuple[Object, ...]) -> list[Object]:
    """Objects of this job that are not desired."""
    kept, uid = set(map(_child, desired)), observed.stream_join["metadata"]["uid"]
    return [obj for child, obj in observed.children.items() if child not in kept and names.owned(obj, uid)]
