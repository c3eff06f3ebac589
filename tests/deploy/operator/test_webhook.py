"""What cannot be run is refused before it is written, in the words of `validate`; what changes nothing passes."""

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from joinop import forewarn, webhook
from joinop.admission import Pinned
from joinop.allow import Allow
from joinop.classify import classify
from joinop.config import Config
from joinop.confined import Confined
from joinop.forewarn import shortened

from jobs.cli.diff import differ
from tests.deploy.operator.objects import accepted, stream_join
from tests.deploy.operator.test_confined import nested
from tests.deploy.operator.test_transport import certificates
from tests.ports import free_port

WRONG = "SELECT o.idd FROM orders o JOIN shipments s ON o.id = s.id"
LEFT, RIGHT = (
    f"SELECT o.id, s.carrier FROM orders o {kind} JOIN shipments s ON o.id = s.id"
    for kind in ("LEFT", "RIGHT")
)
SAID = "spec.sql: line 1, column 8: o has no column idd"


def review(given: Any, before: Any = None) -> dict[str, Any]:
    """What the API server sends."""
    request = {"uid": "u1", "namespace": "shop", "operation": "UPDATE" if before else "CREATE"}
    return {"kind": "AdmissionReview", "request": {**request, "object": given, "oldObject": before}}


def answered(given: Any, before: Any = None, config: Config = Config()) -> dict[str, Any]:  # noqa: B008 - frozen
    """The response to a review."""
    response: dict[str, Any] = asyncio.run(webhook.answer(review(given, before), config))["response"]
    assert response["uid"] == "u1"
    assert response["allowed"] == ("status" not in response)
    return response


def said(given: Any, before: Any = None, config: Config = Config()) -> str:  # noqa: B008 - frozen
    """The message of a refusal; empty if there is none."""
    return str(answered(given, before, config).get("status", {}).get("message", ""))


def warned(given: Any, before: Any = None) -> list[str]:
    """The warnings of what passes."""
    response = answered(given, before)
    assert response["allowed"]
    return list(response.get("warnings", []))


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


def test_what_the_state_cannot_follow_is_warned_of() -> None:
    """It passes: with a title that says what to do, and the reasons of `plan --diff`, by the plan that would begin."""
    before, after = stream_join(), stream_join(sql=LEFT)
    title, *reasons = warned(after, before)
    assert "spec.checkpoint.reset" in title and "no driver is known to have begun" in title
    assert reasons == list(differ(accepted(before).model, accepted(after).model).reasons) != []


def test_what_is_warned_of_is_what_degrades() -> None:
    """Once a driver has begun, its checkpoint counts, whatever was written meanwhile."""
    begun = accepted(stream_join())
    status = {"checkpoint": {"folder": begun.folder, "fingerprint": json.dumps(begun.fingerprint)}}
    between = stream_join(sql=LEFT, status=status)
    later = stream_join(sql=RIGHT, status=status)
    title, *reasons = warned(later, between)
    assert "so what runs is kept" in title
    assert reasons == list(classify(begun, accepted(later), Pinned(begun.folder, begun.fingerprint)).reasons)
    assert warned(stream_join(status=status), between) == []


@pytest.mark.parametrize(
    "after",
    [
        {"executors__max": 6},
        {"sql": "SELECT o.id FROM orders o JOIN shipments s ON o.id = s.id"},
        {"sql": LEFT, "checkpoint__reset": "2"},
        {"sql": LEFT, "checkpoint__path": "/data/other"},
    ],
)
def test_what_the_state_follows_is_not_warned_of(after: dict[str, Any]) -> None:
    """Nor where another checkpoint begins."""
    assert warned(stream_join(**after), stream_join()) == []


def test_what_no_query_uses_is_warned_of() -> None:
    """Of new ones too, as `validate` says it."""
    sql = "SELECT o.id FROM orders o"
    assert warned(stream_join(sql=sql)) == ["spec.inputs.shipments: no query reads it"]
    assert warned(stream_join()) == []


def test_warnings_fit() -> None:
    """One line of ASCII each, few enough that the API server cuts none."""
    sql = "SELECT " + ", ".join(f"o.`größe\n{n}`" for n in range(30)) + ", s.carrier"
    schema = "id BIGINT, " + ", ".join(f"`größe\n{n}` STRING" for n in range(30))
    wide = {"sql": f"{sql} FROM orders o JOIN shipments s ON o.id = s.id", "inputs__orders__schema": schema}
    found = warned(stream_join(**wide), stream_join(inputs__orders__schema=schema))
    assert found[-1].startswith("and 24 more")
    assert all(len(one) <= 256 and one.isascii() and one.isprintable() for one in found)
    assert sum(map(len, found)) <= 4096
    assert r"gr\xf6\xdfe" in found[1]


def test_a_long_warning_is_cut_at_a_word() -> None:
    """Or within one that is longer."""
    words = shortened("a condition " * 40)
    assert words.endswith(("a condition...", " a..."))
    assert len(words) <= 256
    assert shortened("x" * 300) == "x" * 253 + "..."
    assert shortened("two\n\x00 lines") == "two ? lines"


def test_a_comparison_that_needs_too_much_warns_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses nothing either: not where the spec before is hostile, nor where no time is left."""
    monkeypatch.setattr(forewarn, "_confined", Confined(forewarn.forewarned, 1.0, 64 << 20))
    endless = stream_join(sql=f"SELECT id FROM orders WHERE regexp_like('{'a' * 40}!', '^(a+)+$')")
    assert warned(stream_join(sql=LEFT), endless) == []
    deep = stream_join(pods={"affinity": nested(5000)})
    assert warned(stream_join(sql=LEFT), deep) == []
    assert (
        warned(
            stream_join(sql=LEFT),
            stream_join(status={"checkpoint": {"folder": "/data/checkpoint", "fingerprint": "[]"}}),
        )
        == []
    )
    assert len(warned(stream_join(sql=LEFT), stream_join())) > 1
    monkeypatch.setattr(webhook, "_ANSWER_S", 0.0)
    assert warned(stream_join(sql=LEFT), stream_join()) == []


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
