"""Memoize functions of a text, with room for every job, however many there are.

Law: the result is the same whether it was memoized or not. The least recently used result is dropped first.
Memory: a fixed number of results for each job.
"""

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
_FEWEST = 256  # jobs
_all: list["_Memo[Any]"] = []


class _Memo(Generic[Result]):
    """Results of one function, by its argument. Safe for several threads."""

    def __init__(self, function: Callable[[str], Result], per_job: int) -> None:
        functools.update_wrapper(self, function)
        self._function, self._per_job, self._room = function, per_job, per_job * _FEWEST
        self._results: OrderedDict[str, Result] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, text: str) -> Result:
        with self._lock:
            if text in self._results:
                self._results.move_to_end(text)
                return self._results[text]
        result = self._function(text)
        with self._lock:
            self._results[text] = result
            while len(self._results) > self._room:
                self._results.popitem(last=False)
        return result

    def resize(self, jobs: int) -> None:
        self._room = self._per_job * max(jobs, _FEWEST)


def memoized(per_job: int) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Memoize a pure function of a text: so many results for each job."""

    def wrapped(function: Callable[[str], Result]) -> Callable[[str], Result]:
        found = _Memo(function, per_job)
        _all.append(found)
        return found

    return wrapped


def resize(jobs: int) -> None:
    """Adapt to the number of jobs. Results that no longer fit are dropped as others arrive."""
    for memo in _all:
        memo.resize(jobs)
