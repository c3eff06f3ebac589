"""Asks a registry for schemas, and keeps them: the effects of reading what has its schema there.

    FOLDER/ID.json      the schema of an id, after those that it refers to; ids mean the same forever
    FOLDER/reader.json  the newest schema of the subject as the job began: the reader's
    FOLDER/key.json     the same, of keys

Laws: what a batch was read with is kept in the checkpoint, so that it is read alike when it runs again, also
without the registry; an id is asked for once. A password goes into the request and nowhere else, and a redirect
is not followed.
"""

import base64
import json
import os
import ssl
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

import pyarrow as pa

from joinlib import secret
from joinlib.errors import NotReady, SpecError
from joinlib.files import whole
from joinlib.retry import backoff, patiently
from joinlib.spec.kafka import SchemaRegistry

PATIENCE_S = 7.0
_ASK_S = 5.0
_MOST_BYTES = 4 << 20  # of an answer
_MOST_REFERENCES = 256
_MOST_REASON, _LONGEST_REASON = 1 << 16, 400  # bytes that are read of it, characters that are told
_PASSING = (408, 429, 500, 502, 503, 504)
VALUES, KEYS = "reader", "key"  # of what the reader's schema is
_METADATA = {VALUES: b"avro.reader", KEYS: b"avro.key"}  # of declared columns: that schema, as a list in JSON


class Registered(NamedTuple):
    """A schema. `name`: by which the one that refers to it does; empty if none does."""

    name: str
    text: str


class Unknown(Exception):
    """The registry has no such schema; the text says which."""


class Refusal(SpecError):
    """The registry refuses a schema that is to be registered."""


class _Stay(HTTPRedirectHandler):
    """Follows no redirect: it could lead a password elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def kept(folder: Path, name: int | str = VALUES) -> tuple[str, ...] | None:
    """Return the schemas that were kept of an id, or as the reader's; None if none were."""
    try:
        return tuple(json.loads((folder / f"{name}.json").read_bytes()))
    except FileNotFoundError:
        return None


def keep(folder: Path, texts: Sequence[str], name: int | str = VALUES) -> None:
    """Keep schemas, on the disk when this returns; several processes may keep the same."""
    folder.mkdir(parents=True, exist_ok=True)
    with whole(folder / f"{name}.json", hidden=True, synced=True) as aside:
        aside.write_text(json.dumps(list(texts)))


def with_reader(schema: pa.Schema, texts: Sequence[str], of: str = VALUES) -> pa.Schema:
    """Return columns with the reader's schema of values or of keys, which goes wherever they go."""
    return schema.with_metadata({**(schema.metadata or {}), _METADATA[of]: json.dumps(list(texts))})


def reader_of(schema: pa.Schema, of: str = VALUES) -> tuple[str, ...]:
    """Return the reader's schema that columns have with them; nothing if they have none."""
    return tuple(json.loads((schema.metadata or {}).get(_METADATA[of], b"[]")))


class RegistryClient:
    """A registry, of which schemas of one kind are wanted: AVRO or PROTOBUF. Asks when it is asked."""

    def __init__(self, registry: SchemaRegistry, kind: str) -> None:
        self._registry, self._kind = registry, kind

    def of_id(self, id: int) -> tuple[Registered, ...]:
        """Return the schema of an id, after those that it refers to.

        Raises:
            Unknown: There is none, or it is of another kind.
            NotReady, SpecError: The registry does not answer, or refuses.
        """
        return self._whole(self._ask(f"/schemas/ids/{id}"))

    def newest(self, subject: str) -> tuple[Registered, ...]:
        """Return the newest schema of a subject, after those that it refers to. Raises what `of_id` raises."""
        return self._whole(self._ask(f"{_versions(subject)}/latest"))

    def register(self, subject: str, schema: str) -> int:
        """Register a schema, unless it is there; return its id.

        Raises:
            Refusal: Readers of the subject could not follow it.
            NotReady, SpecError: The registry does not answer, or refuses this user.
        """
        body = json.dumps({"schemaType": self._kind, "schema": schema}).encode()
        found = self._ask(_versions(subject), body)
        try:
            return int(found["id"])
        except (KeyError, TypeError, ValueError):
            raise self._strange() from None

    def _whole(self, found: Any) -> tuple[Registered, ...]:
        """Return a schema after those that it refers to, each once and after its own."""
        whole: dict[Registered, None] = {}
        asked: set[tuple[str, int]] = set()

        def add(node: Any, name: str) -> None:
            if (kind := node.get("schemaType", "AVRO")) != self._kind:
                wanted = self._kind.capitalize()
                raise Unknown(f"is of type {kind}; format: {self._kind.lower()} reads {wanted} alone")
            for one in node.get("references") or ():
                named = str(one["subject"]), int(one["version"])
                if named in asked:
                    continue
                asked.add(named)
                if len(asked) > _MOST_REFERENCES:
                    raise Unknown(f"refers to more than {_MOST_REFERENCES} others")
                add(self._ask(f"{_versions(named[0])}/{named[1]}"), str(one["name"]))
            whole.setdefault(Registered(name, str(node["schema"])))

        try:
            add(found, "")
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._strange() from None
        return tuple(whole)

    def _ask(self, path: str, body: bytes | None = None) -> Any:
        """Return an answer, to what is posted if there is a body; ask again for a while if it may still come."""
        url = self._registry.url
        try:
            return patiently(
                lambda left: self._once(path, body, max(min(left, _ASK_S), 0.5)),
                _passing,
                PATIENCE_S,
                backoff(0.1, 1),
            )
        except HTTPError as error:
            raise self._refused(error.code, error.msg) from None
        except (OSError, HTTPException) as error:
            cause = error.reason if isinstance(error, URLError) else error
            if isinstance(cause, ssl.SSLError):
                why = f"its certificate or TLS is refused ({cause.reason or type(cause).__name__})"
                raise SpecError(f"registry {url}: {why}; correct url, or caFile") from None
            said = getattr(cause, "strerror", None) or type(cause).__name__
            raise NotReady(f"registry {url}: no answer ({said}); is it up, and is url right?") from None

    def _once(self, path: str, posted: bytes | None, seconds: float) -> Any:
        request = Request(self._registry.url + path, posted, self._headers)  # noqa: S310  the URL is checked
        try:
            with self._opener.open(request, timeout=seconds) as answer:
                body = answer.read(_MOST_BYTES + 1)
        except HTTPError as error:
            with error:  # it is an answer, too
                error.msg = _said(error)
            raise
        if len(body) > _MOST_BYTES:
            raise SpecError(
                f"registry {self._registry.url}: an answer is longer than {_MOST_BYTES >> 20} MiB"
            )
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise self._strange() from None

    def _strange(self) -> SpecError:
        return SpecError(f"registry {self._registry.url}: does not answer as a registry does; correct url")

    def _refused(self, code: int, said: str) -> Exception:
        place = f"registry {self._registry.url}"
        if code in (409, 422):
            return Refusal(f"{place}: refuses the schema ({code}): {said}")
        if code == 404:
            return Unknown("is not known")
        if code in (401, 403):
            return SpecError(
                f"{place}: refuses this user ({code}); correct user or password, or grant it what it asks for"
            )
        if code in _PASSING:
            return NotReady(f"{place}: cannot answer ({code}); is it well?")
        if 300 <= code < 400:
            return SpecError(
                f"{place}: redirects ({code}), which is not followed; write the address it leads to"
            )
        return SpecError(f"{place}: refuses ({code}); correct url")

    @property
    def _headers(self) -> dict[str, str]:
        kind = "application/vnd.schemaregistry.v1+json"
        found = {"Accept": f"{kind}, application/json", "Content-Type": kind}
        given = self._registry
        if given.username_file is not None or given.username_env is not None:
            user = _secret("username", given.username_file, given.username_env)
            password = _secret("password", given.password_file, given.password_env)
            found["Authorization"] = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
        return found

    @property
    def _opener(self) -> OpenerDirector:
        file = self._registry.ca_file
        try:
            context = ssl.create_default_context(cafile=str(file) if file else None)
        except (OSError, ssl.SSLError):
            raise SpecError("registry.caFile: is not a PEM file that can be read; correct its path") from None
        return build_opener(HTTPSHandler(context=context), _Stay())


def _versions(subject: str) -> str:
    """Return the path of a subject's schemas."""
    return f"/subjects/{quote(subject, safe='')}/versions"


def _said(error: HTTPError) -> str:
    """Return the reason that a registry gives, in one line."""
    try:
        found = str(json.loads(error.read(_MOST_REASON))["message"])
    except (OSError, HTTPException, ValueError, KeyError, TypeError, RecursionError):
        found = str(error.reason)
    return " ".join(found.split())[:_LONGEST_REASON]


def _passing(error: BaseException) -> bool:
    """Return whether the same request may be answered later."""
    if isinstance(error, HTTPError):
        return error.code in _PASSING
    cause = error.reason if isinstance(error, URLError) else error
    return isinstance(error, (OSError, HTTPException)) and not isinstance(cause, ssl.SSLError)


def _secret(what: str, path: Path | None, variable: str | None) -> str:
    found = secret.read(path, f"registry.{what}File") if path else os.environ.get(variable or "", "")
    if not found:
        where = path or f"the variable {variable}"
        raise SpecError(f"{where}: is empty or not set, and is to hold the registry's {what}; write it there")
    return found
