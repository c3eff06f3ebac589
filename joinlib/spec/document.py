"""Reads a YAML text as plain values, with a line for every path into them.

Law: a key is text as it was written: `null` and `on` are names of fields and columns, not values.
"""

from collections.abc import Hashable, Iterator, Mapping

import yaml

from joinlib.spec.base import Problem

Place = tuple[str | int, ...]
DEEPEST = 100  # levels of a document; a spec has about ten
_EMPTY = "tag:yaml.org,2002:null"
_WORDS = frozenset(
    {_EMPTY, "tag:yaml.org,2002:bool"}
)  # what YAML reads as a value where it is written plainly


class DocumentError(Exception):
    """A text is YAML, and yet no document that is read: it holds several, or none, or one that is nested too deeply."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Document:
    """One YAML document; among several, the only one whose `kind` is the wanted one.

    Lines are those of the text. They are looked up on demand, so aliases cost nothing until they are needed.

    Raises:
        yaml.YAMLError: if the text is not YAML, or several documents where no kind is wanted.
        DocumentError: if no document is of the kind, or several are, or one is nested too deeply.
    """

    def __init__(self, text: str, kind: str = "") -> None:
        self._text = text
        loader = _Loader(text)
        try:
            self._root = _chosen(loader, kind) if kind else loader.get_single_node()
            self.doubles = list(_doubles(self._root))
            self.value: object = loader.construct_document(self._root) if self._root is not None else None
        finally:
            loader.dispose()

    def within(self, place: Place, line: int, column: int) -> tuple[int, int] | None:
        """Return where a line and column of a string are in the text (all from 1); None where escapes hide it."""
        node = self._root
        for step in place:
            found = _child(node, step)
            node = None if found is None else found[1]
        if not isinstance(node, yaml.ScalarNode):
            return None
        at = _aligned(self._text, node, line, column)
        return None if at is None else (self._text.count("\n", 0, at) + 1, at - self._text.rfind("\n", 0, at))

    def written(self, place: Place) -> str:
        """Return the text of a value, as if it began a line; empty if there is none."""
        if (found := self._span(place)) is None:
            return ""
        start, stop = found
        indent = start - self._text.rfind("\n", 0, start) - 1
        first, *others = self._text[start:stop].split("\n")
        return "\n".join([first, *(line[_blanks(line, indent) :] for line in others)])

    def with_values(self, values: Mapping[Place, str]) -> str:
        """Return the text with other values, as YAML writes them, at places that it has; none is within another."""
        spans = {place: span for place in values if (span := self._span(place)) is not None}
        text = self._text
        for place in sorted(spans, key=spans.__getitem__, reverse=True):
            start, stop = spans[place]
            indent = " " * (start - text.rfind("\n", 0, start) - 1)
            first, *others = values[place].split("\n")
            value = "\n".join([first, *(indent + line if line else line for line in others)])
            text = f"{text[:start]}{value}{text[stop:]}"
        return text

    def _span(self, place: Place) -> tuple[int, int] | None:
        """Return where the value at a place begins and ends, without blanks and comments around it."""
        node = self._root
        for step in place:
            found = _child(node, step)
            if found is None:
                return None
            node = found[1]
        if node is None:
            return None
        start, stop = node.start_mark.index, _last(node).end_mark.index
        return start, start + len(self._text[start:stop].rstrip())

    def line(self, place: Place) -> int:
        """Return the line, from 1, of the deepest part of `place` that exists."""
        node, mark = self._root, self._root.start_mark if self._root is not None else None
        for step in place:
            found = _child(node, step)
            if found is None:
                break
            marked, node = found
            mark = marked.start_mark
        return mark.line + 1 if mark is not None else 1


class _Loader(yaml.SafeLoader):
    """Reads keys as they were written, and refuses what is nested too deeply before it exhausts Python's stack."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        if self._depth > DEEPEST:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise DocumentError(f"is nested too deeply; write at most {DEEPEST} levels", mark.line + 1)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        for key, _ in node.value:
            if key.tag in _WORDS and isinstance(key, yaml.ScalarNode):
                key.tag = self.DEFAULT_SCALAR_TAG


def _chosen(loader: _Loader, kind: str) -> yaml.Node | None:
    """Return the only document, or the only one of a kind."""
    documents = []
    while loader.check_node():
        documents.append(loader.get_node())
    filled = [node for node in documents if node is not None and node.tag != _EMPTY]
    if len(filled) <= 1:
        return next(iter(filled), None)
    found = [node for node in filled if _kind(node) == kind]
    if len(found) != 1:
        line = found[1].start_mark.line + 1 if found else 1
        said = (
            f"holds {len(found)} {kind}s; keep one" if found else f"holds {len(filled)} documents, no {kind}"
        )
        raise DocumentError(said, line)
    return found[0]


def _kind(node: yaml.Node) -> str:
    found = _child(node, "kind")
    return str(found[1].value) if found is not None else ""


def _aligned(text: str, node: yaml.ScalarNode, line: int, column: int) -> int | None:
    """Find the place of a character of a string in the text that it was written in.

    YAML folds lines and cuts indents, but leaves what is no blank as it was: so what is no blank is counted. A
    quote within quotes is written twice.
    """
    value = str(node.value)
    wanted = sum(len(row) + 1 for row in value.split("\n")[: line - 1]) + column - 1
    at = node.start_mark.index
    at = text.index("\n", at) if node.style in ("|", ">") else at + (node.style is not None)
    for number, sign in enumerate(value[: wanted + 1]):
        if sign.isspace() and number < wanted:
            continue
        while text[at : at + 1].isspace():
            at += 1
        if text[at : at + 1] != sign and not sign.isspace():
            return None
        if number < wanted:
            at += 2 if node.style == "'" == sign else 1
    return min(at, node.end_mark.index)


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """The node whose line represents the step, and the node that the step leads to."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None


def _blanks(line: str, most: int) -> int:
    """Return with how many blanks a line begins, up to so many."""
    return min(len(line) - len(line.lstrip(" ")), most)


def _last(node: yaml.Node) -> yaml.Node:
    """Return the node that ends where the text of a node does: a block's own end is that of the blanks behind it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node


def _doubles(root: yaml.Node | None) -> Iterator[tuple[int, Problem]]:
    """Find keys that a mapping has twice: YAML would silently drop the first."""
    waiting: list[tuple[Place, yaml.Node]] = [((), root)] if root is not None else []
    met: set[int] = set()
    while waiting:
        place, node = waiting.pop()
        if id(node) in met:
            continue
        met.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += [((*place, index), child) for index, child in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            continue
        lines: dict[Hashable, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            name = key.value if isinstance(key, yaml.ScalarNode) else id(key)
            waiting.append(((*place, str(name)), value))
            if name in lines and name != "<<":
                yield (
                    line,
                    Problem((*place, str(name)), f"appears twice, first at line {lines[name]}; remove one"),
                )
            lines.setdefault(name, line)
