"""How does Spark run a stage? Only this package knows Spark: source, operator, sink and session."""

from typing import Any

__all__ = ["join"]


def __getattr__(name: str) -> Any:
    """Load `join` on first use: workers, which import this package too, need no SQL parser."""
    if name == "join":
        from joinlib.spark.api import join

        return join
    raise AttributeError(name)
