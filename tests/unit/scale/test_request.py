"""A request for executors says why in one line."""

from hypothesis import given
from hypothesis import strategies as st

from joinlib.scale.request import REASON_MAX, is_line, line


@given(st.text())
def test_a_line_is_made_of_any_text(text: str) -> None:
    """If anything is left of it; it is short and can be printed, and stays as it is."""
    found = line(text)
    assert is_line(found) == bool(found)
    assert line(found) == found
    assert found.isprintable()
    assert len(found) <= REASON_MAX


def test_what_is_left_of_a_text() -> None:
    """Its words; what would break the line, or turn it round, does not go on."""
    assert line("  rows wait:\r\n\t3 \x1b[31m\u202ered ") == "rows wait: 3 [31m red"
    assert line("\n\0") == ""
    assert line("x" * (REASON_MAX - 1) + " y") == "x" * (REASON_MAX - 1)
