"""Which servers are trusted, and as whom one comes to them: certificates that environment variables name.

Law: without an authority of its own the system's are trusted, and a certificate is always checked. Files are read anew where a
server was refused, since they may have been renewed. Errors quote no value: people write a secret itself in place of its file.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from joinlib import secret
from joinlib.errors import SpecError

_PEM = "-----BEGIN "
_ANOTHER_HOST = (62, 64)  # codes of OpenSSL: the certificate is for other names, or other addresses
_UNKNOWN = (2, 18, 19, 20, 21)  # it is signed by nobody who is trusted


@dataclass(frozen=True)
class TlsFiles:
    """Certificates by the variables that name them; `given` has those that are set."""

    authority: str  # holds a file, or what is in one
    certificate: str  # of the client, a file
    key: str  # of the client, a file
    given: Mapping[str, str] = field(default_factory=dict, repr=False)

    def context(self) -> ssl.SSLContext:
        """Return what connections are made with. Takes longer than a call with the system's authorities.

        Raises:
            SpecError: A file cannot be read or used.
        """
        try:
            found = ssl.create_default_context(cadata=self._authorities())
        except (ssl.SSLError, ValueError, TypeError):
            raise SpecError(
                f"environment: {self.authority} has no certificate; write a PEM file, or what is in it"
            ) from None
        self._present(found)
        return found

    def _authorities(self) -> str | None:
        named = self.given.get(self.authority)
        if named is None or named.startswith(_PEM):
            return named
        return secret.read(Path(named), f"environment: {self.authority}")

    def _present(self, context: ssl.SSLContext) -> None:
        """Let the client show who it is, if that is named."""
        certificate, key = (self.given.get(name) for name in (self.certificate, self.key))
        if certificate is None and key is None:
            return
        if certificate is None or key is None:
            raise SpecError(f"environment: {self.certificate} and {self.key} belong together; write both")
        try:
            context.load_cert_chain(certificate, key, password="")  # which asks nobody for one
        except (OSError, ValueError):
            raise SpecError(
                f"environment: {self.certificate} and {self.key} are not the PEM files of a certificate and its key, without"
                " a passphrase, that can be read here"
            ) from None

    def refused(self, error: ssl.SSLError, url: str) -> str:
        """Return why no connection was made, with what to write; `url` is the variable of the address."""
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"shows a certificate that cannot be trusted: {error.verify_message.rstrip('.')}"
            if error.verify_code in _ANOTHER_HOST:
                return f"{why}; write the host that it names in {url}"
            return f"{why}; name who signed it in {self.authority}" if error.verify_code in _UNKNOWN else why
        reason = (error.reason or "").replace("_", " ").lower()
        if "wrong version number" in reason or "record layer failure" in reason:
            return (
                f"does not speak TLS; write its port for TLS in {url}, or http:// if nothing there is secret"
            )
        if "alert" in reason and any(word in reason for word in ("certificate", "unknown ca")):
            return f"refuses the client's certificate ({reason}); name another in {self.certificate} and {self.key}"
        if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return f"ends the connection; if it wants the client's certificate, {self.certificate} and {self.key} name it"
        return f"cannot agree on TLS ({reason or 'no reason is given'})"
