"""Leaves secrets and rows out of texts.

    secrets    the contents of the variables and files that a spec names, and of variables that are named like logins,
               wherever they stand and however they are written (`known`); what looks like one (`announced`)
    rows       of a log, messages of errors other than our own keep their class only; in other lines
               quoted texts and numbers are masked, except in their beginning and in stack frames

Law: a secret that is known never passes, whatever surrounds it.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.report.announced import MARK, without_announced
from jobs.report.known import known
from joinlib.errors import StreamJoinError, Unforeseen

GONE = "«left out»"
_LONGEST = 2000  # characters of an error
_MARKS = re.compile(f"{MARK}+")
_FRAME = re.compile(r'\s*(?:at [\w$.<>/]+\(|File "|\.\.\. \d+ more)')
_PLAIN = re.compile(r"\d{2,4}[-/]\d\d[-/]\d\d[ T][\d:.,]+ INFO ")  # what goes as planned quotes no rows
_LOGGED = re.compile(
    r"(?:\d{2,4}[-/]\d\d[-/]\d\d[ T][\d:.,]+ )?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL) [\w.$-]+: "
)
_OURS = re.compile(r"joinlib\.errors\.(?!Unforeseen)\w+: .+")
_ENDS = ("Error", "Exception", "Unforeseen", "Interrupt")
_RAISED = re.compile(rf"(?<![\w$.])([\w$.]++(?:{'|'.join(f'(?<={end})' for end in _ENDS)})): .+")
_VALUE = re.compile(r"'[^']*'|\"[^\"]*\"|\b\d[\d.,]*\b")


@dataclass(frozen=True)
class Redaction:
    """What must not be in any text."""

    secrets: tuple[str, ...] = ()

    def text(self, given: str) -> str:
        """Return a text without secrets."""
        given = given.replace(MARK, "")
        for secret in self.secrets:
            given = given.replace(secret, MARK)
        return _MARKS.sub(GONE, without_announced(given))

    def error(self, given: Exception) -> str:
        """Return what is told of an error: of one that is not our own, only its class, since it may quote rows."""
        if isinstance(given, StreamJoinError) and type(given) not in (StreamJoinError, Unforeseen):
            return self.text(str(given))[:_LONGEST]
        return f"{type(given).__name__}: its message, which may quote rows, is in the job's log"

    def log(self, given: str) -> str:
        """Return a log without secrets, and without values that may be of rows."""
        return "\n".join(map(_line, self.text(given).splitlines())) + "\n"

    def document(self, given: Any) -> Any:
        """Return a document without secrets in its texts: as YAML or JSON they may be escaped and folded."""
        if isinstance(given, Mapping):
            return {key: self.document(value) for key, value in given.items()}
        if isinstance(given, list | tuple):
            return [self.document(value) for value in given]
        return self.text(given) if isinstance(given, str) else given


def of(
    spec: Mapping[str, Any], environment: Mapping[str, str] = os.environ, *, files: bool = True
) -> Redaction:
    """Return what must not be told of a job with this spec, as far as this machine knows it.

    Texts among the values of parameters are left out as well: a plan shows them. `files` says whether the files that
    the spec names are this machine's; those of a cluster's spec are not, and are not read.
    """
    return Redaction(known(spec, environment, files=files))


def _line(line: str) -> str:
    if _FRAME.match(line) or _PLAIN.match(line):
        return line
    head, ours = _LOGGED.match(line), _OURS.search(line)
    begin, end = head.end() if head else 0, ours.start() if ours else len(line)
    return line[:begin] + _VALUE.sub("…", _RAISED.sub(r"\1: …", line[begin:end])) + line[end:]
