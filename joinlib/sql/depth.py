"""Limits how deeply the text may nest.

Law: a chain of AND or OR is flat, however long; everything else is rejected beyond a fixed depth.

Text that is rejected here would otherwise fail later with an error that does not point at it: Python
recurses, and so does the pickling of expressions for the workers. The parser runs with stack to spare, so
that text that is too deep can be rejected at its place.
"""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.sql.parse import place

T = TypeVar("T")
DEEPEST = 150  # levels of the syntax tree; cloudpickle manages 200 at Python's default limit of 1000 frames
_FRAMES, _STACK = 20_000, 256 << 20  # frames and bytes for the parser, which takes some 20 frames a level
_ROOM = threading.Lock()  # both limits belong to the whole process


def check_depth(sql: str, select: exp.Select) -> None:
    """Raise SqlError at the first part that is nested too deeply."""
    todo: list[tuple[exp.Expr, int]] = [(select, 0)]
    while todo:
        node, depth = todo.pop()
        if depth > DEEPEST:
            raise SqlError(_TOO_DEEP, *place(sql, node))
        for child in node.iter_expressions():
            chained = isinstance(node, exp.And | exp.Or) and type(child) is type(node) and child is node.this
            todo.append((child, depth if chained else depth + 1))


def with_room(work: Callable[[], T]) -> T:
    """Run `work` with a stack for text that is nested some hundred levels deep, and return its result.

    Raises:
        SqlError: if even that stack is too small.
    """
    with _ROOM:
        frames, stack = sys.getrecursionlimit(), threading.stack_size(_STACK)
        sys.setrecursionlimit(max(frames, _FRAMES))
        try:
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(copy_context().run, work).result()
        except RecursionError as error:
            raise SqlError(_TOO_DEEP, 1, 1) from error
        finally:
            sys.setrecursionlimit(frames)
            threading.stack_size(stack)


_TOO_DEEP = (
    f"the text is nested more than {DEEPEST} levels deep; AND, OR, IN lists and the WHENs of a CASE may be"
    " as long as you like, other operators, functions and parentheses within each other may not"
)
