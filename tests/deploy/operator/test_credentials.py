"""Who the operator is to the API server: the pod's service account, or the kubeconfig's user."""

import asyncio
import json
import logging
from pathlib import Path

import kopf
import pytest
from joinop.credentials import async_client, blocking_client, sign_in
from joinop.resources import SECRET
from kubernetes.aio.config import incluster_config as aio_incluster

from tests.deploy.operator.apiserver import ApiServer
from tests.unit.jobs.test_cluster import Server, account, server

__all__ = ["account", "server"]  # fixtures
PATH = f"{SECRET.root}/namespaces/shop/secrets/late-token"


@pytest.fixture
def pod(server: Server, account: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The API server as a pod sees it."""
    monkeypatch.setattr(aio_incluster, "SERVICE_TOKEN_FILENAME", str(account / "token"))
    monkeypatch.setattr(aio_incluster, "SERVICE_CERT_FILENAME", str(account / "ca.crt"))
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    return server


def test_the_service_account(
    pod: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its token is read again as it is replaced, its authority is believed; no proxy lies between, and no
    log holds the token.
    """
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")

    async def ask_twice() -> None:
        client = await async_client(4)
        try:
            assert json.loads(await (await client.request("get", PATH, serialize=False)).read())
            (pod.account / "token").write_text("second-token")
            loader = client.configuration.refresh_api_key_hook.__closure__[0].cell_contents
            loader.token_expires_at = loader.token_expires_at.min  # a minute is over
            await client.request("get", PATH, serialize=False)
        finally:
            await client.client.close()

    asyncio.run(ask_twice())
    assert [(a.path, a.token.split()[1]) for a in pod.asked] == [
        (PATH, "first-token"),
        (PATH, "second-token"),
    ]
    assert "-token" not in caplog.text.replace("late-token", "")


def test_kopf_is_the_same_user(pod: Server) -> None:
    """Its watches have the address, authority and token that our requests have, and it asks for them again
    within minutes.
    """
    found = sign_in(kopf.OperatorSettings())

    assert (found.server, found.token) == (f"https://127.0.0.1:{pod.port}", "first-token")
    assert found.ca_path == str(pod.account / "ca.crt")
    assert found.expiration is not None


def test_outside_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubeconfig that the environment names when it is needed, not when the client was imported."""
    with ApiServer().running() as api:
        monkeypatch.setenv("KUBECONFIG", str(api.config(tmp_path / "config", "somebody")))
        blocking_client().request("get", "/api/v1", serialize=False)
        assert [each.who for each in api.asked] == ["somebody"]


def test_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to do."""
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    with pytest.raises(kopf.LoginError, match="run in a pod with a service account, or set KUBECONFIG"):
        blocking_client()
    with pytest.raises(kopf.LoginError, match="set KUBECONFIG"):
        asyncio.run(async_client(1))
