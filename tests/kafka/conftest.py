"""One broker for all tests of a process that do not end it.

Where no Java, Maven or openssl is to be had, the tests are skipped with the reason; in CI that is an error.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kafka import broker as brokers
from tests.kafka import registry as registries
from tests.kafka.broker import Broker
from tests.kafka.registry import Registry


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Shared: tests make topics of their own names, and leave it running."""
    yield from _started(tmp_path_factory.mktemp("broker"))


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """For a test that kills it."""
    yield from _started(tmp_path / "broker")


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """Shared: tests use subjects of their own names."""
    with ExitStack() as stack:
        try:
            registry = stack.enter_context(registries.running(tmp_path_factory.mktemp("registry")))
        except registries.NoRegistry as e:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(e))
        yield registry


def _started(folder: Path) -> Iterator[Broker]:
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(brokers.running(folder))
        except brokers.Cannot as e:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(e))
        yield broker
