"""Reads a YAML text as plain values, with a line for every path into them."""

from collections.abc import Hashable, Iterator

import yaml

from joinlib.spec.base import Problem

Place = tuple[str | int, ...]
DEEPEST = 100  # levels of a document; a spec has about ten


class _Loader(yaml.SafeLoader):
    """Refuses what is nested too deeply, before it exhausts Python's stack."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        if self._depth > DEEPEST:
            problem = f"is nested too deeply; write at most {DEEPEST} levels"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


class Document:
    """One YAML document. Lines are looked up on demand, so aliases cost nothing until they are needed.

    Raises:
        yaml.YAMLError: if the text is not a single YAML document.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        loader = _Loader(text)
        try:
            self._root: yaml.Node | None = loader.get_single_node()
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
