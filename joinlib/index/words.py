"""Two instructions of the processor that numba has no name for."""

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic


def _ones(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.ctpop(given[0])

    return types.uint64(types.uint64), generate


def _lowest(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.cttz(given[0], cgutils.true_bit)

    return types.uint64(types.uint64), generate


ones: Any = intrinsic(_ones)  # how many bits of a word are set
lowest: Any = intrinsic(_lowest)  # the number of the lowest bit that is set, of a word that is not 0
