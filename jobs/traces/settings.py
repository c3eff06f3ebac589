"""Where traces go, by the environment variables that OpenTelemetry's own programs read.

OTEL_EXPORTER_OTLP_ENDPOINT   the server; without it nothing is sent
OTEL_EXPORTER_OTLP_HEADERS    NAME=VALUE,NAME=VALUE with percent signs as in addresses: logins
OTEL_EXPORTER_OTLP_CERTIFICATE   who signed the server's certificate: a file, or what is in it
OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE, _CLIENT_KEY   files of the client's own
OTEL_EXPORTER_OTLP_PROTOCOL   http/protobuf, the only one here
OTEL_TRACES_SAMPLER, _ARG     how many batches are told
OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES   who tells of them
OTEL_SDK_DISABLED             true: nothing is sent
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata

from jobs.endpoint import Endpoint, EndpointVariables, endpoint, pairs
from joinlib.deploy import (
    TRACES_AUTHORITY,
    TRACES_CERTIFICATE,
    TRACES_HEADERS,
    TRACES_KEY,
    TRACES_URL,
    Variable,
)
from joinlib.errors import SpecError

VERSION = metadata.version("streamjoin")
_PATH = "v1/traces"
_PROTOCOL = "http/protobuf"
_VARIABLES = EndpointVariables(TRACES_URL, TRACES_HEADERS, TRACES_AUTHORITY, TRACES_CERTIFICATE, TRACES_KEY)
_SAMPLERS = ("always_on", "always_off", "traceidratio")


@dataclass(frozen=True)
class TraceSettings:
    """Where traces go, how many, and whose they are."""

    to: Endpoint
    ratio: float  # of the batches, more than 0, at most 1
    resource: Mapping[str, str]


def settings(job: str, environment: Mapping[str, str]) -> TraceSettings | None:
    """Return what the environment says of traces; None: none are wanted.

    Raises:
        SpecError: A variable cannot be understood.
    """
    wanted = environment.get(TRACES_URL, "").strip()
    if not wanted or environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    protocol = environment.get("OTEL_EXPORTER_OTLP_PROTOCOL", "").strip() or _PROTOCOL
    if protocol != _PROTOCOL:
        raise SpecError(
            f"environment: OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}, and traces are sent by {_PROTOCOL} alone; write"
            f" that, and in {TRACES_URL} the port that takes it, usually 4318"
        )
    to = endpoint(_VARIABLES, environment, _PATH, "application/x-protobuf")
    share = ratio(environment)
    return TraceSettings(to, share, _resource(job, environment)) if share else None


def ratio(environment: Mapping[str, str]) -> float:
    """Return the share of batches to tell of: 0 to 1. Batches have no parents: what samplers say of those is idle.

    Raises:
        SpecError: The sampler is not known, or its argument is no share.
    """
    given = environment.get("OTEL_TRACES_SAMPLER", "").strip() or "always_on"
    sampler = given.removeprefix("parentbased_")
    if sampler not in _SAMPLERS:
        raise SpecError(f"environment: OTEL_TRACES_SAMPLER is {given!r}; write one of {', '.join(_SAMPLERS)}")
    if sampler != "traceidratio":
        return float(sampler == "always_on")
    share = environment.get("OTEL_TRACES_SAMPLER_ARG", "").strip() or "1"
    try:
        found = float(share)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise SpecError(f"environment: OTEL_TRACES_SAMPLER_ARG is {share!r}; write a number from 0 to 1")
    return found


def _resource(job: str, environment: Mapping[str, str]) -> dict[str, str]:
    known = {
        "service.name": job,
        "service.version": VERSION,
        "k8s.namespace.name": environment.get(Variable.POD_NAMESPACE, ""),
        "k8s.pod.name": environment.get(Variable.POD_NAME, ""),
    }
    named = {"service.name": environment.get("OTEL_SERVICE_NAME", "").strip()}
    found = [known, pairs("OTEL_RESOURCE_ATTRIBUTES", environment), named]
    return {name: value for one in found for name, value in one.items() if value}
