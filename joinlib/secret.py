"""What does a file say that a spec names as one with a secret? Never what is the pod's own.

On Kubernetes the token of a driver may make pods: whoever may write a spec must not have it sent to a server of his own. A path
is looked at as it really is, since a volume may hold links.
"""

from pathlib import Path

from joinlib.errors import SpecError

# Where tokens lie that a cluster gives to its pods.
_OWN = tuple(
    Path(root) / whose
    for root in ("/run/secrets", "/var/run/secrets")
    for whose in ("kubernetes.io", "eks.amazonaws.com", "azure")
)


def read(path: Path, place: str) -> str:
    """Its text without the line's end. `place`: the field that names it. SpecError where it is not to be had."""
    try:
        real = path.resolve(strict=True)
        if any(real.is_relative_to(own.resolve()) for own in _OWN):
            raise SpecError(
                f"{place}: {path} is the pod's own token, which is for nobody else; use another file"
            )
        return real.read_text().rstrip("\r\n")
    except OSError as e:
        raise SpecError(f"{place}: {path} cannot be read: {e.strerror}") from None
