"""Events go to an endpoint of OpenLineage, each in a call of its own."""

import json
from collections.abc import Iterator, Mapping, Sequence

from jobs.endpoint import Endpoint, EndpointVariables
from jobs.endpoint import endpoint as posted
from jobs.lineage.event import Json
from jobs.post import Poster, Wording
from joinlib.deploy import (
    LINEAGE_AUTHORITY,
    LINEAGE_CERTIFICATE,
    LINEAGE_HEADERS,
    LINEAGE_KEY,
    LINEAGE_URL,
)

_PATH = "api/v1/lineage"
_VARIABLES = EndpointVariables(
    LINEAGE_URL, LINEAGE_HEADERS, LINEAGE_AUTHORITY, LINEAGE_CERTIFICATE, LINEAGE_KEY, "OPENLINEAGE_API_KEY"
)

EventSender = Poster[Json]


def endpoint(environment: Mapping[str, str]) -> Endpoint | None:
    """Return the endpoint that the variables of OpenLineage's clients name; None: no events are wanted.

    Raises:
        SpecError: OPENLINEAGE_URL is no address, or headers or certificates cannot be used.
    """
    wanted = environment.get(LINEAGE_URL, "").strip()
    if not wanted or environment.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return None
    path = environment.get("OPENLINEAGE_ENDPOINT", _PATH)
    return posted(_VARIABLES, environment, path, "application/json")


def event_sender(to: Endpoint) -> EventSender:
    """Return what sends events to an endpoint."""
    return Poster(to, Wording("lineage", "events"), _bodies)


def _bodies(events: Sequence[Json]) -> Iterator[bytes]:
    return (json.dumps(event).encode() for event in events)
