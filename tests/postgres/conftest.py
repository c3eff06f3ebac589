"""One server for all tests of a process."""

from collections.abc import Iterator

import pytest

from tests.postgres.database import PASSWORD, Database


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    """A server that is there; its password is in the environment, as a job would have it."""
    with Database() as db, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)
        yield db
