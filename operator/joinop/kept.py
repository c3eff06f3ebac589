"""What was worked out for a job is there at its next look, however many jobs there are.

Law: a function of a text gives the same whether its result was kept or not. What was asked for longest ago goes first.
Memory: so many results for each job, whoever asks for what.
"""

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
_FEWEST = 256  # jobs
_all: list["_Kept[Any]"] = []


class _Kept(Generic[Result]):
    """Results of one function, by its argument. It is asked by several threads."""

    def __init__(self, function: Callable[[str], Result], each: int) -> None:
        functools.update_wrapper(self, function)
        self._function, self._each, self._room = function, each, each * _FEWEST
        self._found: OrderedDict[str, Result] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, text: str) -> Result:
        with self._lock:
            if text in self._found:
                self._found.move_to_end(text)
                return self._found[text]
        result = self._function(text)
        with self._lock:
            self._found[text] = result
            while len(self._found) > self._room:
                self._found.popitem(last=False)
        return result

    def make_room(self, jobs: int) -> None:
        self._room = self._each * max(jobs, _FEWEST)


def kept(each: int) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Keeps the results of a pure function of a text: `each` for each job."""

    def wrapped(function: Callable[[str], Result]) -> Callable[[str], Result]:
        found = _Kept(function, each)
        _all.append(found)
        return found

    return wrapped


def make_room(jobs: int) -> None:
    """There are so many jobs now. What does not fit any longer goes as others come."""
    for each in _all:
        each.make_room(jobs)
