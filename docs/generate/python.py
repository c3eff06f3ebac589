"""docs/reference/python.md: the Python API, from its docstring and signature."""

import inspect
import re
from collections.abc import Iterator

from docs.generate.markdown import code, page, table
from joinlib.spark import join

_HEAD = """\
# Python reference

<!-- Made by docs/build from the docstring of joinlib.spark.join; edit that, not this page. -->

A join can be part of a Spark program: streaming DataFrames go in, a streaming DataFrame comes out.
`from joinlib.spark import join` is all that it takes.

## `join`
"""
_SECTION = re.compile(r"^(Args|Returns|Raises|Example):$", re.MULTILINE)
_ENTRY = re.compile(r"^    (\w+): (.*)$")


def made() -> str:
    """The page."""
    signature = inspect.signature(join)
    pieces = _SECTION.split(inspect.getdoc(join) or "")
    sections = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    lines = [_HEAD, pieces[0].strip(), *_called(signature)]
    lines += ["\n### Arguments\n", *_arguments(signature, sections["Args"])]
    lines += ["\n### Returns\n", " ".join(sections["Returns"].split())]
    lines += [
        "\n### Raises\n",
        *table(("Error", "When"), [(code(n), text) for n, text in _entries(sections["Raises"])]),
    ]
    lines += ["Both are in `joinlib.errors`; a `SqlError` is a `SpecError`.", "\n### Example\n"]
    lines += [
        "`spark` is the session, `folder` a folder for files. The example is run by the tests.\n",
        "```python",
    ]
    lines += [line.removeprefix("    ") for line in sections["Example"].strip("\n").splitlines()]
    return page(line for part in [*lines, "```"] for line in part.split("\n"))


def _called(signature: inspect.Signature) -> Iterator[str]:
    positional = [p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [f"{p.name}={p.default!r}" for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
    yield "\n```text"
    yield f"join({', '.join(positional)}, *,"
    yield f"     {', '.join(named)})"
    yield "```"


def _arguments(signature: inspect.Signature, text: str) -> Iterator[str]:
    described = dict(_entries(text))
    assert list(described) == list(signature.parameters), "the docstring has every argument, in order"
    rows = [
        (code(p.name), code(_annotation(p)), _default(p), described[p.name])
        for p in signature.parameters.values()
    ]
    return table(("Argument", "Type", "Default", "Meaning"), rows)


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Name and text of each entry of a section."""
    name, words = "", list[str]()
    for line in text.splitlines():
        if found := _ENTRY.match(line):
            if name:
                yield name, " ".join(words)
            name, words = found[1], [found[2]]
        else:
            words += line.split()
    yield name, " ".join(words)


def _annotation(parameter: inspect.Parameter) -> str:
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", inspect.formatannotation(parameter.annotation))


def _default(parameter: inspect.Parameter) -> str:
    return "required" if parameter.default is parameter.empty else code(repr(parameter.default))
