"""At most one at work, of drivers or of operators: who holds the Lease, by the clocks of all who want it.

Pure but for the port and the clock.

    holder      renews every few seconds; ends itself 10 s after it *sent* the last renewal that was answered
    others      take it when nobody holds it, or when they have seen no renewal for 15 s

Each counts on a clock of its own that never goes back and goes on while the machine sleeps (`clock`): clocks need not agree,
they only have to run at about the same speed. Whoever takes the Lease has waited 5 s longer than its old holder can have
lived. Writes are compare-and-swap: of two that take it at once one is refused. An answer that got lost is no harm: the record
names us, and that is read back.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

LATE_S, PATIENCE_S = 10.0, 15.0
_GONE, _TAKEN = 404, 409


def clock() -> float:
    """Seconds since this machine was started, those among them in which it, or its virtual machine, was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Conflict(Exception):
    """Somebody else wrote, or the Lease has gone or is there already."""


class Unreachable(Exception):
    """No answer, or one that says nothing: what was asked may have happened or not."""


class Lost(Exception):
    """Somebody else holds the Lease, or may soon."""


@dataclass(frozen=True)
class Record:
    """The Lease as stored."""

    holder: str  # "": nobody
    renewed: str  # as its writer wrote it; only ever compared
    transitions: int
    version: str


class Leases(Protocol):
    """One Lease of the cluster. Both may raise Unreachable."""

    def read(self) -> Record | None:
        """None: there is none."""
        ...

    def write(self, holder: str, transitions: int, version: str | None) -> Record:
        """Replaces exactly `version`, or makes the Lease if that is None; else Conflict."""
        ...


class Server(Protocol):
    """The API server."""

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Status and JSON; Unreachable if there is no answer."""
        ...


@dataclass(frozen=True)
class ClusterLease:
    """The Lease `name` of a namespace; `metadata`: its labels and owner."""

    server: Server
    namespace: str
    name: str
    metadata: Mapping[str, Any]

    def read(self) -> Record | None:
        status, lease = self.server.call("GET", f"{self._all}/{self.name}")
        if status == _GONE:
            return None
        return _record(_checked(status, lease))

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
            answer = self.server.call("POST", self._all, lease)
        else:
            metadata["resourceVersion"] = version
            answer = self.server.call("PUT", f"{self._all}/{self.name}", lease)
        return _record(_checked(*answer))

    @property
    def _all(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"


class Contender:
    """One that wants the Lease, has it or has lost it."""

    def __init__(self, leases: Leases, me: str, clock: Callable[[], float]) -> None:
        self.leases, self.me, self.clock = leases, me, clock
        self.record: Record | None = None  # while held: what we wrote last
        self.sent = float("-inf")  # when we sent it
        self.hindered = ""  # why the last attempt to take it failed
        self._seen: tuple[str, str] | None = None
        self._since = 0.0

    def take(self) -> bool:
        """One attempt; true when the Lease is ours from now on."""
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
        """Lost if it is no longer ours; nothing if nobody answers, which `age` tells."""
        assert self.record is not None
        try:
            self._write(self.record)
        except Unreachable:
            return
        except Conflict:
            self._look_again(self.record)

    def release(self) -> None:
        """Whoever waits need not wait longer."""
        record, self.record = self.record, None
        if record is not None:
            self.leases.write("", record.transitions, record.version)

    @property
    def age(self) -> float:
        """Seconds since the last renewal that was answered was sent."""
        return self.clock() - self.sent

    def _free(self, found: Record, now: float) -> bool:
        mark = (found.holder, found.renewed)
        if mark != self._seen:
            self._seen, self._since = mark, now
        return found.holder in ("", self.me) or now - self._since > PATIENCE_S

    def _look_again(self, ours: Record) -> None:
        """After a refusal: the answer to our last write may have been lost."""
        try:
            found = self.leases.read()
            if found is None or (found.holder, found.transitions) != (self.me, ours.transitions):
                raise Lost(
                    f"the lease was taken by {found.holder or 'nobody' if found else 'nobody: it is gone'}"
                )
            self._write(found)
        except Conflict as error:
            raise Lost("the lease was written by somebody else") from error
        except Unreachable:
            return

    def _write(self, over: Record | None) -> None:
        """Ours, over what was read."""
        sent = self.clock()
        again = over is not None and over.holder == self.me
        transitions = (over.transitions + (not again)) if over else 0
        self.record = self.leases.write(self.me, transitions, over.version if over else None)
        self.sent = sent


def _checked(status: int, answer: dict[str, Any]) -> dict[str, Any]:
    if status in (_GONE, _TAKEN):
        raise Conflict(answer.get("message", ""))
    return answered(status, answer)


def answered(status: int, answer: dict[str, Any]) -> dict[str, Any]:
    """The API server's answer; Unreachable if it is a refusal."""
    if status >= 300:
        raise Unreachable(f"API server: {status} {answer.get('message', '')}")
    return answer


def _record(lease: Mapping[str, Any]) -> Record:
    spec = lease.get("spec", {})
    return Record(
        spec.get("holderIdentity") or "",
        spec.get("renewTime") or "",
        spec.get("leaseTransitions") or 0,
        lease["metadata"]["resourceVersion"],
    )
