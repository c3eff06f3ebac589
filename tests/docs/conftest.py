"""The servers that pages need, one of each for all pages of a process."""

from tests.kafka.conftest import broker, registry
from tests.postgres.conftest import database

__all__ = ["broker", "database", "registry"]
