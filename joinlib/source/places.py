"""Numbers with more places than any decimal has, such as 1e-99999999: Arrow looks up 10^99999999 in a table of 38.

Law: no text with such a number is parsed to a decimal. Cost: three searches for a few bytes.
"""

import re

import pyarrow as pa
import pyarrow.types as pt

MOST = 38
_ZEROS = b"0" * (MOST + 1)
_EXPONENTS = [re.compile(rb"%c-\d+(?![\w.-])" % letter) for letter in b"eE"]
_BEFORE = re.compile(rb"(?:^|[^\w.+-])[+-]?[\d.]+$")  # what stands before the exponent of a number
_NUMBER = re.compile(rb"(?<![\w.+-])[+-]?(?=[\d.])\d*\.?(\d*)(?:[eE]-(\d+))?(?![\w.])")
_NEAR = 64
_LARGE = b"1e38"  # a number that fits a FLOAT, and no decimal


def has_decimal(schema: pa.Schema) -> bool:
    """Return whether a column is a decimal, or one is in it."""
    todo = [field.type for field in schema]
    while todo:
        kind = todo.pop()
        if pt.is_decimal(kind):
            return True
        todo += [kind.field(at).type for at in range(kind.num_fields)]
    return False


def refused(text: bytes) -> bytes | None:
    """Return a text with such numbers replaced by one that no decimal holds; None if there are none."""
    if _ZEROS not in text and not any(_small(text, exponent) for exponent in _EXPONENTS):
        return None
    found = _NUMBER.sub(lambda one: _LARGE if _places(one) > MOST else one[0], text)
    return found if found != text else None


def _small(text: bytes, exponent: re.Pattern[bytes]) -> bool:
    """Return whether there is a number with a negative exponent, or a very long one. Most of what looks so is no number."""
    starts = (found.start() for found in exponent.finditer(text))
    return any(_BEFORE.search(text[max(at - _NEAR, 0) : at]) is not None for at in starts)


def check_all(texts: pa.Array) -> None:
    """Raise ArrowInvalid if one of these texts, which are to be decimals, is such a number."""
    if refused("\n".join(text or "" for text in texts.to_pylist()).encode()) is not None:
        raise pa.ArrowInvalid("a number has more places than a decimal")


def _places(number: re.Match[bytes]) -> int:
    return len(number[1]) + int((number[2] or b"0").lstrip(b"0")[:9] or b"0")
