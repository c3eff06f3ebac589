"""Serves the page: the file to everybody, since it knows nothing of a job, and its figures to those who may read the status.

    GET  /           the page
    GET  /v1/page    its figures

The page may load nothing, run only its own script, and ask only where it came from: its headers say so, with the
hashes of its script and its style. Law: whatever a name or a message holds, it is shown as text.
"""

import base64
import hashlib
import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

from aiohttp import web

_PART = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


def routes(figures: Callable[[], dict[str, Any]], admit: Callable[[web.Request], None]) -> list[web.RouteDef]:
    """Return the resources of the page. `admit` raises for those who may not see figures."""

    async def page(_: web.Request) -> web.Response:
        text = html()
        return web.Response(text=text, content_type="text/html", headers=_headers(text))

    async def asked(request: web.Request) -> web.Response:
        admit(request)
        return web.json_response(figures(), headers={"Cache-Control": "no-store"})

    return [web.get("/", page), web.get("/v1/page", asked)]


@cache
def html() -> str:
    """Return the page's file."""
    return (resources.files("jobs.page") / "page.html").read_text("utf-8")


def _headers(text: str) -> dict[str, str]:
    allowed = {kind: f"'sha256-{_hash(part)}'" for kind, part in _PART.findall(text)}
    policy = (
        f"default-src 'none'; script-src {allowed['script']}; style-src {allowed['style']}; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
