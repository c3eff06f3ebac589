"""The loop of small batches: what it logs, in which order, and what ends it. The process that runs them is played."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import Pipe
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from joinlib.checkpoint import batches
from joinlib.direct.commit import Tasks
from joinlib.direct.loop import DirectLoop, ServerGone, ServerProcess
from joinlib.direct.serve import serve
from tests.unit.checkpoint.test_batches import as_spark

Step = tuple[str, int]


def envelope(end: int, small: bool = True) -> str:
    return json.dumps({"inputs": {"a": end}, "small": small})


class Played:
    """A server of these answers; an exception is raised."""

    def __init__(self, answers: Sequence[str | Exception | None]) -> None:
        self.answers, self.closed = list(answers), False
        self.asked: list[tuple[Any, ...]] = []

    def ask(self, name: str, *arguments: object) -> Any:
        self.asked.append((name, *arguments))
        if name == "run":
            return b"told"
        answer = self.answers.pop(0) if self.answers else envelope(99, small=False)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self, patience_s: float = 0.0) -> None:
        self.closed = True


def play(
    folder: Path, server: Played, commit: Callable[[int, Tasks], None] | None = None, pace_s: float = 0.0
) -> tuple[DirectLoop, list[Step]]:
    """The loop, at its end, and what was done: batch 4 was Spark's last."""
    as_spark(folder, 4)
    steps: list[Step] = []

    def committed(batch: int, tasks: Tasks) -> None:
        assert batches.cut_off(folder) == batch, "it has begun"
        assert list(tasks()) == [b"told"]
        steps.append(("committed", batch))

    loop = DirectLoop(server, folder, commit or committed, pace_s=pace_s, synced=False)  # type: ignore[arg-type]
    loop.start()
    loop.join(20)
    assert not loop.is_alive()
    assert server.closed
    return loop, steps


def test_batches_follow_each_other(tmp_path: Path) -> None:
    """Each begins where the last one has ended, is logged, committed and done; where nothing has come, it looks again."""
    server = Played([envelope(1), None, None, envelope(2)])
    loop, steps = play(tmp_path, server)
    assert steps == [("committed", 5), ("committed", 6)]
    start = batches.envelope(tmp_path, 4)
    assert [a for a in server.asked if a[0] == "run"] == [
        ("run", start, envelope(1), 5),
        ("run", envelope(1), envelope(2), 6),
    ]
    assert batches.done(tmp_path) == batches.begun(tmp_path) == 6
    assert (loop.count, loop.failed) == (2, False)
    took = list(loop.took)
    assert [t["batchId"] for t in took] == [5, 6]
    assert took[1]["sources"] == [
        {"startOffset": json.loads(envelope(1)), "endOffset": json.loads(envelope(2))}
    ]


def test_a_batch_that_is_not_small_ends_it(tmp_path: Path) -> None:
    """Nothing of it is logged, so that Spark begins it."""
    loop, steps = play(tmp_path, Played([envelope(1), envelope(9, small=False)]))
    assert steps == [("committed", 5)]
    assert batches.begun(tmp_path) == 5
    assert not loop.failed


def test_whatever_fails_ends_it(tmp_path: Path) -> None:
    """While it composes nothing has begun; while it runs, the batch is cut off."""
    loop, steps = play(tmp_path / "composing", Played([envelope(1), ServerGone("gone")]))
    assert steps == [("committed", 5)]
    assert loop.failed
    assert batches.cut_off(tmp_path / "composing") is None

    def fails(batch: int, tasks: Tasks) -> None:
        raise OSError("no room")

    loop, _ = play(tmp_path / "running", Played([envelope(1)]), fails)
    assert loop.failed
    assert batches.cut_off(tmp_path / "running") == 5


def test_it_ends_when_it_is_told_to(tmp_path: Path) -> None:
    """While it waits for rows, and after the batch that it runs."""
    as_spark(tmp_path, 0)
    server = Played([None] * 10_000)
    loop = DirectLoop(server, tmp_path, lambda *_: None, pace_s=0.0, synced=False)  # type: ignore[arg-type]
    loop.start()
    loop.stop(20)
    assert not loop.is_alive()
    assert server.closed
    assert batches.begun(tmp_path) == 0


def test_a_pace_is_kept(tmp_path: Path) -> None:
    """Batches begin at its multiples, as Spark's do."""
    begun: list[float] = []
    server = Played([envelope(1), envelope(2), envelope(3)])
    play(tmp_path, server, lambda *_: begun.append(time.time()), pace_s=0.2)
    assert all(at % 0.2 < 0.15 for at in begun[1:])
    assert begun[2] - begun[1] > 0.1


@pytest.fixture
def answering() -> Iterator[Any]:
    """The other end of a server in a thread."""
    ours, theirs = Pipe()
    thread = Thread(target=serve, args=(theirs,))
    thread.start()
    yield ours
    ours.close()
    thread.join(20)
    assert not thread.is_alive(), "it ends with the connection"


def test_an_error_of_the_server_is_its_traceback(answering: Any) -> None:
    """It goes on to answer."""
    for _ in range(2):
        answering.send(("next", ("{}",)))  # before it was told what it serves
        done, answer = answering.recv()
        assert not done
        assert "Traceback" in answer


def test_a_process_that_is_gone(tmp_path: Path) -> None:
    """It cannot be asked, and closing it takes no time."""
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o700)
    server = ServerProcess([str(script)], None, None)  # type: ignore[arg-type]
    with pytest.raises(ServerGone, match="has ended"):
        server.ask("next", "{}")
    server.close()


def test_a_process_that_hangs_is_ended(tmp_path: Path) -> None:
    """After a while."""
    code = "import time; time.sleep(600)"
    server = ServerProcess([sys.executable, "-c", code], None, None)  # type: ignore[arg-type]
    server.close(0.1)
    assert server._process.returncode is not None
