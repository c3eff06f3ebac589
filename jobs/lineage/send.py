"""Events go to an endpoint of OpenLineage, each in a call of its own."""

import json
from collections.abc import Iterator, Mapping, Sequence

from jobs.lineage.event import Json
from jobs.post import Endpoint, Poster, Wording
from jobs.post import endpoint as posted
from joinlib.deploy import LINEAGE_URL

_PATH = "api/v1/lineage"
_KEY = "OPENLINEAGE_API_KEY"

EventSender = Poster[Json]


def endpoint(environment: Mapping[str, str]) -> Endpoint | None:
    """Return the endpoint that the variables of OpenLineage's clients name; None: no events are wanted.

    Raises:
        SpecError: OPENLINEAGE_URL is no address.
    """
    url = environment.get(LINEAGE_URL, "").strip()
    if not url or environment.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return None
    headers = {"Content-Type": "application/json"}
    if key := environment.get(_KEY, "").strip():
        headers["Authorization"] = f"Bearer {key}"
    return posted(LINEAGE_URL, url, environment.get("OPENLINEAGE_ENDPOINT", _PATH), _KEY, headers)


def event_sender(to: Endpoint) -> EventSender:
    """Return what sends events to an endpoint."""
    return Poster(to, Wording("lineage", "events"), _bodies)


def _bodies(events: Sequence[Json]) -> Iterator[bytes]:
    return (json.dumps(event).encode() for event in events)
