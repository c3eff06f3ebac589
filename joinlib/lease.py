"""At most one active driver, or operator: the holder of a Lease, by the clocks of all contenders.

Pure except for the API and the clock.

    holder      renews every few seconds; ends itself 10 s after it *sent* the last renewal that was answered
    others      take it when nobody holds it, or when they have seen no renewal for 15 s

Each contender uses its own clock, which never goes back and keeps running while the machine sleeps (`clock`).
Clocks need not agree; they only have to run at about the same speed. A new holder has waited 5 s longer than
the old one can have lived. Writes are compare-and-swap: if two contenders take the Lease at once, one is
refused. A lost answer does no harm: the record names its writer, who reads it back.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

LATE_S, PATIENCE_S = 10.0, 15.0
TIMEOUT_S = 2.5  # per request: a renewal that hangs is given up long before the Lease is late
_GONE, _TAKEN = 404, 409


def clock() -> float:
    """Return seconds since this machine was started, including time in which it was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Conflict(Exception):
    """Another contender has written the Lease, or it exists already."""


class Gone(Conflict):
    """The Lease does not exist."""


class Unreachable(Exception):
    """No answer, or one that says nothing about the Lease: the request may have been carried out or not."""


class Lost(Exception):
    """Another contender holds the Lease, or may soon."""


@dataclass(frozen=True)
class Record:
    """The Lease as stored."""

    holder: str  # empty if nobody holds it
    renewed: str  # the writer's time, only compared for equality
    transitions: int
    version: str


class Leases(Protocol):
    """One Lease of the cluster. Both methods may raise Unreachable."""

    def read(self) -> Record | None:
        """Return the Lease, or None if it does not exist."""
        ...

    def write(self, holder: str, transitions: int, version: str | None) -> Record:
        """Replace exactly `version` of the Lease, or make the Lease if `version` is None.

        Raises:
            Conflict: It has another version, or exists already.
        """
        ...


class LeaseApi(Protocol):
    """Leases, as a resource of `kubernetes.dynamic` offers them. Answers have a method `to_dict`."""

    def get(self, *, name: str, namespace: str, _request_timeout: float) -> Any: ...

    def create(self, *, body: Any, namespace: str, _request_timeout: float) -> Any: ...

    def replace(self, *, body: Any, namespace: str, _request_timeout: float) -> Any: ...


@dataclass(frozen=True)
class ClusterLease:
    """The Lease `name` of a namespace, in the API server. `metadata` holds its labels and owner."""

    api: LeaseApi
    namespace: str
    name: str
    metadata: Mapping[str, Any]

    def read(self) -> Record | None:
        try:
            return self._ask(self.api.get, name=self.name)
        except Gone:
            return None

    def write(self, holder: str, transitions: int, version: str | None) -> Record:
        metadata = {**self.metadata, "name": self.name, "namespace": self.namespace}
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": int(PATIENCE_S),
            "leaseTransitions": transitions,
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        if version is None:
            return self._ask(self.api.create, body=lease)
        metadata["resourceVersion"] = version
        return self._ask(self.api.replace, body=lease)

    def _ask(self, verb: Callable[..., Any], **what: Any) -> Record:
        try:
            return _record(verb(namespace=self.namespace, _request_timeout=TIMEOUT_S, **what).to_dict())
        except Exception as error:
            raise refusal(error) from error


class Contender:
    """A process that wants the Lease, holds it or has lost it."""

    def __init__(self, leases: Leases, me: str, clock: Callable[[], float]) -> None:
        self.leases, self.me, self.clock = leases, me, clock
        self.record: Record | None = None  # while held: the record that we wrote last
        self.sent = float("-inf")  # when we sent it
        self.hindered = ""  # why the last attempt to take it failed
        self._seen: tuple[str, str] | None = None
        self._since = 0.0

    def take(self) -> bool:
        """Try once to take the Lease; return whether we hold it now."""
        try:
            found, now = self.leases.read(), self.clock()
            if found is not None and not self._free(found, now):
                self.hindered = f"another pod holds the lease: {found.holder}"
                return False
            self._write(found)
        except (Conflict, Unreachable) as error:
            self.hindered = f"the lease cannot be taken: {error}"
            return False
        return True

    def renew(self) -> None:
        """Renew the Lease. If nobody answers, nothing happens, and `age` grows.

        Raises:
            Lost: Another contender has it.
        """
        assert self.record is not None
        try:
            self._write(self.record)
        except Unreachable:
            return
        except Conflict:
            self._look_again(self.record)

    def release(self) -> None:
        """Release the Lease, so that others need not wait for it to expire."""
        record, self.record = self.record, None
        if record is not None:
            self.leases.write("", record.transitions, record.version)

    @property
    def age(self) -> float:
        """Seconds since we sent the last renewal that was answered."""
        return self.clock() - self.sent

    def _free(self, found: Record, now: float) -> bool:
        mark = (found.holder, found.renewed)
        if mark != self._seen:
            self._seen, self._since = mark, now
        return found.holder in ("", self.me) or now - self._since > PATIENCE_S

    def _look_again(self, ours: Record) -> None:
        """Read the Lease after a refusal: the answer to our last write may have been lost."""
        try:
            found = self.leases.read()
            if found is None or (found.holder, found.transitions) != (self.me, ours.transitions):
                raise Lost(
                    f"the lease was taken by {found.holder or 'nobody'}" if found else "the lease was deleted"
                )
            self._write(found)
        except Conflict as error:
            raise Lost("the lease was written by another process") from error
        except Unreachable:
            return

    def _write(self, over: Record | None) -> None:
        """Write our name over the record that was read."""
        sent = self.clock()
        again = over is not None and over.holder == self.me
        transitions = (over.transitions + (not again)) if over else 0
        self.record = self.leases.write(self.me, transitions, over.version if over else None)
        self.sent = sent


def refusal(error: Exception) -> Conflict | Unreachable:
    """Translate an error of the Kubernetes client about a Lease.

    Only the error's shape is known here: `status` and `body`.
    """
    status = getattr(error, "status", None)
    if status is None:
        return Unreachable(f"API server: {str(error) or type(error).__name__}")
    said = f"API server: {status} {_message(error)}"
    return Gone(said) if status == _GONE else Conflict(said) if status == _TAKEN else Unreachable(said)


def _message(error: Exception) -> str:
    try:
        return str(json.loads(getattr(error, "body", ""))["message"])
    except (ValueError, TypeError, KeyError):
        return str(getattr(error, "reason", ""))


def _record(lease: Mapping[str, Any]) -> Record:
    spec = lease.get("spec", {})
    return Record(
        spec.get("holderIdentity") or "",
        spec.get("renewTime") or "",
        spec.get("leaseTransitions") or 0,
        lease["metadata"]["resourceVersion"],
    )
