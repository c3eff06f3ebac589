"""Extracts from a database's error what is safe to repeat: the full text
may hold values, or parts of a secret.

libpq quotes a connection string that it cannot read, so of errors before a connection only messages of a
server, or of a host that does not answer, are repeated. After that the first line of an error names tables,
columns and limits; DETAIL, which quotes rows, is never shown.
"""

import re
from dataclasses import dataclass

_FINAL = (  # the server answers and refuses: waiting does not help
    "authentication failed",
    "no password supplied",
    "does not exist",
    "no pg_hba.conf entry",
    "permission denied",
    "is not permitted to log in",
    "server does not support SSL",
    "certificate verify failed",
    "does not match host name",
    "certificate file",
    "private key file",
)


@dataclass(frozen=True)
class Note:
    """A message for people, and whether the failure is transient."""

    text: str
    passing: bool


def said(message: str) -> Note:
    """Extract the safe part of a message of the driver."""
    server = re.search(r"connection to server at .*? failed: (.+)", message)
    if "Failed to connect" in message and server is None:
        return Note(
            "the connection string cannot be used; see the format of libpq (it is not shown here)", False
        )
    text = server[1] if server else _statement(message)
    text = re.sub(r"^(ERROR|FATAL|PANIC):\s*", "", text.strip()).rstrip(". ")
    if text.startswith(("invalid input syntax", "invalid byte sequence")):
        text = text.partition(":")[0]  # a value follows
    if re.match(r"invalid |malformed |value \"|date/time|time zone|numeric field", text):
        text = re.sub(r':? ?".*("|$)', "", text)  # so do these name one
    final = any(word in text for word in _FINAL)
    return Note(text + _fix(text), not final)


def _statement(message: str) -> str:
    found = re.search(r"(?:ERROR|FATAL|PANIC):\s*(.+)", message)
    if found:
        return found[1].partition(" SQLSTATE:")[0]
    lost = (
        "server closed the connection",
        "no connection to the server",
        "could not receive data",
        "SSL connection",
    )
    known = next((w for w in lost if w in message), None)
    return known or "the connection was lost"


def _fix(text: str) -> str:
    if "authentication failed" in text or "no password" in text:
        return "; set the password in the variable of passwordEnv, or give passwordFile"
    if "server does not support SSL" in text:
        return (
            "; let it accept TLS, or write postgres.security: {mode: disable} to send everything unencrypted"
        )
    if "certificate verify failed" in text:
        return "; caFile of postgres.security did not sign its certificate"
    if "does not match host name" in text:
        return "; correct the host, or its certificate"
    if "permission denied" in text:
        return "; GRANT SELECT on it to this user"
    if "is active for PID" in text:
        return "; end what else reads it, or name another slot"
    if "replication slots are in use" in text:
        return "; raise max_replication_slots, or drop a slot that nobody reads"
    if "does not exist" in text:
        return "; correct its name"
    return ""
