"""Where is the API server, and who are we? The service account of the pod, else what KUBECONFIG names."""

import dataclasses
import datetime
from typing import Any

import kopf

_FRESH_S = 300  # the token's file changes within the hour


def connection(settings: kopf.OperatorSettings | None = None) -> kopf.ConnectionInfo:
    """The API server's address and our credentials, read anew from their files."""
    given: dict[str, Any] = {"settings": settings or kopf.OperatorSettings()}
    found = kopf.login_with_service_account(**given) or kopf.login_with_kubeconfig(**given)
    if found is None:
        msg = "there is no API server: run in a pod with a service account, or set KUBECONFIG"
        raise kopf.LoginError(msg)
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=_FRESH_S)
    return dataclasses.replace(found, expiration=until)
