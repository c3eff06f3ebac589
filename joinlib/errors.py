"""The errors that StreamJoin raises on purpose, grouped by what the caller should do.

    StreamJoinError
    ├── SpecError      the user's mistake: file, SQL, schema or data do not fit; retrying cannot help
    │   ├── SqlError   the same, at a line and column of the SQL
    │   └── ConditionError  a condition that is asked of a job cannot be: the mistake is in no file
    ├── InputError     an input cannot be read: a file is damaged, has changed or does not fit its schema
    ├── NotReady       try again later: another process holds the checkpoint, a resource is missing
    ├── StateError     the stored state is damaged or belongs to another query: stop, nothing was joined
    └── Unforeseen     a program's error in a task: the same rows raise it again until the program is fixed

Messages name the place (file, line, column, segment) and the fix. They never hold a secret or a row's values;
only the text of a program's own error (Unforeseen) may hold a value.
"""

from collections.abc import Iterator
from contextlib import contextmanager

NOTE = "StreamJoin was in "  # begins the line that a task adds to an error: where it was
GO_ON = "run again, the job goes on where it was"
# What to do about a checkpoint whose newest batches are damaged.
WAY_BACK = (
    "go back to an earlier batch (`streamjoin restore FILE`), restore the checkpoint together with its"
    " output from a copy, or start with new ones"
)


class StreamJoinError(Exception):
    """Base of all errors that StreamJoin raises on purpose."""


class SpecError(StreamJoinError):
    """The spec, its SQL or its schemas are wrong; the message says where and what to write instead.

    `output`: the name of the one of several outputs that it is about.
    """

    output = ""


class SqlError(SpecError):
    """The SQL cannot be run.

    `line` and `column` count from 1 and point into the SQL text (0: unknown), or into that of a view of the spec:
    `view` is its name, or outputs.NAME for the text of one of several outputs. `more`: other mistakes, which follow it.
    """

    def __init__(
        self,
        message: str,
        line: int = 0,
        column: int = 0,
        view: str = "",
        more: tuple["SqlError", ...] = (),
        output: str = "",
    ) -> None:
        self.message, self.line, self.column, self.view = message, line, column, view
        self.more, self.output = more, output
        named = f"{view if '.' in view else f'view {view}'}, " if view else ""
        own = f"{named}line {line}, column {column}: {message}" if line else message
        super().__init__("\n".join([own, *map(str, more)]))

    def __reduce__(self) -> tuple[object, ...]:
        return (SqlError, (self.message, self.line, self.column, self.view, self.more, self.output))


class ConditionError(SpecError):
    """A condition that is asked from outside of a spec cannot be."""

    def __init__(self, message: str) -> None:
        super().__init__(f"CONDITION: {message}")


@contextmanager
def of_output(name: str) -> Iterator[None]:
    """Note on a mistake that is raised in the block that it is about this output; none has no name."""
    try:
        yield
    except SpecError as error:
        error.output = error.output or name
        raise


class InputError(StreamJoinError):
    """An input cannot be read."""


class NotReady(StreamJoinError):
    """Something is not available now, but may be later: try again."""


class StateError(StreamJoinError):
    """Stored state is damaged or belongs to another query."""


class Unforeseen(StreamJoinError):
    """A task ended by an error without a message of ours: a defect, or data that no check foresaw."""


_MENDED_BY_PEOPLE = (
    *(SpecError, InputError, StateError, Unforeseen, PermissionError),
    # a program's own errors, which the same input raises again
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
)


def exit_code(error: BaseException) -> int:
    """Return 1 where running again may help, 2 where a human must act first."""
    return 2 if isinstance(error, _MENDED_BY_PEOPLE) else 1
