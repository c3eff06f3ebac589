"""Credentials: the pod's service account, or else what KUBECONFIG names.

The official client finds them for kopf and for us.

In a pod the token is read again every minute, for the kubelet replaces it within the hour. Proxies of the
environment are not used: they are not for the cluster. A proxy that the kubeconfig names is.
"""

import contextlib
import dataclasses
import datetime
import logging
import os
from collections.abc import Iterator

import kopf
from kubernetes import aio, client, config, dynamic
from kubernetes.aio import dynamic as aio_dynamic

log = logging.getLogger("joinop")
_FRESH_S = 300  # kopf signs in again after this: the token's file changes within the hour
_MISSING = "there is no API server: run in a pod with a service account, or set KUBECONFIG"


def sign_in(settings: kopf.OperatorSettings) -> kopf.ConnectionInfo:
    """Return the connection of kopf's watches."""
    with _explained():
        found = kopf.login_via_client(settings=settings, logger=log)
    assert found is not None, "the official client is installed"
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=_FRESH_S)
    return dataclasses.replace(found, expiration=until)


def blocking_client() -> dynamic.DynamicClient:
    """Return a client for threads. It sends a request once: retries would outlast a Lease."""
    configuration = client.Configuration(retries=False)
    configuration.proxy = None
    with _explained():
        try:
            config.load_incluster_config(client_configuration=configuration)
        except config.ConfigException:
            config.load_kube_config(_kubeconfig(), client_configuration=configuration)
    return dynamic.DynamicClient(client.ApiClient(configuration), discoverer=_nothing)


async def async_client(parallel: int) -> aio_dynamic.DynamicClient:
    """Return a client for the event loop, with so many connections at most. It needs no discovery."""
    configuration = aio.client.Configuration(
        connection_pool_maxsize=parallel, client_session_kwargs={"trust_env": False}
    )
    with _explained():
        try:
            aio.config.load_incluster_config(client_configuration=configuration)
        except aio.config.ConfigException:
            await aio.config.load_kube_config(_kubeconfig(), client_configuration=configuration)
    return aio_dynamic.DynamicClient(aio.client.ApiClient(configuration))


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Say what to do when there are no credentials."""
    try:
        yield
    except (config.ConfigException, aio.config.ConfigException, kopf.LoginError) as error:
        raise kopf.LoginError(f"{_MISSING} ({error})") from error


def _kubeconfig() -> str | None:
    """Return KUBECONFIG as it is now: the client remembers it from when it was imported."""
    return os.environ.get("KUBECONFIG")


def _nothing(_client: dynamic.DynamicClient, _cache: str | None) -> None:
    """In place of discovery: the kinds are known, and to list them all takes requests."""
