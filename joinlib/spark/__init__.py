"""How does Spark run a stage? The only package that knows Spark: source, exchange, stateful operator, sink, session."""

from joinlib.spark.api import join

__all__ = ["join"]
