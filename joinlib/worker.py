"""What a worker process keeps from one task to the next: open files, connections, producers.

Spark's workers outlive their tasks, which run one after the other, and opening is what takes time. So what a
task has opened is kept for the next one: all of it by one `Worker`, which the tasks of a process share.

    task ──► current() ──► units, tables, … ──► what is kept by key, or made and kept

Laws: whatever is kept can be lost, at the price of opening it again; each keep is bounded, and lets go what was
not used for longest; a forked process starts with nothing. Cost: a look-up in a dictionary.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from operator import methodcaller
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_MOST_UNITS = 65_536  # of a stage: a worker that is alone has all of them


def _drop(value: object) -> None:
    """Let go what is freed with the last reference to it."""


class Keep(Generic[K, V]):
    """Values by key, up to `most`. Each of its methods may be called by any thread.

    `close` is called with a value that is let go.
    """

    def __init__(self, most: int, close: Callable[[V], object] = _drop) -> None:
        self.most, self._close = most, close
        self._values: OrderedDict[K, V] = OrderedDict()  # what was used last is at the end
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """Return what is kept by this key, if anything is."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def made(self, key: K, make: Callable[[], V]) -> V:
        """Return what is kept by this key; if nothing is, make it and keep it."""
        with self._lock:
            if key not in self._values:
                self.put(key, make())
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: K, value: V) -> None:
        """Keep a value, in the place of what was kept by this key; let go what is too much."""
        with self._lock:
            before = self._values.pop(key, None)
            self._values[key] = value
            gone = [] if before is None else [before]
            while len(self._values) > self.most:
                gone.append(self._values.popitem(last=False)[1])
        self._let_go(gone)

    def take(self, key: K) -> V | None:
        """Return what is kept by this key, for the caller to use or to let go; it is kept no longer."""
        with self._lock:
            return self._values.pop(key, None)

    def close(self) -> None:
        """Let everything go."""
        with self._lock:
            gone = list(self._values.values())
            self._values.clear()
        self._let_go(gone)

    def _let_go(self, values: list[V]) -> None:
        for value in values:
            self._close(value)


class Worker:
    """All that one process keeps, and what bounds it. Types are with those who use it."""

    def __init__(self) -> None:
        self.units: Keep[Any, Any] = Keep(_MOST_UNITS)  # the state of units: their indexes, mapped
        self.tables: Keep[Any, Any] = Keep(_MOST_UNITS)  # what units know of a database's table, mapped
        self.versions: Keep[Any, Any] = Keep(32)  # of tables that were read whole, mapped
        self.row_groups: Keep[Any, Any] = Keep(2)  # of Parquet files, decoded: at most 64 MiB each
        self.consumers: Keep[Any, Any] = Keep(8)  # by Kafka cluster; each buffers up to 32 MiB
        self.schemas: Keep[Any, Any] = Keep(256)  # what reads Avro and Protobuf, by schema and columns
        self.producers: Keep[Any, Any] = Keep(8)  # idle ones, by topic and partition
        self.connections: Keep[Any, Any] = Keep(8, methodcaller("close"))  # by database, closed when idle

    def close(self) -> None:
        """Let everything go; what is used next is opened again."""
        for keep in vars(self).values():
            keep.close()


# The last one is this process's. Those before it belong to the processes that it was forked from, and stay as
# they are: to free them here would end connections that their owners use.
_workers = [Worker()]
os.register_at_fork(after_in_child=lambda: _workers.append(Worker()))


def current() -> Worker:
    """Return the worker of this process."""
    return _workers[-1]


@contextmanager
def using(worker: Worker) -> Iterator[Worker]:
    """Let another worker be the current one for a while, as if another process did this."""
    _workers.append(worker)
    try:
        yield worker
    finally:
        _workers.remove(worker)
