"""Which executors work, and which are spare?

    spare    registered and warm, but without units, until more are wanted or one that works is gone; then no
             pod is waited for, and only units move

Laws: no more executors are asked for than `most`, unless more are wanted; as long as the same executors are
there and as many are wanted, the same ones work.
"""

from collections.abc import Collection, Iterable, Mapping

_NOTHING: Mapping[str, int] = {}


def asked(wanted: int, spare: int, most: int) -> int:
    """Return how many executors there should be, spare ones included."""
    return max(wanted, min(wanted + spare, most))


def working(
    there: Iterable[str],
    wanted: int,
    placed: Collection[str] = (),
    rehearsed: Collection[str] = (),
    held: Mapping[str, int] = _NOTHING,
) -> list[str]:
    """Choose the `wanted` executors that get units: those that have units, most state first, then warm ones.

    Args:
        there: The executors that take tasks; of equals the oldest works.
        wanted: How many should work.
        placed: Those that have units.
        rehearsed: Those that have loaded all that a unit's task needs.
        held: Bytes of state by executor.
    """
    order = sorted(there, key=lambda e: (e not in placed, e not in rehearsed, -held.get(e, 0), int(e)))
    return sorted(order[:wanted], key=int)
