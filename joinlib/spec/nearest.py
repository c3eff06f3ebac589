"""Suggests the name that was probably meant, or else the list to choose from."""

import difflib
from collections.abc import Collection


def hint(name: str, known: Collection[str], what: str = "names") -> str:
    """Return "did you mean 'x'?" if a known name is near, otherwise the list of known names."""
    folded = {candidate.casefold(): candidate for candidate in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=1)
    return f"did you mean {folded[near[0]]!r}?" if near else f"{what}: {', '.join(known)}"
