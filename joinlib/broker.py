"""How clients of Kafka connect to a cluster, and what they report when they cannot.

This is the one place that reads Kafka's secrets: they go from a mounted file, or the environment, straight
into the client's configuration. Nothing here, and no error, repeats one.
"""

import os
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError

from joinlib import secret
from joinlib.errors import InputError, SpecError, StreamJoinError
from joinlib.spec.kafka import KafkaConnection, KafkaSecurity

PATIENCE_S = 7.0  # for a first answer: an error should be reported within 10 s
RETRY_S = 60.0  # for brokers that have answered before: they may be restarting
Settings = dict[str, Any]


def settings(connection: KafkaConnection) -> Settings:
    """Return the settings of every client. They hold secrets: pass them to a client's constructor only.

    Raises:
        SpecError: A secret or a certificate cannot be read.
    """
    return {
        "bootstrap.servers": connection.bootstrap_servers.replace(" ", ""),
        "client.id": "streamjoin",
        "log_level": 2,  # failures are raised; lesser problems resolve themselves
        "log.connection.close": False,
        "reconnect.backoff.max.ms": 1000,
        **_security(connection.security),
    }


def _security(security: KafkaSecurity) -> Settings:
    found: Settings = {"security.protocol": security.protocol.lower()}
    if security.sasl:
        found["sasl.mechanism"] = str(security.mechanism)
        found["sasl.username"] = _secret("username", security.username_file, security.username_env)
        found["sasl.password"] = _secret("password", security.password_file, security.password_env)
    files = {
        "ssl.ca.location": ("caFile", security.ca_file),
        "ssl.certificate.location": ("certFile", security.cert_file),
        "ssl.key.location": ("keyFile", security.key_file),
    }
    for name, (field, path) in files.items():
        if path is not None:
            found[name] = str(_readable(path, f"kafka.security.{field}"))
    return found


def _secret(what: str, path: Path | None, variable: str | None) -> str:
    if path is not None:
        text = secret.read(path, f"kafka.security.{what}File")
        if not text:
            raise SpecError(f"kafka.security.{what}File: the file is empty; write the {what} into it")
        return text
    value = os.environ.get(variable or "", "")
    if not value:
        raise SpecError(f"the environment has no {variable}, which is to hold Kafka's {what}; set it")
    return value


def _readable(path: Path, place: str) -> Path:
    try:
        with path.open("rb"):
            return path
    except OSError as e:
        raise SpecError(
            f"{place}: the file cannot be read ({e.strerror}); mount it, or correct its path"
        ) from None


class Trouble:
    """The latest error that a client has reported; pass `heard` to the client as its `error_cb`."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._servers = connection.bootstrap_servers
        self._last: KafkaError | None = None

    def heard(self, error: KafkaError) -> None:
        """Keep the latest error that names a cause: "all brokers are down" does not."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN or self._last is None:
            self._last = error

    @property
    def hopeless(self) -> bool:
        """Whether trying again is useless, as with wrong secrets and certificates."""
        return self._last is not None and self._last.code() in _HOPELESS

    def error(self, doing: str, cause: KafkaError | None = None) -> StreamJoinError:
        """Return the error to raise when `doing` has failed, with the best known cause and a hint."""
        error = cause if cause is not None and cause.code() not in _VAGUE else self._last or cause
        if error is None:
            return InputError(f"kafka {self._servers}: {doing}: no answer; are these the brokers' addresses?")
        return InputError(f"kafka {self._servers}: {doing}: {_text(error)}{_fix(error)}")


def codes(*names: str) -> frozenset[int]:
    """Return the numbers of errors by their names."""
    return frozenset(int(getattr(KafkaError, name)) for name in names)


_HOPELESS = codes("_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM")
_VAGUE = codes("_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_TIMED_OUT_QUEUE", "_FAIL")
_DENIED = codes(
    "TOPIC_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
)
_UNKNOWN = codes("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION")


def _text(error: KafkaError) -> str:
    """Return the message without the client's own prefix, which repeats threads and addresses."""
    return " ".join(str(error.str()).rpartition("]: ")[2].split())


def _fix(error: KafkaError) -> str:
    code = error.code()
    if code in codes("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED"):
        return "; correct user or password, or security.mechanism"
    if code in _HOPELESS:
        return "; correct security.protocol, security.mechanism or the certificates"
    if code in _DENIED:
        return "; grant it to this user"
    if code in _UNKNOWN:
        return "; create the topic, or correct its name"
    return "; are bootstrapServers and security.protocol right, and is the broker up?"
