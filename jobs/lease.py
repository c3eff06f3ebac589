"""At most one driver: who holds the Lease, by the clocks of all who want it. Pure but for the port and the clock.

    holder      renews every 3 s; ends itself 10 s after it *sent* the last renewal that was answered
    others      take it when nobody holds it, or when they have seen no renewal for 15 s

Each counts on a clock of its own that never goes back and goes on while the machine sleeps (`clock`): clocks need not agree,
they only have to run at about the same speed. Whoever takes the Lease has waited 5 s longer than its old holder can have
lived. Writes are compare-and-swap: of two that take it at once one is refused. An answer that got lost is no harm: the record
names us, and that is read back.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

RENEW_S, LATE_S, PATIENCE_S = 3.0, 10.0, 15.0


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
                self.hindered = f"another driver holds the lease: pod {found.holder}"
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
