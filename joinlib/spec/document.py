"""Reads a YAML text as plain values, with a line for every path into them."""

from collections.abc import Hashable, Iterator

import yaml

from joinlib.spec.base import Problem

Place = tuple[str | int, ...]


class Document:
    """One YAML document. Lines are looked up on demand, so aliases cost nothing until they are needed.

    Raises:
        yaml.YAMLError: if the text is not a single YAML document.
    """

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        loader = yaml.SafeLoader(text)
        try:
            self._root: yaml.Node | None = loader.get_single_node()
            self.doubles = list(_doubles(self._root))
            self.value: object = loader.construct_document(self._root) if self._root is not None else None
        finally:
            loader.dispose()

    def within(self, place: Place, line: int, column: int) -> tuple[int, int] | None:
        """Return where a line and column of a string are in the text (all from 1);
        None where YAML has folded its lines.
        """
        node = self._root
        for step in place:
            found = _child(node, step)
            node = None if found is None else found[1]
        if not isinstance(node, yaml.ScalarNode):
            return None
        if node.style == "|":
            at, rows = node.start_mark.line + line, node.value.split("\n")
            return at + 1, len(self._lines[at]) - len(rows[line - 1]) + column
        if node.style == ">" or node.start_mark.line != node.end_mark.line:
            return None
        return node.start_mark.line + 1, node.start_mark.column + column + (node.style is not None)

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


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """The node whose line represents the step, and the node that the step leads to."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None


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
