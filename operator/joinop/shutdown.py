"""What the event loop reports while the operator ends.

kopf leaves its watches to the loop, which closes all generators side by side: one that wraps another may find
the inner one closed already, and the loop reports that as an error. Nothing is lost by it, and whoever reads
the log of a rollout should not wonder.
"""

import asyncio
from typing import Any


def quiet_closing(loop: asyncio.AbstractEventLoop) -> None:
    """Leave generators that fail while the loop closes them out of the log, and nothing else."""
    loop.set_exception_handler(_report)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if "asyncgen" not in context:
        loop.default_exception_handler(context)
