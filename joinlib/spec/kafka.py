"""The connection to a Kafka cluster: what an input and an output have in common.

Secrets are named, never written: by a mounted file, or by an environment variable. They are read where a
client is created, so no spec, plan, checkpoint or log ever contains one.
"""

import re
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema, model_validator

from joinlib.spec.base import Folder, Model, Problem, Variable, named_files, refuse

_HOST = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}"
SERVERS = f"^{_HOST}(, ?{_HOST})*$"
TOPIC = r"^[A-Za-z0-9._-]{1,249}$"
URL = r"^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$"
MESSAGE = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$"

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
About = Literal["key", "timestamp", "topic", "partition", "offset", "headers"]  # a message's metadata
KeyFormat = Literal["text", "avro", "protobuf"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


def _servers(value: str) -> str:
    if not re.fullmatch(SERVERS.strip("^$"), value):
        msg = f"{value!r} is not a list of brokers; write kafka-1:9092,kafka-2:9092"
        raise ValueError(msg)
    for server in value.split(","):
        if not 0 < int(server.rpartition(":")[2]) < 65536:
            msg = f"{server.strip()!r} has no port between 1 and 65535; write kafka-1:9092,kafka-2:9092"
            raise ValueError(msg)
    return value


def _no_dots(value: str) -> str:
    if value in (".", ".."):
        msg = f"{value!r} is not the name of a topic"
        raise ValueError(msg)
    return value


def _url(value: str) -> str:
    if not re.fullmatch(URL.strip("^$"), value):
        msg = f"{value!r} is not the address of a registry; write https://HOST:PORT, and no user or password in it"
        raise ValueError(msg)
    return value.rstrip("/")


RegistryUrl = Annotated[str, AfterValidator(_url), WithJsonSchema({"type": "string", "pattern": URL})]
Servers = Annotated[str, AfterValidator(_servers), WithJsonSchema({"type": "string", "pattern": SERVERS})]
Topic = Annotated[str, StringConstraints(pattern=TOPIC), AfterValidator(_no_dots)]
MessageName = Annotated[str, StringConstraints(pattern=MESSAGE)]


class KafkaSecurity(Model):
    """How brokers and client authenticate each other."""

    protocol: Protocol = Field(default="PLAINTEXT", description="Security protocol of the brokers' listener.")
    mechanism: Mechanism | None = Field(
        default=None, description="How the client logs in. Required by the SASL protocols."
    )
    username_file: Folder | None = Field(default=None, description="File with the user name.")
    username_env: Variable | None = Field(default=None, description="Environment variable that holds it.")
    password_file: Folder | None = Field(default=None, description="File with the password.")
    password_env: Variable | None = Field(default=None, description="Environment variable that holds it.")
    ca_file: Folder | None = Field(
        default=None,
        description="PEM file of the authority that signed the brokers' certificates. Absent: the "
        "system's authorities.",
    )
    cert_file: Folder | None = Field(default=None, description="PEM file of the client's certificate.")
    key_file: Folder | None = Field(default=None, description="PEM file of the client's key.")

    @property
    def files(self) -> dict[str, Path]:
        """The named files, by field."""
        return named_files(self, "username_file", "password_file", "ca_file", "cert_file", "key_file")

    @property
    def sasl(self) -> bool:
        """Whether the client logs in."""
        return self.protocol.startswith("SASL")

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.protocol.endswith("SSL")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse([*self._login(), *self._encryption()])
        return self

    def _login(self) -> list[Problem]:
        given: dict[str, list[object]] = {
            "mechanism": [self.mechanism],
            "username": [self.username_file, self.username_env],
            "password": [self.password_file, self.password_env],
        }
        counts = {name: sum(v is not None for v in values) for name, values in given.items()}
        if not self.sasl:
            found = ", ".join(name for name, count in counts.items() if count)
            fix = f"is for SASL_PLAINTEXT and SASL_SSL, but protocol is {self.protocol}; correct one of them"
            return [Problem((), f"{found} {fix}")] if found else []
        return [
            Problem((), f"{self.protocol} needs {_how(name)}") for name, count in counts.items() if count != 1
        ]

    def _encryption(self) -> list[Problem]:
        given = {"caFile": self.ca_file, "certFile": self.cert_file, "keyFile": self.key_file}
        found = ", ".join(name for name, value in given.items() if value is not None)
        if found and not self.tls:
            fix = f"is for SSL and SASL_SSL, but protocol is {self.protocol}; correct one of them"
            return [Problem((), f"{found} {fix}")]
        if (self.cert_file is None) != (self.key_file is None):
            return [Problem((), "certFile and keyFile belong together; write both or none")]
        return []


def _how(name: str) -> str:
    if name == "mechanism":
        return "mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"
    return f"one of {name}File and {name}Env"


class SchemaRegistry(Model):
    """A registry of schemas, which has the interface of Confluent's."""

    url: RegistryUrl = Field(description="Where it is, such as https://registry.example:8081.")
    subject: str | None = Field(
        default=None,
        min_length=1,
        description="The subject: of an input, that whose newest schema is the reader's; of an output, that under which "
        "its schema is registered. Absent: TOPIC-value, of the first topic.",
    )
    key_subject: str | None = Field(
        default=None,
        min_length=1,
        description="The subject of the schema of keys, likewise. Absent: TOPIC-key, of the first topic. Only with "
        "keyFormat avro or protobuf.",
    )
    message: MessageName | None = Field(
        default=None,
        description="The full name of the messages' type, such as shop.Order. Absent: the first of the reader's "
        "schema. Only of an input with format protobuf.",
    )
    username_file: Folder | None = Field(default=None, description="File with the user name.")
    username_env: Variable | None = Field(default=None, description="Environment variable that holds it.")
    password_file: Folder | None = Field(default=None, description="File with the password.")
    password_env: Variable | None = Field(default=None, description="Environment variable that holds it.")
    ca_file: Folder | None = Field(
        default=None,
        description="PEM file of the authority that signed the registry's certificate. Absent: the system's "
        "authorities.",
    )

    @property
    def files(self) -> dict[str, Path]:
        """The named files, by field."""
        return named_files(self, "username_file", "password_file", "ca_file")

    def subject_of(self, topic: str) -> str:
        """Return the subject of the schemas of a topic's values."""
        return self.subject or f"{topic}-value"

    def key_subject_of(self, topic: str) -> str:
        """Return the subject of the schemas of a topic's keys."""
        return self.key_subject or f"{topic}-key"

    @property
    def host(self) -> str:
        """The host of the URL."""
        return urlsplit(self.url).hostname or ""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        users, passwords = (
            [self.username_file, self.username_env],
            [self.password_file, self.password_env],
        )
        given = [sum(v is not None for v in values) for values in (users, passwords)]
        if given not in ([0, 0], [1, 1]):
            one = "one of usernameFile and usernameEnv, and one of passwordFile and passwordEnv"
            refuse([Problem((), f"needs {one}, or none of them")])
        if self.ca_file is not None and not self.url.startswith("https:"):
            refuse([Problem(("caFile",), "is for https, but url begins with http; correct one of them")])
        return self


class KafkaConnection(Model):
    """A Kafka cluster."""

    bootstrap_servers: Servers = Field(description="Host and port of brokers, separated by commas.")
    security: KafkaSecurity = Field(
        default_factory=KafkaSecurity, description="How brokers and client authenticate each other."
    )
