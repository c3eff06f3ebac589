"""What is to be done for a job? Pure: what was seen goes in, what is to be written comes out.

Law: once done, nothing is left to do.

A refused document changes nothing of what runs: the ConfigMap holds the last accepted one, and its objects are kept as
they should be. Only `suspend` is always obeyed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from joinlib.scale import Observed
from joinop import build, lost, names, status
from joinop.build.settings import accepted
from joinop.classify import Change, Cost, classify
from joinop.compare import covers, stamped
from joinop.config import Config
from joinop.events import Event, between
from joinop.judge import Accepted, Refused, document, judge
from joinop.names import Key, Object
from joinop.problem import Problem
from joinop.reading import Reading
from joinop.status import View, pinned

Child = tuple[str, str]  # kind and name


@dataclass(frozen=True)
class Seen:
    """Everything that a decision may depend on."""

    thing: Object
    children: Mapping[Child, Object]
    pods: tuple[Object, ...] = ()
    claims: Mapping[str, bool] | None = None  # which are there
    rival: Key | None = None
    reading: Reading | None = None  # None: nobody to ask, or the answer is too old
    monitored: bool = False
    trouble: Problem | None = None  # what could not be written
    unheard: str = ""  # why the driver did not take a number of executors
    observed: Observed | None = None  # what executors hold, where a period of scaling is over
    nodes: Mapping[str, lost.Node] = field(default_factory=dict)  # those of pods that do not work
    lapsed: bool = False  # nobody has renewed the driver's Lease for as long as it lasts
    unmade: Problem | None = None  # why there is no driver's pod, or why it does not start
    now: float = 0.0  # seconds since 1970
    at: str = ""  # now, for the status


@dataclass(frozen=True)
class Decision:
    """What is to be written."""

    job: build.Job | None  # None: nothing was ever accepted
    apply: tuple[Object, ...]
    prune: tuple[Object, ...]
    status: Object
    events: tuple[Event, ...]
    executors: int | None = None  # to be asked of the driver
    remove: tuple[Object, ...] = ()  # pods that go without a word of their node

    @property
    def starting(self) -> bool:
        """Is a driver awaited? Then time alone may change what is to be said."""
        conditions = self.status["conditions"]
        return any(c["type"] == "Progressing" and c["status"] == "True" for c in conditions)

    def follows(self, before: Object) -> bool:
        """Has scaling changed its mind? Then there is something to do, once it is written down."""
        return (before.get("scaling") or {}).get("wanted") != (self.status.get("scaling") or {}).get("wanted")


def decide(seen: Seen, config: Config) -> Decision:
    """The decision. It costs a few milliseconds for a document not seen before."""
    view, change = _viewed(seen, config)
    runs = view.runs
    resting = view.suspended or view.exhausted
    job = _job(seen, runs, config, view.image, suspended=resting) if runs is not None else None
    wanted = build.children(job, monitored=seen.monitored) if job is not None else ()
    after = status.of(view, seen.at)
    remove = lost.removable(seen.pods, seen.nodes, lapsed=seen.lapsed, now=seen.now)
    return Decision(
        job=job,
        apply=tuple(
            child for child in map(stamped, wanted) if not covers(seen.children.get(_child(child)), child)
        ),
        prune=tuple(_extra(seen, wanted)) if job is not None else (),
        status=after,
        events=(*between(seen.thing.get("status", {}), after, change), *_removed(remove, seen.nodes)),
        executors=status.to_ask(view),
        remove=tuple(remove),
    )


def view_of(seen: Seen, config: Config) -> View:
    """What a status is made of."""
    return _viewed(seen, config)[0]


def _removed(pods: list[Object], nodes: Mapping[str, lost.Node]) -> Iterator[Event]:
    for pod in pods:
        message = (
            f"pod {pod['metadata']['name']} is removed without a word of its node: {lost.words(pod, nodes)}"
        )
        yield Event("Warning", "Replaced", message)


def _viewed(seen: Seen, config: Config) -> tuple[View, Change]:
    held = _held(seen, config)
    verdict = _allowed(judge(document(seen.thing)), config)
    problem, change = _refusal(seen, verdict, held)
    runs = held if problem is not None or not isinstance(verdict, Accepted) else verdict
    view = View(
        thing=seen.thing,
        runs=runs,
        suspended=seen.thing.get("spec", {}).get("suspend") is True or seen.rival is not None,
        pods=seen.pods,
        reading=seen.reading,
        refusal=problem or seen.trouble,
        unheard=seen.unheard,
        observed=seen.observed,
        now=seen.now,
        nodes=seen.nodes,
        unmade=seen.unmade,
        image="" if runs is None else runs.model.spec.image or _kept_image(seen, runs) or config.image,
    )
    return view, change


def _held(seen: Seen, config: Config) -> Accepted | None:
    """The document that was accepted last."""
    found = accepted(seen.children.get(("ConfigMap", names.spec(seen.thing["metadata"]["name"]))))
    if found is None or "metadata" not in found:
        return None
    verdict = _allowed(judge(found), config)  # the lists may be stricter now
    return verdict if isinstance(verdict, Accepted) else None


def _allowed(verdict: Accepted | Refused, config: Config) -> Accepted | Refused:
    """Refuses what this cluster lets no author name."""
    if isinstance(verdict, Refused):
        return verdict
    problems = tuple(config.allow.problems(verdict.model.spec, config.image))
    return Refused(problems) if problems else verdict


def _refusal(seen: Seen, verdict: Accepted | Refused, held: Accepted | None) -> tuple[Problem | None, Change]:
    """Why the document is not followed, and what its change would cost."""
    if isinstance(verdict, Refused):
        return Problem("SpecRefused", "\n".join(verdict.problems)), Change(Cost.NOTHING)
    change = classify(held, verdict, pinned(seen.thing))
    if seen.rival is not None:
        owner = (
            seen.rival.name
            if seen.rival.namespace == seen.thing["metadata"]["namespace"]
            else "of another namespace"
        )
        message = f"spec.checkpoint.path: checkpoint {verdict.folder} belongs to StreamJoin {owner}; use another folder"
        return Problem("CheckpointTaken", message), replace(change, refused=True)
    if change.refused:
        fix = "set it back, or begin a new checkpoint: change spec.checkpoint.path, or spec.checkpoint.reset"
        return Problem("NewCheckpointNeeded", f"{'; '.join(change.reasons)}. {fix}"), change
    missing = [claim for claim, there in (seen.claims or {}).items() if not there]
    if missing:
        message = (
            f"spec.volumes: PersistentVolumeClaim {', '.join(missing)} is not in this namespace; create it"
        )
        return Problem("ClaimMissing", message), replace(change, refused=True)
    return None, change


def _job(seen: Seen, runs: Accepted, config: Config, image: str, *, suspended: bool) -> build.Job:
    metadata = seen.thing["metadata"]
    return build.Job(
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


def _kept_image(seen: Seen, runs: Accepted) -> str | None:
    """A driver that needs no restart keeps its image, also when the operator's default is another by now."""
    found = seen.children.get(("StatefulSet", names.driver(seen.thing["metadata"]["name"])), {})
    spec = found.get("spec", {})
    annotations = spec.get("template", {}).get("metadata", {}).get("annotations") or {}
    if not spec.get("replicas") or annotations.get(names.CONFIG_HASH) != runs.config_hash:
        return None
    image: str | None = (found["metadata"].get("annotations") or {}).get(names.IMAGE)
    return image


def _child(thing: Object) -> Child:
    return thing["kind"], thing["metadata"]["name"]


def _extra(seen: Seen, wanted: tuple[Object, ...]) -> list[Object]:
    """Objects of this job that it should not have."""
    kept, uid = set(map(_child, wanted)), seen.thing["metadata"]["uid"]
    return [thing for child, thing in seen.children.items() if child not in kept and names.owned(thing, uid)]
