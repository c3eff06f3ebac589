"""Warns of a StreamJoin that may be written: of what its checkpoint cannot follow, and of what its query does not use.

    before, given ─► confined: plans ─► compare ─► sentences ─► warnings, which kubectl prints

Law: nothing is refused here, and what is said of a change is what the condition `Degraded` would say of it later. Where no
driver is known to have begun the checkpoint, the plan that the spec before would begin with stands for it.
Cost: a few milliseconds; what needs more than the limits, or cannot be compared, is not warned of.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress

from joinlib.plan.unused import unused
from joinop.admission import PROCESS, Admitted, Pinned, document, judged, pinned, question
from joinop.classify import differences
from joinop.confined import Confined
from joinop.names import Object

_SECONDS, _MEMORY = (
    2,
    128 << 20,
)  # for one change: the API server waits for 15 s, most of which the verdict may take
_LONGEST = 256  # bytes: what the API server leaves of a warning if there are many
_MOST = 6  # reasons, and as many notes: with more the API server cuts, at 4096 bytes of all
_CUT = "..."
_FIX = "set it back, or begin a new checkpoint: change spec.checkpoint.path, or spec.checkpoint.reset"
_CANNOT = f"the state of this job cannot follow the change, so what runs is kept; {_FIX}"
_UNKNOWN = "columns from a registry are not known yet: the driver asks for them, and refuses a query that does not fit"
_WOULD_NOT = f"no driver is known to have begun the state, and one that has begun it cannot follow the change; then {_FIX}"


def warnings_of(given: Object, before: Object) -> tuple[str, ...]:
    """Return what is said of a StreamJoin that can be run; `before`: as it was, {} if it is new.

    Both have the metadata that `document` keeps.
    """
    known = pinned(before)
    with suppress(RecursionError, ChildProcessError):
        text = json.dumps(
            {
                "given": document(given),
                "before": document(before) if before else None,
                "pinned": known and [known.folder, known.fingerprint, known.columns],
            }
        )
        return tuple(map(shortened, _confined(text) or ()))
    return ()


def forewarned(text: str) -> tuple[str, ...]:
    """Return the warnings of a change, as JSON. Never raises."""
    try:
        asked = json.loads(text)
        known = Pinned(*asked["pinned"]) if asked["pinned"] else None
        return tuple(_forewarned(asked["given"], asked["before"], known))
    except Exception:  # noqa: BLE001 - a warning less, where a specification is hostile
        return ()


_confined = Confined(forewarned, _SECONDS, _MEMORY, PROCESS)


def _forewarned(given: Object, before: Object | None, known: Pinned | None) -> Iterator[str]:
    found = judged(question(given, known))
    if not isinstance(found, Admitted):
        return
    if found.plan is None:
        yield _UNKNOWN
    elif before is not None:
        yield from _of_the_state(found, given, before, known)
    yield from _few((f"spec.{note}" for note in unused(found.model.spec)), "validate FILE")


def _of_the_state(found: Admitted, given: Object, before: Object, known: Pinned | None) -> Iterator[str]:
    title = _CANNOT
    if known is None or known.folder != found.folder:
        was = judged(question(before))
        if not isinstance(was, Admitted) or was.folder != found.folder:
            return  # it begins a checkpoint
        title, known = _WOULD_NOT, Pinned(was.folder, was.fingerprint)
        after = judged(question(given, known))
        found = after if isinstance(after, Admitted) else found
    if reasons := differences(known, found):
        yield title
        yield from _few(reasons, "plan --diff OLD NEW")


def _few(sentences: Iterable[str], command: str) -> Iterator[str]:
    """Yield the first sentences, and which command tells the others: the API server cuts long lists."""
    found = list(sentences)
    yield from found[:_MOST]
    if len(found) > _MOST:
        yield f"and {len(found) - _MOST} more, see `streamjoin {command}`"


def shortened(sentence: str) -> str:
    """Return a warning that the API server passes on whole: one line of ASCII."""
    line = " ".join(sentence.split()).encode("ascii", "backslashreplace").decode()
    line = "".join(sign if sign.isprintable() else "?" for sign in line)
    if len(line) <= _LONGEST:
        return line
    begun = line[: _LONGEST - len(_CUT)]
    whole, _, cut = begun.rpartition(" ")
    return f"{whole if len(cut) < _LONGEST // 4 else begun}{_CUT}"
