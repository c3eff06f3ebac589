"""StreamJoins and pods as the API server shows them."""

import copy
from typing import Any

from joinop import names
from joinop.admission import Admitted, Pinned, document, validate
from joinop.build import JobBlueprint
from joinop.config import Config
from joinop.decide import DesiredState, ObservedState, decide
from joinop.names import Object
from joinop.scrape import Scrape

from joinlib import deploy

AT = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:01:00Z"
SPEC: Object = {
    "sql": "SELECT o.id, s.carrier FROM orders o JOIN shipments s ON o.id = s.id",
    "inputs": {
        "orders": {"schema": "id BIGINT, note STRING", "files": {"path": "/data/orders"}},
        "shipments": {"schema": "id BIGINT, carrier STRING", "files": {"path": "/data/shipments"}},
    },
    "output": {"files": {"path": "/data/out"}},
    "checkpoint": {"path": "/data/checkpoint"},
    "volumes": [{"mountPath": "/data", "claim": "shared"}],
    "executors": {"min": 2, "max": 4, "cores": 1, "memory": "2Gi"},
}


def changed(spec: Object, place: str, value: Any) -> Object:
    """The spec with one field changed, or removed by None."""
    found = copy.deepcopy(spec)
    *way, last = place.split(".")
    node = found
    for step in way:
        node = node.setdefault(step, {})
    node.pop(last, None)
    if value is not None:
        node[last] = value
    return found


def stream_join(
    name: str = "late",
    namespace: str = "shop",
    created: str = AT,
    status: Object | None = None,
    **places: Any,
) -> Object:
    """A StreamJoin; `places` are fields of the spec with __ for dots."""
    spec = SPEC
    for place, value in places.items():
        spec = changed(spec, place.replace("__", "."), value)
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "generation": 1,
        "resourceVersion": "1",
        "creationTimestamp": created,
    }
    return {
        "apiVersion": deploy.API_VERSION,
        "kind": deploy.KIND,
        "metadata": metadata,
        "spec": spec,
        **({"status": status} if status else {}),
    }


def accepted(given: Object, pinned: Pinned | None = None) -> Admitted:
    verdict = validate(document(given), pinned)
    assert isinstance(verdict, Admitted), verdict
    return verdict


def job(given: Object | None = None, **more: Any) -> JobBlueprint:
    given = given or stream_join()
    verdict = accepted(given)
    metadata = given["metadata"]
    return JobBlueprint(
        metadata["namespace"],
        metadata["name"],
        metadata["uid"],
        verdict.document,
        verdict.model,
        verdict.config_hash,
        **({"image": "streamjoin:1"} | more),
    )


def driver_pod(
    given: Object | None = None, *, ready: bool = True, config_hash: str | None = None, **status: Any
) -> Object:
    given = given or stream_join()
    name = given["metadata"]["name"]
    return {
        "metadata": {
            "name": deploy.driver_pod(name),
            "namespace": given["metadata"]["namespace"],
            "uid": "uid-pod",
            "labels": names.labels(name, "driver"),
            "annotations": {names.CONFIG_HASH: config_hash or accepted(given).config_hash},
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            **status,
        },
    }


def executor_pod(number: int, *, ready: bool = True, name: str = "late", **status: Any) -> Object:
    return {
        "metadata": {
            "name": f"{name}-exec-{number}",
            "namespace": "shop",
            "uid": f"e{number}",
            "labels": names.labels(name, "executor"),
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            **status,
        },
    }


def running(**more: Any) -> Scrape:
    """What a driver that works says."""
    body = {
        "phase": "Running",
        "message": "",
        "batch": 7,
        "rate": 1234.56,
        "lag": {"orders": 3, "shipments": 4},
        "memoryLoad": 0.4242,
        "skew": 0.1,
        "executors": {"ready": 2, "wanted": 2},
    }
    return Scrape(0.0, body | more)


def settle(observed: ObservedState, config: Config | None = None) -> tuple[ObservedState, DesiredState]:
    """Return what is observed once the desired state is written, and the desired state."""
    import dataclasses

    decision = decide(observed, config or Config())
    children = {**observed.children, **{(c["kind"], c["metadata"]["name"]): c for c in decision.apply}}
    after = {**observed.stream_join, "status": decision.status}
    return dataclasses.replace(observed, stream_join=after, children=children), decision
