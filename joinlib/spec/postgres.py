"""How a PostgreSQL server and a client authenticate. The names of modes and their meaning are libpq's."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from joinlib.spec.base import Folder, Model, Problem, refuse

VERIFYING = ("verify-ca", "verify-full")


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
        given = {"caFile": self.ca_file, "certFile": self.cert_file, "keyFile": self.key_file}
        return {name: path for name, path in given.items() if path is not None}

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
