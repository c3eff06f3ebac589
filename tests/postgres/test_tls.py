"""TLS with a real server: what is asked for is had, or the password stays here."""

import shutil
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from joinlib.errors import SpecError
from joinlib.lookup.postgres import PostgresTable
from joinlib.postgres.connection import patient
from tests import configs
from tests.postgres.database import PASSWORD, Database

TLS_REQUEST, GSS_REQUEST = 80877103, 80877104


def encrypted(server: Database, **more: Any) -> bool:
    """Is the connection of a table, as the server sees it?"""
    query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    config = configs.table("guarded", query=query, **{**server.fields, **more})
    table = PostgresTable(config, pa.schema([("ssl", pa.bool_())]))
    (row,) = patient(table.config, lambda: pa.Table.from_batches(table.read_all())).to_pylist()
    return bool(row["ssl"])


@pytest.mark.parametrize(
    ("more", "tls"),
    [
        ({}, True),
        ({"mode": "disable"}, False),
        ({"mode": "verify-ca"}, True),
        ({"mode": "verify-full", "host": "localhost"}, True),
    ],
)
def test_modes(database: Database, more: dict[str, Any], tls: bool) -> None:
    """Encrypted unless told otherwise; a server that can prove who it is is let in."""
    if more.get("mode", "").startswith("verify"):
        more["ca_file"] = database.authority
    assert encrypted(database, **more) == tls


@pytest.mark.parametrize(
    ("address", "tls"),
    [
        ("postgresql://joiner@127.0.0.1:{port}/shop", True),
        ("postgresql://joiner@127.0.0.1:{port}/shop?connect_timeout=5", True),
        ("postgresql://joiner@127.0.0.1:{port}/shop?sslmode=disable", False),
        ("host=127.0.0.1 port={port} dbname=shop user=joiner", True),
        ("host=127.0.0.1 port={port} dbname=shop user=joiner sslmode=disable", False),
    ],
)
def test_a_connection_string_has_the_last_word(
    database: Database, monkeypatch: pytest.MonkeyPatch, address: str, tls: bool
) -> None:
    """Where it says nothing of TLS, TLS is asked for."""
    monkeypatch.setenv("SHOP_URI", address.format(port=database.port))
    given = dict.fromkeys(("host", "database", "user"))
    assert encrypted(database, uri_env="SHOP_URI", **given) == tls


def test_a_question_mark_in_the_password(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no beginning of parameters."""
    database.execute("ALTER ROLE joiner PASSWORD 'what?sslmode=disable'", as_superuser=True)
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("SHOP_URI", f"postgresql://joiner:what?sslmode=disable@127.0.0.1:{database.port}/shop")
    try:
        assert encrypted(database, uri_env="SHOP_URI", host=None, database=None, user=None)
    finally:
        database.execute(f"ALTER ROLE joiner PASSWORD '{PASSWORD}'", as_superuser=True)


def test_a_server_of_another_name_or_authority(database: Database, tmp_path: Path) -> None:
    """Refused, with a word; nothing is asked again for a minute."""
    with pytest.raises(SpecError, match=r"inputs\.guarded: .*does not match host name.*; correct the host"):
        encrypted(database, mode="verify-full", ca_file=database.authority)
    other = tmp_path / "ca.crt"
    with Database() as stranger:
        shutil.copy(stranger.authority, other)
    with pytest.raises(
        SpecError, match=r"certificate verify failed; caFile of postgres\.security did not sign"
    ):
        encrypted(database, mode="verify-ca", ca_file=other)


@pytest.fixture
def eavesdropper() -> Iterator[tuple[int, list[bytes]]]:
    """A server that has no TLS and asks for the password in clear: its port, and what it was told."""
    told: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def message(client: socket.socket) -> bytes:
        (size,) = struct.unpack(">I", client.recv(4))
        return client.recv(size - 4)

    def answer(client: socket.socket) -> None:
        while struct.unpack(">I", message(client)[:4])[0] in (TLS_REQUEST, GSS_REQUEST):
            client.sendall(b"N")
        client.sendall(b"R" + struct.pack(">II", 8, 3))  # the password, as it is
        client.recv(1)
        told.append(message(client))

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client:
                try:
                    answer(client)
                except (OSError, struct.error):  # it has hung up
                    continue

    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1], told
    server.close()


def test_who_refuses_tls_gets_no_password(
    eavesdropper: tuple[int, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only if the spec says so: then the same server gets it."""
    port, told = eavesdropper
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    fields: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": port,
        "database": "d",
        "user": "u",
        "patience_us": 1,
    }
    schema = pa.schema([("k", pa.int64())])
    with pytest.raises(
        SpecError, match=r"server does not support SSL.*postgres\.security: \{mode: disable\}"
    ):
        PostgresTable(configs.table("t", table="t", **fields), schema).check()
    assert told == []
    with pytest.raises(Exception, match=r"inputs\.t"):
        PostgresTable(configs.table("t", table="t", **fields, mode="disable"), schema).check()
    assert told[0] == PASSWORD.encode() + b"\0"
