"""How does Spark run a stage? The only package that knows Spark: source, exchange, stateful operator, sink, session."""

from typing import Any

__all__ = ["join"]


def __getattr__(name: str) -> Any:
    """`join` is loaded when it is asked for: workers, which import this package too, need no SQL parser."""
    if name == "join":
        from joinlib.spark.api import join

        return join
    raise AttributeError(name)
