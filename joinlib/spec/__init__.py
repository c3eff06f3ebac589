"""What does the user want joined? The spec, as frozen values; a file is valid, or all its mistakes are named.

    from joinlib.spec import load
    job = load("orders.yaml")
    job.spec.inputs["orders"].arrow_schema

An error names the line and the field.
"""

from joinlib.spec.load import load, parse
from joinlib.spec.model import StreamJoin
from joinlib.spec.schema import json_schema
from joinlib.spec.telling import telling_of

__all__ = ["StreamJoin", "json_schema", "load", "parse", "telling_of"]
