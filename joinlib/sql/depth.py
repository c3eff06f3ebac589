"""How deep may the text nest? Law: a chain of AND or OR is flat, however long; all else is refused below a fixed depth.

What is refused here would fail later without a word of the text: Python recurses, and so does what pickles an expression
for the workers. The text itself is read with room to spare, so that it can be refused at its place.
"""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.sql.parse import place

T = TypeVar("T")
DEEPEST = 150  # levels of the syntax tree; cloudpickle follows 200 at Python's usual limit of 1000 frames
_FRAMES, _STACK = 20_000, 256 << 20  # for the parser, which takes some 20 frames a level; bytes
_ROOM = threading.Lock()  # limits are of the process


def check_depth(sql: str, select: exp.Select) -> None:
    """Raise at the first part that lies too deep."""
    todo: list[tuple[exp.Expr, int]] = [(select, 0)]
    while todo:
        node, depth = todo.pop()
        if depth > DEEPEST:
            raise SqlError(_TOO_DEEP, *place(sql, node))
        for child in node.iter_expressions():
            chained = isinstance(node, exp.And | exp.Or) and type(child) is type(node) and child is node.this
            todo.append((child, depth if chained else depth + 1))


def with_room(work: Callable[[], T]) -> T:
    """What `work` gives, with a stack for text that is nested some hundred levels deep; SqlError below that."""
    with _ROOM:
        frames, stack = sys.getrecursionlimit(), threading.stack_size(_STACK)
        sys.setrecursionlimit(max(frames, _FRAMES))
        try:
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(work).result()
        except RecursionError as error:
            raise SqlError(_TOO_DEEP, 1, 1) from error
        finally:
            sys.setrecursionlimit(frames)
            threading.stack_size(stack)


_TOO_DEEP = (
    f"the text is nested more than {DEEPEST} levels deep; AND, OR, IN lists and the WHENs of a CASE may be as long as you like,"
    " other operators, functions and parentheses within each other may not"
)
