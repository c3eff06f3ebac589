"""What does the user want joined? The spec, as frozen values; a file is valid, or all its mistakes are named.

    from joinlib.spec import load
    job = load("orders.yaml")
    job.spec.inputs["orders"].arrow_schema

An error names the line and the field.
"""

from joinlib.spec.load import load, parse, telling_of
from joinlib.spec.model import StreamJoin
from joinlib.spec.schema import json_schema

__all__ = ["StreamJoin", "json_schema", "load", "parse", "telling_of"]
