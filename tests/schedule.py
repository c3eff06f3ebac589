"""Which worker of pytest-xdist runs what, and when: one worker runs a whole file, and what takes longest begins first.

fault tests        those of one kind of job together, so that one worker runs its undisturbed job, once
all other tests    those of one file together, so that they share what the file has started
"""

from xdist.scheduler.loadscope import LoadScopeScheduling

_FAULTS = "tests/spark/faults/"
_LONGEST_FIRST = (
    _FAULTS,
    "tests/kafka/",
    "tests/spark/",
    "tests/deploy/dashboards/",
    "tests/postgres/",
    "tests/queries/",
    "tests/laws/",
)


class Scheduling(LoadScopeScheduling):
    """Hands out groups of tests in the order in which they were collected."""

    def schedule(self) -> None:
        self.config.option.loadscopereorder = False  # else groups of many tests come first, however short
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def group(nodeid: str) -> str:
    """The tests that one worker runs one after the other."""
    file, _, name = nodeid.partition("::")
    if not file.startswith(_FAULTS):
        return file
    return _FAULTS + (name.partition("[")[2].rstrip("]") or "full")


def by_length(nodeid: str) -> int:
    """Sorts folders of long tests first."""
    return next(
        (at for at, folder in enumerate(_LONGEST_FIRST) if nodeid.startswith(folder)), len(_LONGEST_FIRST)
    )
