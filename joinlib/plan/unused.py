"""What a spec declares and its queries do not use, which is a mistake or can go. Law: each is told once; nothing changes."""

import re
from collections.abc import Iterator

from sqlglot import exp

from joinlib.spec.model import Spec
from joinlib.sql.depth import with_room
from joinlib.sql.parse import parse_query
from joinlib.sql.text import composed, names_of, program


def unused(spec: Spec) -> Iterator[str]:
    """Yield a note for each input, view, parameter and function that the queries of a spec, which can be run, do not use."""
    texts = {name: output.sql for name, output in spec.outputs.items()}
    whole = (
        program(texts, spec.views, spec.parameters)
        if texts
        else composed(spec.sql, spec.views, spec.parameters)
    )
    sql, written = whole.sql, "\n".join([*(texts.values() or [spec.sql]), *spec.views.values()])
    tree = with_room(lambda: parse_query(sql))
    read = {name.lower() for table in tree.find_all(exp.Table) for name in names_of(table)}
    yield from (f"inputs.{name}: no query reads it" for name in spec.inputs if name.lower() not in read)
    for name in spec.views:
        if name.lower() not in read:
            yield f"views.{name}: no query reads it, so it is not checked"
    for name in spec.parameters:
        if not re.search(rf"\$\{{\s*{name}\s*\}}", written):
            yield f"parameters.{name}: no query names it as ${{{name}}}"
    for name in spec.functions:
        if not re.search(rf"\b{name}\b`?\s*\(", sql, re.IGNORECASE):
            yield f"functions.{name}: no query calls it"
