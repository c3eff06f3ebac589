"""kubectl and helm, as an administrator would use them: what the cluster says, as plain values.

kube.apply(document) ─► kube.until("it runs", lambda: kube.get("sj", "orders")["status"]["phase"] == "Running")
"""

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from tests.patience import HUNG_S

Object = dict[str, Any]
_PODS_HUNG_S = 3 * HUNG_S  # several may start one after the other
_TROUBLE = AssertionError, subprocess.TimeoutExpired  # what a kubectl can end with


@dataclass(frozen=True)
class Kube:
    """A namespace of the cluster that KUBECONFIG names."""

    namespace: str

    def run(
        self, *arguments: str, stdin: str | None = None, check: bool = True, timeout: float = HUNG_S
    ) -> str:
        """kubectl in the namespace; what it prints. Fails with what it complains about."""
        done = subprocess.run(
            ["kubectl", "-n", self.namespace, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert not check or done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout if check else done.stdout + done.stderr

    def raw(self, *arguments: str) -> bytes:
        """The same, with bytes as they come."""
        done = subprocess.run(
            ["kubectl", "-n", self.namespace, *arguments], capture_output=True, timeout=HUNG_S, check=False
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr.decode()}"
        return done.stdout

    def apply(self, *documents: Object, check: bool = True) -> str:
        return self.run("apply", "-f", "-", stdin=yaml.safe_dump_all(documents), check=check)

    def get(self, kind: str, name: str) -> Object:
        """Empty if there is none."""
        text = self.run("get", kind, name, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text.strip() else {}

    def every(self, kind: str, selector: str = "") -> list[Object]:
        return json.loads(self.run("get", kind, "-l", selector, "-o", "json"))["items"]

    def names(self, kind: str, selector: str = "") -> list[str]:
        return sorted(o["metadata"]["name"] for o in self.every(kind, selector))

    def patch(self, kind: str, name: str, change: Object) -> None:
        self.run("patch", kind, name, "--type", "merge", "-p", json.dumps(change))

    def delete(self, kind: str, name: str, *options: str) -> None:
        self.run("delete", kind, name, "--ignore-not-found", *options)

    def exec(self, pod: str, *command: str, check: bool = True) -> str:
        return self.run("exec", pod, "--", *command, check=check, timeout=HUNG_S)

    def condition(self, name: str, kind: str) -> Object:
        """A condition of a StreamJoin; empty if it has none."""
        conditions = self.get("streamjoin", name).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {})

    def until(self, what: str, true: Callable[[], Any]) -> Any:
        """Waits, and returns what `true` returned; on failure says what the cluster looks like.

        A kubectl that fails, or gives no answer in time, means: not yet.
        """
        end = time.monotonic() + _PODS_HUNG_S
        while True:
            with contextlib.suppress(KeyError, IndexError, *_TROUBLE):
                if found := true():
                    return found
            if time.monotonic() > end:
                raise AssertionError(f"not within {_PODS_HUNG_S:.0f} s: {what}\n{self.picture()}")
            time.sleep(0.5)

    def picture(self) -> str:
        """What one would look at: objects, events, and the drivers' last words."""
        status = 'jsonpath={range .items[*]}{.metadata.name}{.status}{"\\n"}{end}'
        parts = [
            self._look("get", "sj,sts,pods,pvc,lease", "-o", "wide"),
            self._look("get", "sj", "-o", status),
            self._look("get", "events", "--sort-by=.lastTimestamp")[-3000:],
        ]
        drivers: list[str] = []
        with contextlib.suppress(*_TROUBLE):
            drivers = self.names("pods", "app.kubernetes.io/component=driver")
        for pod in drivers:
            parts.append(f"--- {pod}\n{self._look('logs', pod, '--tail=40')}")
            parts.append(f"--- {pod}, before\n{self._look('logs', pod, '--previous', '--tail=20')}")
        return "\n".join(parts)

    def _look(self, *arguments: str) -> str:
        """What kubectl prints, or why it does not."""
        try:
            return self.run(*arguments, check=False, timeout=20)
        except subprocess.TimeoutExpired as late:
            return str(late)


def helm(*arguments: str) -> str:
    """helm; what it prints."""
    done = subprocess.run(["helm", *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def reachable() -> str | None:
    """The node's address, if this machine is the node: pods and what is started here then reach each other."""
    own = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True).stdout.split()
    nodes = Kube("default").every("nodes")  # some of them may be played
    addresses = [a["address"] for node in nodes for a in node["status"].get("addresses", ())]
    return next((str(a) for a in addresses if a in own), None)


def documents(text: str) -> Iterable[Object]:
    """YAML documents, empty ones left out."""
    return [d for d in yaml.safe_load_all(text) if d]
