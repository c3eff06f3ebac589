"""Two processor instructions for which numba has no function."""

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


ones: Any = intrinsic(_ones)  # the number of set bits of a word
lowest: Any = intrinsic(_lowest)  # the index of the lowest set bit of a word other than 0
