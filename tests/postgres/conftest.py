"""One server for all tests of a process."""

from collections.abc import Iterator

import pytest

from tests.postgres.database import PASSWORD, USER, Database

_count = iter(range(1000))


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    """A server that is there; its password is in the environment, as a job would have it."""
    with Database() as db, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)
        yield db


@pytest.fixture(scope="session")
def logical() -> Iterator[Database]:
    """A server that decodes its log, for a user who may read it."""
    more = {
        "wal_level": "logical",
        "max_replication_slots": "30",
        "max_connections": "60",
        "log_statement": "none",
    }
    with Database(**more) as db, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)
        db.execute(f"ALTER ROLE {USER} REPLICATION", as_superuser=True)
        yield db


@pytest.fixture
def table(logical: Database) -> Iterator[str]:
    """A table of its own, published as `p_TABLE`, and dropped with the slot of the same name."""
    name = f"t{next(_count)}"
    logical.execute(f"CREATE TABLE {name} (id bigint PRIMARY KEY, v text, n numeric(12,2), extra text)")
    logical.execute(f"CREATE PUBLICATION p_{name} FOR TABLE {name}")
    yield name
    drop(logical, name)


def drop(logical: Database, name: str) -> None:
    if not logical.running:
        return
    logical.execute(
        "SELECT pg_drop_replication_slot(slot_name)::text FROM pg_replication_slots"
        f" WHERE slot_name LIKE '{name}%' AND NOT active"
    )
    logical.execute(f"DROP PUBLICATION IF EXISTS p_{name}")
    logical.execute(f"DROP TABLE IF EXISTS {name}")
