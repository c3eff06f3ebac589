"""The file of a law's query, as a user would write it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from joinlib.spec import StreamJoin, parse

HEAD = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "law"}}


def written(spec: Mapping[str, Any], folder: Path) -> StreamJoin:
    """Return what a file `law.yaml` with this `spec` says; its paths are below `folder`."""
    return parse(orjson.dumps({**HEAD, "spec": spec}).decode(), "law.yaml", folder)
