"""Allow lists: what authors of StreamJoins may name.

A StreamJoin runs pods on behalf of its author: they mount its volumes, run its image, and send the contents
of its Secrets to the hosts that it names. Where authors may not do that themselves, only these lists hold
them back. An entry is a name, or a pattern in which `*` stands for any characters.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from joinlib.deploy import LINEAGE_URL, TRACES_URL
from joinlib.spec.kafka import KafkaConnection
from joinlib.spec.model import Spec, Volume
from joinlib.spec.postgres import PostgresConnection

ANY = ("*",)


@dataclass(frozen=True)
class Allow:
    """The lists of the chart's value `jobs.allow`."""

    volumes: tuple[str, ...] = ("claim", "secret")  # kinds; without hostPath a job sees nothing of its node
    images: tuple[str, ...] = ()  # besides the default image in any version
    secrets: tuple[str, ...] = ANY  # that `env` and `volumes` may name
    hosts: tuple[str, ...] = ANY  # of databases and brokers
    functions: tuple[str, ...] = ()  # modules in Python, whose code runs in the pods

    @staticmethod
    def of(values: dict[str, Any]) -> "Allow":
        """Read the lists from the chart's value; a missing list keeps its default."""
        return Allow(**{name: tuple(map(str, entries)) for name, entries in values.items()})

    def problems(self, spec: Spec, default_image: str) -> Iterator[str]:
        """Yield everything that the spec names and may not."""
        for number, volume in enumerate(spec.volumes):
            if (kind := _kind(volume)) not in self.volumes:
                yield (
                    f"spec.volumes.{number}.{kind}: volumes of this kind are not allowed here"
                    f" ({_listed(self.volumes)} are); use a claim, or ask your administrator for"
                    " jobs.allow.volumes"
                )
        yield from self._image(spec.image, default_image)
        for place, secret in _secrets(spec):
            yield from _unlisted(place, "Secret", secret, self.secrets, "secrets")
        for name, function in spec.functions.items():
            module = function.python.partition(":")[0]
            yield from _unlisted(
                f"spec.functions.{name}.python", "module", module, self.functions, "functions"
            )
        if self.hosts != ANY:
            yield from self._hosts(spec)

    def _image(self, image: str | None, default: str) -> Iterator[str]:
        """The default image is compared, not matched: behind its name and a colon there may be another
        registry's port.
        """
        own = _repository(default)
        if image is not None and _repository(image) != own and not _matches(image, self.images):
            yield _refusal("spec.image", "image", image, (f"{own}:*", *self.images), "images")

    def _hosts(self, spec: Spec) -> Iterator[str]:
        for place, host in _dialled(spec):
            if host is None:
                yield (
                    f"spec.{place}: only listed hosts are allowed here, and this one is hidden in a"
                    " variable; write host, database and user, with passwordEnv or passwordFile"
                )
            else:
                yield from _unlisted(f"spec.{place}", "host", host, self.hosts, "hosts")
        for variable in sorted(spec.env.keys() & {LINEAGE_URL, TRACES_URL}):
            yield (
                f"spec.env.{variable}: only listed hosts are allowed here, and this one is hidden in"
                " a Secret; remove it, or ask your administrator for jobs.allow.hosts"
            )


def _unlisted(place: str, what: str, name: str, allowed: tuple[str, ...], value: str) -> Iterator[str]:
    if not _matches(name, allowed):
        yield _refusal(place, what, name, allowed, value)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _refusal(place: str, what: str, name: str, allowed: tuple[str, ...], value: str) -> str:
    return (
        f"{place}: {what} {name} is not allowed here ({_listed(allowed)}); use another, or ask your"
        f" administrator for jobs.allow.{value}"
    )


def _listed(allowed: tuple[str, ...]) -> str:
    return ", ".join(allowed) or "none"


def _kind(volume: Volume) -> str:
    return "claim" if volume.claim else "secret" if volume.secret else "hostPath"


def _repository(image: str) -> str:
    """The image without its tag and digest. The port of a registry is not a tag."""
    name = image.partition("@")[0]
    head, _, last = name.rpartition("/")
    return "/".join(filter(None, (head, last.partition(":")[0])))


def _secrets(spec: Spec) -> Iterator[tuple[str, str]]:
    for variable, entry in spec.env.items():
        yield f"spec.env.{variable}", entry.secret
    for number, volume in enumerate(spec.volumes):
        if volume.secret is not None:
            yield f"spec.volumes.{number}.secret", volume.secret


def _dialled(spec: Spec) -> Iterator[tuple[str, str | None]]:
    """Yield the hosts that the job's pods connect to; None where the host is hidden in a variable."""
    for name, given in spec.inputs.items():
        if given.postgres is not None:
            yield from _databases(f"inputs.{name}.postgres", given.postgres)
        if given.kafka is not None:
            yield from _brokers(f"inputs.{name}.kafka", given.kafka)
            if given.kafka.registry is not None:
                yield f"inputs.{name}.kafka.registry.url", given.kafka.registry.host
    if spec.output.kafka is not None:
        yield from _brokers("output.kafka", spec.output.kafka)
        if spec.output.kafka.registry is not None:
            yield "output.kafka.registry.url", spec.output.kafka.registry.host
    if spec.output.postgres is not None:
        yield from _databases("output.postgres", spec.output.postgres)


def _databases(place: str, connection: PostgresConnection) -> Iterator[tuple[str, str | None]]:
    hosts = connection.host
    for host in (None,) if hosts is None else hosts.split(","):  # libpq tries one after the other
        yield f"{place}.{'uriEnv' if host is None else 'host'}", host


def _brokers(place: str, connection: KafkaConnection) -> Iterator[tuple[str, str]]:
    for server in connection.bootstrap_servers.split(","):
        yield f"{place}.bootstrapServers", server.strip().rpartition(":")[0]
