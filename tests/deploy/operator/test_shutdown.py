"""The log of an operator that ends has no errors of generators that the loop closes, and has all others."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import pytest
from joinop.shutdown import quiet_closing


async def _fails_when_closed() -> AsyncIterator[int]:
    try:
        yield 1
    finally:
        raise RuntimeError("the inner generator is closed already")


async def _left_open(before: Callable[[asyncio.AbstractEventLoop], None]) -> None:
    """Leaves a generator to the loop, as kopf does."""
    loop = asyncio.get_running_loop()
    before(loop)
    loop.left = _fails_when_closed()  # type: ignore[attr-defined]  # until the loop has closed it
    await anext(loop.left)  # type: ignore[attr-defined]
    loop.call_exception_handler({"message": "a callback failed"})


@pytest.mark.parametrize(
    ("before", "generators"),
    [(quiet_closing, False), (lambda loop: None, True)],
    ids=["quiet", "asyncio's own"],
)
def test_errors(
    before: Callable[[asyncio.AbstractEventLoop], None], generators: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)

    asyncio.run(_left_open(before))

    assert ("closing of asynchronous generator" in caplog.text) == generators
    assert "a callback failed" in caplog.text
