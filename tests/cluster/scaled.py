"""What a test sees of a job that the operator scales: its status, and the decisions in it."""

import json
from collections.abc import Iterable
from pathlib import Path

from tests.cluster.kube import Kube, Object

CHANGES = "ScaleOut", "ScaleIn", "RolledBack"


def scraped(space: Kube, name: str, folder: Path) -> None:
    """Tells Prometheus where the driver is once it has an address, with the labels that a PodMonitor would set."""
    pod = f"{name}-driver-0"
    address = space.until("the driver has an address", lambda: space.get("pod", pod)["status"].get("podIP"))
    labels = {"namespace": space.namespace, "streamjoin": name}
    aside = folder / ".targets"
    aside.write_text(json.dumps([{"targets": [f"{address}:8080"], "labels": labels}]))
    aside.rename(folder / "targets.json")


def scaling_of(space: Kube, name: str) -> Object:
    """What its status says of scaling."""
    found: Object = space.get("sj", name)["status"].get("scaling", {})
    return found


def decisions_in(seen: Iterable[Object]) -> list[Object]:
    """The decisions of statuses that were seen one after another, each once, in their order."""
    return [d for _, d in sorted({d["at"]: d for each in seen for d in each.get("decisions", ())}.items())]


def changes_in(seen: Iterable[Object]) -> list[Object]:
    """The decisions that changed something."""
    return [d for d in decisions_in(seen) if d["verdict"] in CHANGES]
