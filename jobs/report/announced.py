"""Finds secrets that nobody knows, by what stands around them: logins in addresses, and what follows a word such as password.

    postgres://u:p@ss@db/shop   password="a \\" b"   tokens: [a, b]   Authorization: Digest ...   Bearer x   a private key

Law: what is hidden is one `MARK`, and the time is linear in the text: no pattern begins anew within what it has read.
"""

import re

MARK = "\0"  # for what is left out; it is no space, so that what surrounds it stays one word
_LINE = 4096  # characters of a line

_ANNOUNCE = r"password|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|credential"
_NAME = rf"(?>\w*?(?:{_ANNOUNCE}))\w*+\\*[\"']?"
_QUOTED = r"\"(?:\\.|[^\"\\\n])*+\"?|'(?:''|\\.|[^'\\\n])*+'?"  # to the end of the line, if it has no end
_BELOW = r"(?:\n(?:\1(?:[ \t]|-).*|[ \t]*+(?=\n|\Z)))+"  # lines that are indented more, or items, or empty
_HIDDEN = (
    (r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:\s*[\w-]++: .*)*[^-]*(?:-----END [A-Z ]{0,40}-----)?", MARK),
    (r"(?<!\S)((?>\S*?://))\S*@", rf"\1{MARK}@"),  # to the last @: people do not encode those of passwords
    # YAML: a text in lines, or a list.
    (
        rf"(?m)^([ \t]*+)((?>.*?(?:{_ANNOUNCE}))\w*+[\"']?[ \t]*+:[ \t]*+(?:[|>][-+\d]*+)?[ \t]*+){_BELOW}",
        rf"\1\2{MARK}",
    ),
    (rf"(?<!\w)((?>\w*?authorization)\w*+\\*[\"']?\s*+[=:]\s*+)(?:{_QUOTED}|.+)", rf"\1{MARK}"),
    (rf"(?<!\w)({_NAME}\s*+(?:[=-]>|[=:])\s*+)(?:{_QUOTED}|\[[^\]\n]*+\]?|\S+)", rf"\1{MARK}"),
    (r"(?<!\w)(bearer\s+)[\w.~+/=-]+", rf"\1{MARK}"),
)
_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), put) for pattern, put in _HIDDEN)


def without_announced(text: str) -> str:
    """Return a text with a `MARK` for each secret that is found; of a line that is very long only the beginning is kept."""
    text = "\n".join(map(_beginning, text.split("\n")))
    for pattern, put in _PATTERNS:
        text = pattern.sub(put, text)
    return text


def _beginning(line: str) -> str:
    """Cut a line between two words: in the middle of a login nothing would tell that it is one."""
    if len(line) <= _LINE:
        return line
    *kept, _ = line[:_LINE].rsplit(None, 1)
    return " ".join([*kept, "…"])
