"""Functions of URLs, one row at a time. Law: java.net's: what is no URL is an error, a part that is missing is NULL."""

import re
from urllib.parse import quote_plus, unquote_to_bytes

from joinlib.expr import signatures as s
from joinlib.expr import types as t
from joinlib.expr.nodes import NoValueError
from joinlib.expr.signatures import Signature, row

_URL = re.compile(
    r"(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)
_BAD = re.compile(r"[\s<>\"{}|\\^`\x00-\x1f\x7f]|%(?![0-9a-fA-F]{2})")
_SERVER = re.compile(r"(?:([^@\[\]]*)@)?(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9.-]+)(?::\d*)?")


def encode(text: str) -> str:
    return quote_plus(text, safe="*-._").replace("~", "%7E")


def decode(text: str) -> str:
    if re.search(r"%(?![0-9a-fA-F]{2})", text):
        raise NoValueError("malformed text: % stands before two hexadecimal digits")
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


def tried_decode(text: str) -> str | None:
    try:
        return decode(text)
    except NoValueError:
        return None


def parse(text: str, part: str, key: str | None = None) -> str | None:
    found = None if _BAD.search(text) else _URL.fullmatch(text)
    if found is None:
        raise NoValueError("malformed URL; use try_parse_url")
    scheme, authority, path, query, fragment = found.groups()
    _check(scheme, authority, path, query, fragment)
    if scheme and authority is None and not path.startswith("/"):
        return scheme if part == "PROTOCOL" and key is None else None
    if key is not None:
        hit = re.search(rf"(?:^|&){re.escape(key)}=([^&]*)", query or "") if part == "QUERY" else None
        return hit[1] if hit else None
    server = _SERVER.fullmatch(authority or "")
    user, host = server.groups() if server else (None, None)
    parts = {
        "PROTOCOL": scheme, "AUTHORITY": authority or None, "PATH": path, "QUERY": query, "REF": fragment, "HOST": host,
        "USERINFO": user, "FILE": path + (f"?{query}" if query is not None else ""),
    }  # fmt: skip
    return parts.get(part)


def _check(
    scheme: str | None, authority: str | None, path: str, query: str | None, fragment: str | None
) -> None:
    """Raise NoValueError if these parts make no URL."""
    colon = scheme is None and authority is None and ":" in path.partition("/")[0]
    nothing = scheme is not None and not authority and not path and query is None
    if colon or nothing or "[" in path or "]" in path or "#" in (fragment or ""):
        raise NoValueError("malformed URL; use try_parse_url")


def tried_parse(text: str, part: str, key: str | None = None) -> str | None:
    try:
        return parse(text, part, key)
    except NoValueError:
        return None


FUNCTIONS: dict[str, Signature] = {
    "url_encode": row(encode, t.STRING, s.STRING),
    "url_decode": row(decode, t.STRING, s.STRING),
    "try_url_decode": row(tried_decode, t.STRING, s.STRING),
    "parse_url": row(parse, t.STRING, s.STRING, s.STRING, s.STRING, least=2),
    "try_parse_url": row(tried_parse, t.STRING, s.STRING, s.STRING, s.STRING, least=2),
}
