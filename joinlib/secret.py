"""Reads files that a spec names as secrets, but never the pod's own tokens.

Errors name the field and no path: people write the secret itself in place of its file.

On Kubernetes the driver's token allows it to make pods. A user who may write a spec must not be able to send
that token to a server of his own. Paths are resolved first, since a volume may hold links.
"""

from pathlib import Path

from joinlib.errors import SpecError

# The folders of the tokens that a cluster gives to its pods.
_OWN = tuple(
    Path(root) / whose
    for root in ("/run/secrets", "/var/run/secrets")
    for whose in ("kubernetes.io", "eks.amazonaws.com", "azure")
)


def read(path: Path, place: str) -> str:
    """Return the file's text without the line break at its end. `place` is the field that names the file.

    Raises:
        SpecError: The file cannot be read, or is one of the pod's own tokens.
    """
    try:
        real = path.resolve(strict=True)
        if any(real.is_relative_to(own.resolve()) for own in _OWN):
            raise SpecError(f"{place}: is the pod's own token, which is for nobody else; use another file")
        return real.read_text().rstrip("\r\n")
    except OSError as e:
        raise SpecError(f"{place}: the file cannot be read: {e.strerror}") from None
