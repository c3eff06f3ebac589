"""Translates what ended a query into one sentence: Spark wraps a worker's error in pages of stack traces.

Errors of StreamJoin keep their own message. For known failures (a full disk, a killed process, a truncated
log) the sentence says what happened and how to go on. For any other error it names the place and quotes the
last line of the traceback: as NotReady if it may pass, otherwise as Unforeseen.
"""

import re

from joinlib import errors
from joinlib.errors import GO_ON, NOTE, WAY_BACK, NotReady, SqlError, StateError, StreamJoinError, Unforeseen

_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)")
_AT = re.compile(r"(?:(?:view )?(\S+), )?line (\d+), column (\d+): (.+)")  # how SqlError says where
_WRAPPED = ("pyspark.", "py4j.")  # errors that only wrap another one
_PASSING = (
    "MemoryError", "ArrowMemoryError", "OSError", "ArrowIOError", "ConnectionError", "ConnectionResetError",
    "ConnectionRefusedError", "ConnectionAbortedError", "BrokenPipeError", "TimeoutError", "BlockingIOError",
    "InterruptedError", "FileNotFoundError", "EOFError",
)  # fmt: skip


def translate(text: str, batch: int | None = None) -> StreamJoinError:
    """Translate the text of Spark's exception into an error of StreamJoin.

    `batch` is the one that had begun.
    """
    ours = re.findall(r"^(?:\S+: )?joinlib\.errors\.(\w+): (.+)$", text, re.MULTILINE)
    if ours:
        kind, message = ours[-1]
        return _error(kind, message)
    if "No space left on device" in text:
        return NotReady(
            "the disk is full: free space and run again, the job goes on where it was (nothing is lost)"
        )
    if "Python worker exited unexpectedly" in text:
        return NotReady(f"a Python worker died (killed, or out of memory); {GO_ON}")
    if "Python worker failed to connect back" in text:
        return NotReady(f"a Python worker did not start within 10 s, the machine is too busy; {GO_ON}")
    if cut := re.search(r"Failed to read log file (?:file:)?(.+?)\. ", text):
        return StateError(
            f"{cut[1]} is empty or cut off: a machine that lost its power left it so, or a copy was not"
            f" whole; {WAY_BACK}"
        )
    return _unforeseen(text, batch)


def _unforeseen(text: str, batch: int | None) -> StreamJoinError:
    """Translate an error that is not known; only the last line of a task's traceback is worth showing."""
    place = _place(text, batch)
    raised = [line for line in _TRACEBACK.findall(text) if not line.startswith(_WRAPPED)]
    if not raised:
        return StreamJoinError(f"Spark ended the query{place}: {_reason(text)}")
    last = re.sub(r"\s*SQLSTATE: \w+", "", raised[-1]).strip()
    name = last.partition(":")[0].rpartition(".")[2]
    if name in _PASSING:
        return NotReady(f"a task failed{place}: {last}; {GO_ON}")
    return Unforeseen(f"a task failed{place}: {last}")


def _place(text: str, batch: int | None) -> str:
    """Return the batch and the unit and stage, or the input, as far as they are known."""
    noted = re.findall(rf"^{NOTE}(.+)$", text, re.MULTILINE)
    known = [*([f"batch {batch}"] if batch is not None else []), *noted[-1:]]
    return f" in {', '.join(known)}" if known else ""


def _reason(text: str) -> str:
    """Return what the JVM says, or the first line without Spark's wrapping; the cause has the full text."""
    if java := re.search(r"^: (?:[\w$]+\.)*([\w$]+): (.+)$", text, re.MULTILINE):
        return f"{java[1]}: {java[2]}"
    first = text.strip().partition("\n")[0]
    return first.partition("terminated with exception: ")[2] or first


def _error(kind: str, message: str) -> StreamJoinError:
    if kind == "SqlError" and (told := _AT.fullmatch(message)):
        view, line, column, what = told.groups()
        return SqlError(what, int(line), int(column), view or "")
    cls = getattr(errors, kind, StreamJoinError)
    return cls(message) if issubclass(cls, StreamJoinError) else StreamJoinError(message)
