"""What a worker keeps: bounded, one for all tasks of a process, and none of the process that it was forked from."""

import os
import threading
from collections.abc import Callable
from operator import methodcaller

import pytest

from joinlib.worker import Keep, Worker, current, using


class Connection:
    """Says when it is closed, and when it is freed."""

    def __init__(self, name: str, said: Callable[[str], object]) -> None:
        self.name, self.said = name, said

    def close(self) -> None:
        self.said(f"closed {self.name}")

    def __del__(self) -> None:
        self.said(f"freed {self.name}")


def never() -> Connection:
    pytest.fail("it is there already")


def test_what_was_not_used_for_longest_goes() -> None:
    """It is closed, once; what is used stays."""
    said: list[str] = []
    keep: Keep[str, Connection] = Keep(2, methodcaller("close"))
    for name in ("a", "b"):
        keep.made(name, lambda name=name: Connection(name, said.append))
    keep.made("a", never)
    keep.put("c", Connection("c", said.append))
    assert said == ["closed b", "freed b"]
    assert keep.get("a") and keep.get("b") is None
    keep.put("d", Connection("d", said.append))
    assert said[2:] == ["closed c", "freed c"]
    assert len(keep) == 2


def test_another_value_of_a_key() -> None:
    """The one before it is closed."""
    said: list[str] = []
    keep: Keep[int, Connection] = Keep(2, methodcaller("close"))
    keep.put(1, Connection("old", said.append))
    keep.put(1, Connection("new", said.append))
    assert said == ["closed old", "freed old"] and len(keep) == 1


def test_what_is_taken_is_the_takers() -> None:
    """It stays open, and is kept no longer."""
    said: list[str] = []
    keep: Keep[int, Connection] = Keep(2, methodcaller("close"))
    keep.put(1, Connection("a", said.append))
    taken = keep.take(1)
    keep.close()
    assert taken is not None and not said
    assert keep.take(1) is None and keep.get(1) is None


def test_what_cannot_be_made_is_not_kept() -> None:
    """The next task tries again."""
    keep: Keep[int, str] = Keep(2)

    def fails() -> str:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        keep.made(1, fails)
    assert keep.made(1, lambda: "made") == "made"


def test_threads_share_what_one_has_made() -> None:
    """It is made once, however many ask."""
    keep: Keep[int, object] = Keep(2)
    together, found = threading.Barrier(8), []

    def ask() -> None:
        together.wait()
        found.append(keep.made(1, object))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(map(id, found))) == 1


def test_a_worker_closes_all_that_it_keeps() -> None:
    """And goes on: what is used next is opened again. All of it is bounded."""
    said: list[str] = []
    worker = Worker()
    for name, keep in vars(worker).items():
        assert isinstance(keep, Keep) and 0 < keep.most <= 65_536
        keep.put("key", Connection(name, said.append))
    worker.close()
    assert {word for word in said if word.startswith("freed")} == {f"freed {name}" for name in vars(worker)}
    assert "closed connections" in said
    assert worker.units.made("key", lambda: "again") == "again"


def test_one_worker_in_the_place_of_another() -> None:
    """What each keeps is its own."""
    one, other = Worker(), Worker()
    with using(one):
        current().units.put("key", 1)
        with using(other):
            assert current().units.get("key") is None
        assert current().units.get("key") == 1
    assert current() is not one


def test_a_fork_starts_afresh() -> None:
    """A connection is of one process: the other neither uses nor closes it, nor frees it, not even when it closes."""
    reads, writes = os.pipe()

    def said(what: str) -> None:
        os.write(writes, f"{os.getpid() == parent}: {what}\n".encode())

    parent = os.getpid()
    worker = current()
    worker.connections.put("key", Connection("of the parent", said))
    if (child := os.fork()) == 0:
        try:
            assert current() is not worker and current().connections.get("key") is None
            current().connections.put("key", Connection("of the child", said))
            worker = current()
            worker.close()
            said("ended well")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert current() is worker
    worker.close()
    os.close(writes)
    with open(reads) as file:
        assert file.read().splitlines() == [
            "False: closed of the child",
            "False: freed of the child",
            "False: ended well",
            "True: closed of the parent",
            "True: freed of the parent",
        ]
