"""Lists the secrets of a job that this machine knows, in every form in which they may be written.

a connection string   also its password, as it is written and as it is sent
a secret p@ss         p@ss, p%40ss, its base64 alone or within that of user:p@ss, and as SQL and JSON quote it
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from joinlib.deploy import LINEAGE_HEADERS, TRACES_HEADERS
from joinlib.spec.model import LOGIN

_SHORTEST = 4  # characters: less is no secret, and would hide half of the text
_SHORTEST_BASE64 = 6
_LARGEST = 100_000  # bytes of a file that holds one
_PUBLIC = ("caFile", "certFile")
_FOR_ADDRESSES = str.maketrans("+/", "-_")
_LOGINS = re.compile(r"://[^:/?#\s]*+:(\S+)@")
_SET = re.compile(r"password\s*+=\s*+('(?:\\.|[^'\\])*+'|[^\s&]+)")


def known(spec: Mapping[str, Any], environment: Mapping[str, str], *, files: bool) -> tuple[str, ...]:
    """Return all forms of the secrets of a job with this spec, the longest first.

    Args:
        spec: What it names: variables, files, and values of parameters.
        environment: The variables.
        files: Whether the files that it names are this machine's.
    """
    named = {value for key, value in _leaves(spec) if key.endswith("Env")}
    held = [v for name, v in environment.items() if name in named or re.search(LOGIN, name)]
    for headers in (LINEAGE_HEADERS, TRACES_HEADERS):
        held += _headers(environment.get(headers, ""))
    held += [part for text in held for part in _passwords(text)]
    parameters = (spec.get("parameters") or {}).values()
    values = (one["value"] if isinstance(one, Mapping) else one for one in parameters)  # and not its type
    held += [text for value in values for _, text in _leaves(value)]
    held += map(_contents, _files(spec)) if files else ()
    forms = {form for text in held for line in (text, *text.splitlines()) for form in _written(line.strip())}
    return tuple(sorted((s for s in forms if len(s) >= _SHORTEST), key=len, reverse=True))


def _headers(given: str) -> Iterator[str]:
    """Yield what headers say, as it is written and as it is sent, and the part of it that follows Bearer."""
    for pair in given.split(","):
        written = pair.partition("=")[2].strip()
        yield from (written, sent := unquote(written), sent.rpartition(" ")[2])


def _passwords(address: str) -> Iterator[str]:
    """Yield the passwords of a connection string, as they are written and as they are sent."""
    for found in (*_LOGINS.findall(address), *_SET.findall(address)):
        plain = re.sub(r"\\(.)", r"\1", found[1:-1]) if found.startswith("'") else found
        yield from (plain, unquote(plain))


def _written(text: str) -> Iterator[str]:
    """Yield a text as it is, and as it stands in SQL, JSON, addresses and base64."""
    yield from (text, text.replace("'", "''"), text.replace("'", "\\'"), json.dumps(text)[1:-1])
    yield from (quote(text, safe=""), quote_plus(text))
    data = text.encode(errors="replace")
    for before in range(3):  # bytes before it, of the three that become four characters
        whole = b64encode(bytes(before) + data).decode()
        own = whole[-(-8 * before // 6) : 8 * (before + len(data)) // 6]
        yield from (own, own.translate(_FOR_ADDRESSES)) if len(own) >= _SHORTEST_BASE64 else ()


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of a document, with the name of its field."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, str(name))
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for inner in value:
            yield from _leaves(inner, key)
    elif isinstance(value, str):
        yield key, value


def _files(spec: Mapping[str, Any]) -> Iterator[Path]:
    yield from (Path(value) for key, value in _leaves(spec) if key.endswith("File") and key not in _PUBLIC)


def _contents(file: Path) -> str:
    """Return what a file holds; of what is no file, such as a pipe, which would never end, nothing."""
    try:
        if not file.is_file():
            return ""
        with file.open("rb") as opened:
            return opened.read(_LARGEST).decode(errors="replace")
    except (OSError, ValueError):
        return ""
