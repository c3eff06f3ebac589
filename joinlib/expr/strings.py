"""Functions of strings, one row at a time. Law: Spark's; positions count characters, from 1."""

import base64
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from joinlib.expr import signatures as s
from joinlib.expr import types as t
from joinlib.expr.rows import NoValueError
from joinlib.expr.signatures import Signature, row

_MOST = 1 << 27  # characters of a text that a function makes


def _able(size: int) -> int:
    """Return the size of a text that is to be made.

    Raises:
        NoValueError: It would fill the memory.
    """
    if size > _MOST:
        raise NoValueError(f"the text would be longer than {_MOST:,} characters")
    return size


def instr(text: str, part: str) -> int:
    return text.find(part) + 1


def locate(part: str | None, text: str | None, start: int | None = 1) -> int | None:
    if start is None:
        return 0
    if part is None or text is None:
        return None
    if start < 1:
        return 0
    return text.find(part, start - 1) + 1 if part else 1


def pad_left(text: Any, size: int, pad: Any = None) -> Any:
    return _padding(text, size, pad) + text[: max(size, 0)]


def pad_right(text: Any, size: int, pad: Any = None) -> Any:
    return text[: max(size, 0)] + _padding(text, size, pad)


def _padding(text: Any, size: int, pad: Any) -> Any:
    if pad is None:
        pad = " " if isinstance(text, str) else b"\0"
    missing = max(_able(size) - len(text), 0) if pad else 0
    return (pad * (missing // max(len(pad), 1) + 1))[:missing]


def left(text: Any, count: int) -> Any:
    return text[: max(count, 0)]


def right(text: Any, count: int) -> Any:
    return text[-count:] if count > 0 else text[:0]


def substring(text: Any, start: int, count: int = 2**31 - 1) -> Any:
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    last = first + count
    return text[max(first, 0) : max(last, 0)]


def replace(text: str, old: str, new: str = "") -> str:
    return text.replace(old, new) if old else text


def translate(text: str, old: str, new: str) -> str:
    known: dict[str, str] = {}
    for at, c in enumerate(old):
        known.setdefault(c, new[at : at + 1])
    return "".join(known.get(c, c) for c in text)


def repeat(text: str, count: int) -> str:
    _able(count * len(text))
    return text * max(count, 0)


def space(count: int) -> str:
    return " " * max(_able(count), 0)


def reverse(value: Any) -> Any:
    return value[::-1]


def initcap(text: str) -> str:
    return " ".join(word[:1].title() + word[1:] for word in text.lower().split(" "))


def split_part(text: str, mark: str, number: int) -> str:
    if number == 0:
        raise NoValueError("parts count from 1, or from -1 at the end")
    parts = text.split(mark) if mark else [text]
    at = number - 1 if number > 0 else len(parts) + number
    return parts[at] if 0 <= at < len(parts) else ""


def substring_index(text: str, mark: str, count: int) -> str:
    if not mark or not count:
        return ""
    parts = text.split(mark)
    return mark.join(parts[:count] if count > 0 else parts[count:])


def join(mark: str | None, *parts: str | list[str | None] | None) -> str | None:
    """Join what is not NULL (concat_ws)."""
    if mark is None:
        return None
    flat = (x for p in parts for x in (p if isinstance(p, list) else [p]))
    return mark.join(x for x in flat if x is not None)


def nth(number: int | None, *values: Any) -> Any:
    """Return the value of that number (elt)."""
    if number is None:
        return None
    if not 1 <= number <= len(values):
        raise NoValueError("elt: the number is not that of an argument")
    return values[number - 1]


def find_in_set(text: str, many: str) -> int:
    parts = many.split(",")
    return parts.index(text) + 1 if text in parts and "," not in text else 0


def overlay(text: Any, new: Any, start: int, count: int = -1) -> Any:
    size = count if count >= 0 else len(new)
    return substring(text, 1, start - 1) + new + substring(text, start + size)


def starts_with(text: Any, part: Any) -> bool:
    return bool(text.startswith(part))


def ends_with(text: Any, part: Any) -> bool:
    return bool(text.endswith(part))


def contains(text: Any, part: Any) -> bool:
    return part in text


def trim_both(text: Any, what: Any) -> Any:
    return text.strip(what)


def trim_left(text: Any, what: Any) -> Any:
    return text.lstrip(what)


def trim_right(text: Any, what: Any) -> Any:
    return text.rstrip(what)


def ascii_code(text: str) -> int:
    return ord(text[0]) if text else 0


def character(number: int) -> str:
    return "" if number < 0 else chr(number & 0xFF)


def octets(value: Any) -> int:
    return len(value.encode() if isinstance(value, str) else value)


def bits(value: Any) -> int:
    return octets(value) * 8


def to_base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def from_base64(text: str) -> bytes:
    """Read base64 as Java's MIME decoder does: what is neither of its letters nor padding is left out."""
    letters, pad, rest = re.sub(r"[^A-Za-z0-9+/=]", "", text).partition("=")
    wrong = len(letters) % 4 in (0, 1) or rest.strip("=") or (len(letters) % 4 == 2 and not rest)
    if len(letters) % 4 == 1 or (pad and wrong):
        raise NoValueError("malformed base64")
    return base64.b64decode(letters + "=" * (-len(letters) % 4))


def strict_base64(text: str) -> bytes:
    """Read base64 in which only spaces may stand between the letters, and padding is whole or left out."""
    letters, pad = re.sub(r"[ \t\r\n\f]", "", text.rstrip("=")), len(text) - len(text.rstrip("="))
    if re.search(r"[^A-Za-z0-9+/]", letters) or pad not in (0, {2: 2, 3: 1}.get(len(letters) % 4, 0)):
        raise NoValueError("malformed base64")
    return from_base64(letters)


_CHARSETS = {
    "us-ascii": "ascii", "iso-8859-1": "latin-1", "utf-8": "utf-8", "utf-16be": "utf-16-be", "utf-16le": "utf-16-le",
    "utf-16": "utf-16", "utf-32": "utf-32-be",
}  # fmt: skip


def _charset(name: str) -> str:
    if name.lower() not in _CHARSETS:
        raise NoValueError(f"the character set is not one of {', '.join(_CHARSETS)}")
    return _CHARSETS[name.lower()]


def encode(text: str, charset: str) -> bytes:
    try:
        found = text.encode(_charset(charset))
    except UnicodeEncodeError as error:
        raise NoValueError("a character is not in the character set") from error
    return b"\xfe\xff" + text.encode("utf-16-be") if charset.lower() == "utf-16" else found


def decode(value: bytes, charset: str) -> str:
    known = _charset(charset)
    if known == "utf-16":
        known = "utf-16" if value[:2] in (b"\xfe\xff", b"\xff\xfe") else "utf-16-be"
    try:
        return value.decode(known)
    except UnicodeDecodeError as error:
        raise NoValueError("the bytes are not of the character set") from error


def is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def quoted(text: str) -> str:
    return "'" + text.replace("'", "\\'") + "'"


def levenshtein(left: str, right: str, most: int | None = None) -> int:
    above = list(range(len(right) + 1))
    for number, one in enumerate(left, 1):
        line = [number]
        for at, other in enumerate(right):
            line.append(min(line[-1] + 1, above[at + 1] + 1, above[at] + (one != other)))
        above = line
    return -1 if most is not None and above[-1] > most else above[-1]


_SOUNDS = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "01230127022455012623017202"))


def soundex(text: str) -> str:
    """Spell a word by its sound: 7 (H, W) does not part equal codes, 0 (vowels) does."""
    if not text or not (text[0].isascii() and text[0].isalpha()):
        return text
    code, last = text[0].upper(), _SOUNDS[text[0].upper()]
    for c in text[1:]:
        sound = _SOUNDS.get(c.upper())
        if sound is None:
            last = "0"
            continue
        if sound == "7":
            continue
        if sound not in ("0", last):
            code += sound
        last = sound
        if len(code) == 4:
            break
    return code.ljust(4, "0")


def luhn(text: str) -> bool:
    if not text or not all(c in "0123456789" for c in text):
        return False
    digits = [int(c) for c in reversed(text)]
    return sum(d if i % 2 == 0 else d * 2 - 9 * (d > 4) for i, d in enumerate(digits)) % 10 == 0


def mask(
    text: str | None,
    upper: str | None = "X",
    lower: str | None = "x",
    digit: str | None = "n",
    other: str | None = None,
) -> str | None:
    if text is None:
        return None

    def hidden(c: str) -> str:
        by = upper if c.isupper() else lower if c.islower() else digit if c.isdigit() else other
        return c if by is None else by

    return "".join(map(hidden, text))


def jaro_winkler(left: str, right: str) -> float:
    """How alike two words are, from 0 to 1: shared letters near each other, and a shared beginning."""
    if left == right:
        return 1.0
    if not left or not right:
        return 0.0
    ones, others = _shared(left, right)
    if not ones:
        return 0.0
    moved = sum(a != b for a, b in zip(ones, others)) // 2
    count = len(ones)
    jaro = (count / len(left) + count / len(right) + (count - moved) / count) / 3
    begins = next((i for i, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))
    return jaro + min(begins, 4) * 0.1 * (1 - jaro)


def _shared(left: str, right: str) -> tuple[list[str], list[str]]:
    reach = max(max(len(left), len(right)) // 2 - 1, 0)
    used: set[int] = set()
    ones = []
    for i, c in enumerate(left):
        near = range(max(0, i - reach), min(len(right), i + reach + 1))
        hit = next((j for j in near if j not in used and right[j] == c), None)
        if hit is not None:
            used.add(hit)
            ones.append(c)
    return ones, [right[j] for j in sorted(used)]


def _same(*types: pa.DataType) -> pa.DataType:
    return types[0]


def _text_or_list(name: str, value: Any) -> Any:
    return s.array(name, value) if pa.types.is_list(value.type) else s.STRING(name, value)


def _pair(of: Callable[..., Any], result: pa.DataType) -> Signature:
    return row(of, result, s.text_or_binary, s.text_or_binary)


DECODE = row(decode, t.STRING, s.binary, s.STRING)
FUNCTIONS: dict[str, Signature] = {
    "instr": row(instr, t.INT, s.STRING, s.STRING),
    "locate": row(locate, t.INT, s.STRING, s.STRING, s.INT, least=2, lenient=True),
    "position": row(locate, t.INT, s.STRING, s.STRING, s.INT, least=2, lenient=True),
    "translate": row(translate, t.STRING, s.STRING, s.STRING, s.STRING),
    "repeat": row(repeat, t.STRING, s.STRING, s.INT),
    "space": row(space, t.STRING, s.INT),
    "initcap": row(initcap, t.STRING, s.STRING),
    "split_part": row(split_part, t.STRING, s.STRING, s.STRING, s.INT),
    "substring_index": row(substring_index, t.STRING, s.STRING, s.STRING, s.INT),
    "concat_ws": row(join, t.STRING, s.STRING, _text_or_list, least=1, repeats=True, lenient=True),
    "find_in_set": row(find_in_set, t.INT, s.STRING, s.STRING),
    "overlay": row(overlay, _same, s.text_or_binary, s.text_or_binary, s.INT, s.INT, least=3),
    "startswith": _pair(starts_with, t.BOOLEAN),
    "endswith": _pair(ends_with, t.BOOLEAN),
    "contains": _pair(contains, t.BOOLEAN),
    "ascii": row(ascii_code, t.INT, s.STRING),
    "char": row(character, t.STRING, s.BIGINT),
    "chr": row(character, t.STRING, s.BIGINT),
    "octet_length": row(octets, t.INT, s.text_or_binary),
    "bit_length": row(bits, t.INT, s.text_or_binary),
    "base64": row(to_base64, t.STRING, s.binary),
    "unbase64": row(from_base64, t.BINARY, s.STRING),
    "encode": row(encode, t.BINARY, s.STRING, s.STRING),
    "is_valid_utf8": row(is_utf8, t.BOOLEAN, s.binary),
    "quote": row(quoted, t.STRING, s.STRING),
    "levenshtein": row(levenshtein, t.INT, s.STRING, s.STRING, s.INT, least=2),
    "soundex": row(soundex, t.STRING, s.STRING),
    "luhn_check": row(luhn, t.BOOLEAN, s.STRING),
    "mask": row(mask, t.STRING, *[s.STRING] * 5, least=1, lenient=True),
    "jaro_winkler_similarity": row(jaro_winkler, t.DOUBLE, s.STRING, s.STRING),
}
