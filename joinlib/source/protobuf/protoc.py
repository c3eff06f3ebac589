"""Compiles .proto text by the official compiler, in a process of its own.

It comes with grpcio-tools: its parser is the one that producers use, so names, imports and options mean here what
they mean there. What it makes is kept with a checkpoint, so it runs once for each schema. Texts are written to
a folder of their own, and nothing else but the well-known types can be imported.
"""

import base64
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import NamedTuple

from joinlib.errors import InputError, NotReady

_RUN = "import sys; from grpc_tools import protoc; sys.exit(protoc.main(sys.argv))"
_ROOT = "streamjoin-root.proto"  # the file that nobody imports
_SECONDS = 60.0
_NO_ERROR = re.compile(r"\bwarning:|^WARNING: All log messages|^[IWE]\d{4} ")  # a log goes the same way
_FIX = "have it registered anew by its producer"


class ProtoFile(NamedTuple):
    """A file. `name`: by which others import it; empty if none does."""

    name: str
    text: str


def compiled_files(files: Sequence[ProtoFile]) -> str:
    """Return the last of several files with all that it imports, compiled: a FileDescriptorSet in base64.

    Raises:
        InputError: One is not a schema, or imports what is not there.
        NotReady: The compiler cannot be run.
    """
    with TemporaryDirectory(prefix="streamjoin-proto-") as folder:
        for name, text in files:
            path = Path(folder, _inside(name) if name else _ROOT)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        out = Path(folder, ".out")
        arguments = [f"--proto_path={folder}", f"--proto_path={_well_known()}", f"--descriptor_set_out={out}"]
        _run([*arguments, "--include_imports", files[-1].name or _ROOT], folder)
        return base64.b64encode(out.read_bytes()).decode()


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not name.endswith(".proto") or "\0" in name:
        raise InputError(f"refers to '{name[:80]}', which is not the path of a .proto file; {_FIX}")
    return path


def _well_known() -> Path:
    found = find_spec("grpc_tools")
    if found is None or found.origin is None:
        raise NotReady("the compiler of Protobuf is not installed; install grpcio-tools")
    return Path(found.origin).parent / "_proto"


def _run(arguments: Sequence[str], folder: str) -> None:
    command = [sys.executable, "-I", "-c", _RUN, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotReady(f"the compiler of Protobuf does not run ({type(error).__name__})") from None
    if done.returncode:
        raise InputError(f"is not a Protobuf schema ({_said(done.stderr, folder)}); {_FIX}")


def _said(errors: bytes, folder: str) -> str:
    """Return the first thing the compiler found wrong, without the names of our folder."""
    text = errors.decode(errors="replace").replace(f"{folder}/", "").replace(f"{_ROOT}:", "")
    lines = [line for line in text.splitlines() if line and not _NO_ERROR.search(line)]
    return re.sub(r"\s+", " ", lines[0]).strip()[:200] if lines else "the compiler does not say why"
