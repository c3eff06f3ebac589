"""What cannot be run is refused before it is written, in the words of `validate`; what changes nothing passes."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import aiohttp
from joinop import webhook
from joinop.allow import Allow
from joinop.config import Config

from tests.deploy.operator.conftest import free_port
from tests.deploy.operator.objects import stream_join
from tests.deploy.operator.test_transport import certificates

WRONG = "SELECT o.idd FROM orders o JOIN shipments s ON o.id = s.id"
SAID = "spec.sql: line 1, column 8: o has no column idd"


def review(given: Any, before: Any = None) -> dict[str, Any]:
    """What the API server sends."""
    request = {"uid": "u1", "namespace": "shop", "operation": "UPDATE" if before else "CREATE"}
    return {"kind": "AdmissionReview", "request": {**request, "object": given, "oldObject": before}}


def said(given: Any, before: Any = None, config: Config = Config()) -> str:  # noqa: B008 - frozen
    """The message of a refusal; empty if there is none."""
    response = webhook.answer(review(given, before), config)["response"]
    assert response["uid"] == "u1"
    assert response["allowed"] == ("status" not in response)
    return str(response.get("status", {}).get("message", ""))


def test_verdicts() -> None:
    """Of new ones and of changes, and by the allow lists of the cluster."""
    assert said(stream_join()) == ""
    assert said(stream_join(sql=WRONG)).startswith(SAID)
    assert said(stream_join(sql=WRONG), stream_join()).startswith(SAID)
    strict = Config(allow=Allow(volumes=()))
    assert "volumes" in said(stream_join(), None, strict)


def test_what_passes() -> None:
    """A wrong one that was there before, one that is being deleted, and a deletion; a name may come later."""
    wrong = stream_join(sql=WRONG)
    assert said({**wrong, "metadata": {**wrong["metadata"], "labels": {"a": "b"}}}, wrong) == ""
    leaving = stream_join(sql=WRONG)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert said(leaving, stream_join()) == ""
    assert said(None, wrong) == ""
    unnamed = stream_join()
    unnamed["metadata"] = {"generateName": "late-"}
    assert said(unnamed) == ""


def test_over_tls(tmp_path: Path) -> None:
    """As the API server asks, which knows the authority; a certificate that is renewed is served."""
    name = "sj-operator.system.svc"
    first, second = (certificates(tmp_path / folder, name) for folder in ("one", "two"))
    folder, port = tmp_path / "mounted", free_port()
    folder.mkdir()

    def mount(of: Path) -> None:
        for file in ("tls.crt", "tls.key"):
            (folder / file).write_bytes((of / file).read_bytes())

    async def asked(authority: Path) -> str:
        context = ssl.create_default_context(cafile=str(authority / "ca.crt"))
        url = f"https://127.0.0.1:{port}/validate"
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                url, json=review(stream_join(sql=WRONG)), ssl=context, server_hostname=name
            ) as answer,
        ):
            return str((await answer.json())["response"]["status"]["message"])

    async def both() -> None:
        mount(first)
        runner = await webhook.serve(Config(webhook=folder, webhook_port=port))
        try:
            assert (await asked(first)).startswith(SAID)
            mount(second)
            assert (await asked(second)).startswith(SAID)
        finally:
            await runner.cleanup()

    asyncio.run(both())
