"""The requests of the plugin to the API server, by the official client and with the kubeconfig of whoever asks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kubernetes.client import ApiClient, ApiException, CoreV1Api, CustomObjectsApi, VersionApi
from kubernetes.config import ConfigException, list_kube_config_contexts, new_client_from_config
from kubernetes.stream import stream

from jobs.kubectl.remote import Say, answer_of, followed
from joinlib.deploy import DRIVER, EXECUTOR, GROUP, PLURAL, VERSION, driver_pod, match, selector
from joinlib.errors import NotReady, SpecError, StreamJoinError

Object = dict[str, Any]
_TIMEOUT_S = 30.0
_CURES = {404: "kubectl get sj,pods -A lists what there is"}  # by the status of what is refused
_CURES_OF_EXEC = {
    403: "it takes a Role that lets you get and create pods/exec",
    **dict.fromkeys((400, 404, 500), "kubectl streamjoin status says what becomes of the driver"),
}


class ClusterNamespace:
    """A namespace of a cluster.

    Args:
        namespace: its name; None means that of the context.
        context: of the kubeconfig; None means the current one.

    Raises:
        SpecError: There is no kubeconfig, or no such context.
    """

    def __init__(self, namespace: str | None, context: str | None) -> None:
        try:
            contexts, current = list_kube_config_contexts()
            client = new_client_from_config(context=context)
        except (ConfigException, TypeError) as error:
            raise SpecError(f"no cluster to ask: {error}; set KUBECONFIG, or --context") from error
        chosen = next((one for one in contexts if one["name"] == context), current)
        self.namespace = namespace or chosen["context"].get("namespace") or "default"
        self._connect(client)

    def _connect(self, client: ApiClient) -> None:
        self._client, self._core, self._custom = client, CoreV1Api(client), CustomObjectsApi(client)

    def get(self, name: str) -> Object:
        """Return a StreamJoin."""
        with self._asking(name):
            found: Any = self._custom.get_namespaced_custom_object(
                GROUP, VERSION, self.namespace, PLURAL, name, _request_timeout=_TIMEOUT_S
            )
            return dict(found)

    def patch(self, name: str, spec: Object) -> None:
        """Change fields of a StreamJoin's spec; None removes one."""
        with self._asking(name):
            self._custom.patch_namespaced_custom_object(
                GROUP,
                VERSION,
                self.namespace,
                PLURAL,
                name,
                {"spec": spec},
                _request_timeout=_TIMEOUT_S,
            )

    def pods(self, name: str) -> list[Object]:
        """Return the pods of a job, the driver's first."""
        with self._asking(name):
            return [
                pod
                for part in (DRIVER, EXECUTOR)
                for pod in self._plain(
                    self._core.list_namespaced_pod(
                        self.namespace,
                        label_selector=selector(match(name, part)),
                        _request_timeout=_TIMEOUT_S,
                    )
                )
            ]

    def events(self, name: str) -> list[Object]:
        """Return the events of a StreamJoin, the oldest first."""
        with self._asking(name):
            found = self._core.list_namespaced_event(
                self.namespace, field_selector=f"involvedObject.name={name}", _request_timeout=_TIMEOUT_S
            )
            return sorted(self._plain(found), key=lambda event: event.get("lastTimestamp") or "")

    def log(self, name: str, pod: str | None, tail: int, *, follow: bool = False) -> Iterator[str]:
        """Yield the lines of the driver's log, or of that of a pod."""
        with self._asking(name):
            answer: Any = self._core.read_namespaced_pod_log(
                pod or driver_pod(name),
                self.namespace,
                tail_lines=tail,
                follow=follow,
                _preload_content=False,
            )
            rest = b""
            for part in answer.stream():
                *lines, rest = (rest + part).split(b"\n")
                yield from (line.decode(errors="replace") for line in lines)
            if rest:
                yield rest.decode(errors="replace")

    def execute(self, name: str, command: Sequence[str], say: Say) -> int:
        """Run a command in a driver's container; hand on what it prints, and return its exit code."""
        with self._asking(name, _CURES_OF_EXEC):
            try:
                socket: Any = stream(
                    self._core.connect_get_namespaced_pod_exec,
                    driver_pod(name),
                    self.namespace,
                    container=DRIVER,
                    command=[*command],
                    stdin=True,
                    stdout=True,
                    stderr=True,
                    binary=True,
                    _preload_content=False,
                )
            except ApiException as error:
                raise answer_of(error) from None
            return followed(socket, say)

    def version(self) -> str:
        """Return the version of Kubernetes."""
        with self._asking(""):
            return str(VersionApi(self._client).get_code(_request_timeout=_TIMEOUT_S).git_version)

    def _plain(self, listing: Any) -> list[Object]:
        return [self._client.sanitize_for_serialization(item) for item in listing.items]

    @contextmanager
    def _asking(self, name: str, cures: Mapping[int, str] = _CURES) -> Iterator[None]:
        """Put what the API server refuses into words."""
        try:
            yield
        except ApiException as error:
            raise self._refused(name, error, cures) from error
        except OSError as error:
            raise NotReady(f"the API server cannot be reached: {error}") from error
        except Exception as error:
            if type(error).__module__.startswith(("urllib3", "websocket")):
                raise NotReady(
                    "the API server cannot be reached; check the kubeconfig and the network"
                ) from error
            raise

    def _refused(self, name: str, error: ApiException, cures: Mapping[int, str]) -> StreamJoinError:
        try:
            said = json.loads(error.body or "")["message"]
        except (TypeError, ValueError, KeyError):
            said = error.reason
        cure = f"; {cures[error.status]}" if error.status in cures else ""
        if error.status == 404:
            return SpecError(f"{self.namespace}/{name}: {said}{cure}")
        return SpecError(f"the API server refused it ({error.status}): {said}{cure}")
