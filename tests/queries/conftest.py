"""All files of these tests are in memory."""

from tests.memory import in_memory  # noqa: F401 - a fixture
