"""Leaves secrets and rows out of texts.

    secrets    the contents of the variables and files that a spec names, and of variables that are named like logins,
               wherever they stand; logins in addresses; what follows a word such as password
    rows       of a log, messages of errors other than our own keep their class only; in other lines
               quoted texts and numbers are masked, except in their beginning and in stack frames

Law: a secret that is known never passes, whatever surrounds it.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from joinlib.deploy import TRACES_HEADERS
from joinlib.errors import StreamJoinError, Unforeseen
from joinlib.spec.model import LOGIN

GONE = "«left out»"
_SHORTEST = 4  # characters: less is no secret, and would hide half of the text
_LARGEST = 100_000  # bytes of a file that holds one
_LONGEST = 2000  # characters of an error
_ADDRESS = re.compile(r"(\w[\w+.-]*://)[^/\s@]+@")
_WORD = re.compile(
    r"((?:password|passwd|pwd|passphrase|secret|token|api[_-]?key|authorization|credentials?)\w*[\"']?\s*[=:]\s*)"
    r"(?:bearer\s+|basic\s+)?(\"[^\"]*\"|'[^']*'|[^\s,;&}]+)",
    re.IGNORECASE,
)
_FRAME = re.compile(r'\s*(?:at [\w$.<>/]+\(|File "|\.\.\. \d+ more)')
_PLAIN = re.compile(r"\d{2,4}[-/]\d\d[-/]\d\d[ T][\d:.,]+ INFO ")  # what goes as planned quotes no rows
_LOGGED = re.compile(
    r"(?:\d{2,4}[-/]\d\d[-/]\d\d[ T][\d:.,]+ )?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL) [\w.$-]+: "
)
_OURS = re.compile(r"joinlib\.errors\.(?!Unforeseen)\w+: .+")
_RAISED = re.compile(r"\b((?:[\w$]+\.)*[\w$]*(?:Error|Exception|Unforeseen|Interrupt)): .+")
_VALUE = re.compile(r"'[^']*'|\"[^\"]*\"|\b\d[\d.,]*\b")


@dataclass(frozen=True)
class Redaction:
    """What must not be in any text."""

    secrets: tuple[str, ...] = ()

    def text(self, given: str) -> str:
        """Return a text without secrets."""
        for secret in self.secrets:
            given = given.replace(secret, GONE)
        return _WORD.sub(rf"\1{GONE}", _ADDRESS.sub(rf"\1{GONE}@", given))

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


def of(spec: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Redaction:
    """Return what must not be told of a job with this spec, as far as this machine knows it.

    Texts among the values of parameters are left out as well: a plan shows them.
    """
    named = {value for key, value in _leaves(spec) if key.endswith("Env")}
    held = [v for name, v in environment.items() if name in named or re.search(LOGIN, name)]
    held += _headers(environment.get(TRACES_HEADERS, ""))
    files = [Path(value) for key, value in _leaves(spec) if key.endswith("File")]
    parameters = (spec.get("parameters") or {}).values()
    values = (one["value"] if isinstance(one, Mapping) else one for one in parameters)  # and not its type
    given = [text for value in values for _, text in _leaves(value)]
    known = (*held, *given, *map(_contents, files))
    found = {part for text in known for line in (text, *text.splitlines()) for part in _written(line.strip())}
    return Redaction(tuple(sorted((s for s in found if len(s) >= _SHORTEST), key=len, reverse=True)))


def _headers(given: str) -> Iterator[str]:
    """Yield what headers say, as it is written and as it is sent, and the part of it that follows Bearer."""
    for pair in given.split(","):
        written = pair.partition("=")[2].strip()
        yield from (written, sent := unquote(written), sent.rpartition(" ")[2])


def _written(text: str) -> Iterator[str]:
    """Yield a text as it is, and as it stands in SQL and in JSON."""
    yield from (text, text.replace("'", "''"), text.replace("'", "\\'"), json.dumps(text)[1:-1])


def _line(line: str) -> str:
    if _FRAME.match(line) or _PLAIN.match(line):
        return line
    head, ours = _LOGGED.match(line), _OURS.search(line)
    begin, end = head.end() if head else 0, ours.start() if ours else len(line)
    return line[:begin] + _VALUE.sub("…", _RAISED.sub(r"\1: …", line[begin:end])) + line[end:]


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of a document, with the name of its field."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, str(name))
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for inner in value:
            yield from _leaves(inner, key)
    elif isinstance(value, str):
        yield key, value


def _contents(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_LARGEST).decode(errors="replace")
    except OSError:
        return ""
