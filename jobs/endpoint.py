"""Where things go that are told to other servers, by environment variables: an address, headers with a login, certificates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from jobs.trust import TlsFiles
from joinlib.errors import SpecError


@dataclass(frozen=True)
class EndpointVariables:
    """The variables that say it."""

    url: str
    headers: str
    authority: str  # who signed the server's certificate
    certificate: str  # of the client
    key: str  # of that
    token: str | None = None  # is sent as a bearer's

    @property
    def login(self) -> str:
        """The variables that can hold a login."""
        return " or ".join(filter(None, [self.token, self.headers]))


@dataclass(frozen=True)
class Endpoint:
    """Where things go."""

    secure: bool
    host: str
    port: int | None
    path: str
    variables: EndpointVariables
    tls: TlsFiles
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def place(self) -> str:
        """The endpoint as people name it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' * self.secure}://{host}{f':{self.port}' if self.port else ''}{self.path}"


def endpoint(
    variables: EndpointVariables, environment: Mapping[str, str], path: str, content: str
) -> Endpoint:
    """Return the endpoint at a path below the address that the environment names.

    Args:
        variables: What is read of the environment.
        environment: The variables.
        path: Where the server takes what is sent.
        content: The type of what is sent.

    Raises:
        SpecError: It is no address of a server, or headers or certificates cannot be used.
    """
    try:
        parts = urlsplit(environment.get(variables.url, "").strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or parts.scheme not in ("http", "https") or parts.username is not None:
        raise SpecError(
            f"environment: {variables.url} is not the address of a server; write http://HOST:PORT or https://HOST:PORT,"
            f" without a login, which {variables.login} can be"
        )
    secure = parts.scheme == "https"
    tls = _certificates(variables, environment, secure=secure)
    headers = {**_headers(variables, environment), "Content-Type": content}
    return Endpoint(
        secure, host, port, f"{parts.path.rstrip('/')}/{path.strip('/')}", variables, tls, headers
    )


def _certificates(variables: EndpointVariables, environment: Mapping[str, str], *, secure: bool) -> TlsFiles:
    """Return the certificates, which have been read once."""
    names = (variables.authority, variables.certificate, variables.key)
    given = {name: value for name in names if (value := environment.get(name, "").strip())}
    if given and not secure:
        raise SpecError(f"environment: {next(iter(given))} is for https://, which {variables.url} is not")
    found = TlsFiles(*names, given)
    if given:
        found.context()
    return found


def _headers(variables: EndpointVariables, environment: Mapping[str, str]) -> dict[str, str]:
    found = pairs(variables.headers, environment)
    token = environment.get(variables.token, "").strip() if variables.token else ""
    if not token:
        return found
    if "authorization" in map(str.lower, found):
        raise SpecError(
            f"environment: {variables.token} and {variables.headers} both say Authorization; leave one out"
        )
    return {**found, "Authorization": f"Bearer {token}"}


def pairs(variable: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the values by name that a variable holds.

    Raises:
        SpecError: It holds something else, which is not quoted: it may be a secret.
    """
    found = {}
    for pair in filter(str.strip, environment.get(variable, "").split(",")):
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise SpecError(
                f"environment: {variable} is not a list of NAME=VALUE; write a comma between two of them, and %2C"
                " for a comma in a value"
            )
        found[name.strip()] = unquote(value).strip()
    return found
