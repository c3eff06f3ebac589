"""Which kinds of jobs suffer in this run: some of each list, and others in the next run.

STREAMJOIN_FAULT_SEED: which, and when (all workers of a run have the same); STREAMJOIN_FAULT_KINDS=all: all of them.
"""

import os
import random
from collections.abc import Sequence

SEED = int(os.environ["STREAMJOIN_FAULT_SEED"])  # tests/conftest.py draws it


def drawn(what: str, kinds: Sequence[str], count: int) -> list[str]:
    """So many of the kinds, in their order."""
    if os.environ.get("STREAMJOIN_FAULT_KINDS") == "all":
        return list(kinds)
    picked = random.Random(f"{SEED} {what}").sample(kinds, count)
    return [kind for kind in kinds if kind in picked]
