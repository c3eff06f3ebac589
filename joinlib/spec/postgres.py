"""The connection to a PostgreSQL database: what inputs and an output have in common.

The names of TLS modes and their meaning are libpq's. A password is named, never written.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from joinlib.spec.base import Duration, Folder, Model, Problem, Variable, named_files, quantity, refuse

VERIFYING = ("verify-ca", "verify-full")
_IN_URI = "stands in the connection string of uriEnv; remove one of them"
_USUAL = "PGPASSWORD"  # the variable that libpq's programs read


class PostgresSecurity(Model):
    """Encryption of the connection, and certificates."""

    mode: Literal["disable", "require", "verify-ca", "verify-full"] = Field(
        default="require",
        description="disable: no encryption, also of passwords; require: encrypted, without checking "
        "the server; verify-ca: the server's certificate must be signed by caFile; verify- "
        "full: and it must be for this host.",
    )
    ca_file: Folder | None = Field(
        default=None,
        description="PEM file of the authority that signed the server's certificate. For verify-ca and "
        "verify-full.",
    )
    cert_file: Folder | None = Field(default=None, description="PEM file of the client's certificate.")
    key_file: Folder | None = Field(default=None, description="PEM file of the client's key.")

    @property
    def files(self) -> dict[str, Path]:
        """The named files, by field."""
        return named_files(self, "ca_file", "cert_file", "key_file")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse([*self._server(), *self._client()])
        return self

    def _server(self) -> list[Problem]:
        if (self.mode in VERIFYING) == (self.ca_file is not None):
            return []
        if self.ca_file is None:
            return [Problem(("caFile",), f"is missing, and {self.mode} checks the server against it; add it")]
        return [Problem(("caFile",), f"is ignored with mode {self.mode}; write verify-full, or remove it")]

    def _client(self) -> list[Problem]:
        if (self.cert_file is None) != (self.key_file is None):
            return [Problem((), "certFile and keyFile belong together; write both or none")]
        if self.cert_file is not None and self.mode == "disable":
            return [Problem((), "certFile and keyFile need TLS; write another mode, or remove them")]
        return []


class PostgresConnection(Model):
    """Where a database is, who connects, and how long to wait for it."""

    host: str | None = Field(default=None, min_length=1, description="Host of the database.")
    port: int = Field(default=5432, ge=1, le=65535, description="Port of the database.")
    database: str | None = Field(default=None, min_length=1, description="Name of the database.")
    user: str | None = Field(default=None, min_length=1, description="User to connect as.")
    uri_env: Variable | None = Field(
        default=None,
        description="Environment variable with a whole connection string, instead of host, database and "
        "user.",
    )
    password_env: Variable = Field(
        default=_USUAL,
        description="Environment variable with the password. The spec never contains it. Instead of passwordFile.",
    )
    password_file: Folder | None = Field(
        default=None, description="File with the password, such as a mounted Secret."
    )
    security: PostgresSecurity = Field(
        default_factory=PostgresSecurity, description="How server and client authenticate each other."
    )
    timeout_us: Annotated[Duration, Field(gt=0)] = quantity(
        "30s", "timeout", "How long one query may take before it is cancelled and tried again."
    )
    patience_us: Annotated[Duration, Field(gt=0)] = quantity(
        "60s", "patience", "How long to wait for a database that cannot be reached before the job stops."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse([*self._place(), *self._password(), *self._own()])
        return self

    def _own(self) -> list[Problem]:
        """Return the problems of the fields that one kind of connection adds."""
        return []

    def _password(self) -> list[Problem]:
        if self.password_file is None:
            return []
        if self.uri_env is not None:
            return [Problem(("passwordFile",), _IN_URI)]
        if self.password_env != _USUAL:  # which may be written, as the default may
            said = f"and passwordEnv, {self.password_env}, are two passwords; remove one of them"
            return [Problem(("passwordFile",), said)]
        return []

    def _place(self) -> list[Problem]:
        named = {name: getattr(self, name) for name in ("host", "database", "user")}
        if self.uri_env is not None:
            if self.security != PostgresSecurity():
                named["security"] = self.security
            return [Problem((name,), _IN_URI) for name, value in named.items() if value is not None]
        return [
            Problem((name,), "is missing; add it, or uriEnv for a whole connection string")
            for name, value in named.items()
            if value is None
        ]
