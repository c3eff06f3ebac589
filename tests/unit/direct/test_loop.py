"""The loop of batches without Spark: what it logs, in which order, and what ends it. The processes that run them are played."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import Pipe
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from joinlib.checkpoint import batches
from joinlib.direct.loop import DirectLoop
from joinlib.direct.serve import serve
from joinlib.direct.servers import ServerGone, ServerProcess
from tests.patience import HUNG_S
from tests.unit.checkpoint.test_batches import as_spark

Step = tuple[str, int]
Run = Callable[[int], Iterable[bytes]]


def envelope(end: int, small: bool = True) -> str:
    return json.dumps({"inputs": {"a": end}, "small": small})


class Played:
    """Servers of these answers, and then an error; an exception is raised."""

    def __init__(self, answers: Sequence[str | Exception | None]) -> None:
        self.answers, self.closed = list(answers), False
        self.asked: list[tuple[Any, ...]] = []
        self.ahead: list[bool] = []  # of each batch, whether the next one was to be read

    def initial(self) -> str:
        return envelope(0)

    def next(self, start: str) -> str | None:
        self.asked.append(("next", start))
        answer = self.answers.pop(0) if self.answers else ServerGone("no more answers")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def run(self, *arguments: object, ahead: bool) -> list[bytes]:
        self.asked.append(("run", *arguments))
        self.ahead.append(ahead)
        return [b"told"]

    def close(self, patience_s: float = 0.0) -> None:
        self.closed = True


def looping(
    server: Played, folder: Path, commit: Callable[[int, bool, Run], None], **options: Any
) -> DirectLoop:
    """A loop that has not begun."""
    options = {"pace_s": 0.0, "synced": False, **options}
    return DirectLoop(server, folder, commit, **options)  # type: ignore[arg-type]


def play(
    folder: Path,
    server: Played,
    commit: Callable[[int, bool, Run], None] | None = None,
    last: int = 4,
    **options: Any,
) -> tuple[DirectLoop, list[Step]]:
    """The loop, at its end, and what was done: `last` was Spark's last batch, -1 that there was none."""
    if last >= 0:
        as_spark(folder, last)
    else:
        batches.make(folder, synced=False)
    steps: list[Step] = []

    def committed(batch: int, _: bool, run: Run) -> None:
        assert batches.cut_off(folder) == batch, "it has begun"
        assert list(run(2)) == [b"told"]
        steps.append(("committed", batch))

    loop = looping(server, folder, commit or committed, **options)
    loop.start()
    loop.join(HUNG_S)
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
        ("run", start, envelope(1), 5, 2),
        ("run", envelope(1), envelope(2), 6, 2),
    ]
    assert batches.done(tmp_path) == batches.begun(tmp_path) == 6
    assert loop.count == 2
    took = list(loop.took)
    assert [t["batchId"] for t in took] == [5, 6]
    assert took[1]["sources"] == [
        {"startOffset": json.loads(envelope(1)), "endOffset": json.loads(envelope(2))}
    ]


def test_it_runs_the_first_batch_of_all(tmp_path: Path) -> None:
    """Behind what the server says is the beginning; Spark can go on, since the query has an identity."""
    server = Played([envelope(1), envelope(2)])
    _, steps = play(tmp_path, server, last=-1)
    assert steps == [("committed", 0), ("committed", 1)]
    assert next(a for a in server.asked if a[0] == "run") == ("run", envelope(0), envelope(1), 0, 2)
    assert batches.all_done(tmp_path) == [0, 1]
    assert json.loads((tmp_path / "metadata").read_text())["id"]
    for batch in (0, 1):
        batches.check_done(tmp_path, batch)


def test_it_runs_a_batch_again_that_was_cut_off(tmp_path: Path) -> None:
    """To the end that was logged, whatever has come since."""
    as_spark(tmp_path / "small", 4)
    batches.begin(tmp_path / "small", 5, envelope(7), synced=False)
    server = Played([envelope(9)])
    _, steps = play(tmp_path / "small", server, last=-1)
    assert steps == [("committed", 5), ("committed", 6)]
    start = batches.envelope(tmp_path / "small", 4)
    assert server.asked[0] == ("run", start, envelope(7), 5, 2)


def test_a_run_that_has_an_end_is_done_where_there_is_nothing_more(tmp_path: Path) -> None:
    """But not where a batch is left to Spark."""
    loop, steps = play(tmp_path / "done", Played([envelope(1), None]), until_done=True)
    assert (steps, loop.done) == ([("committed", 5)], True)
    loop, _ = play(tmp_path / "failed", Played([envelope(1)]), until_done=True)
    assert not loop.done


def test_whatever_fails_ends_it(tmp_path: Path) -> None:
    """While it composes nothing has begun; while it runs, the batch is cut off."""
    _, steps = play(tmp_path / "composing", Played([envelope(1), ServerGone("gone")]))
    assert steps == [("committed", 5)]
    assert batches.cut_off(tmp_path / "composing") is None

    def fails(batch: int, _: bool, run: Run) -> None:
        raise OSError("no room")

    play(tmp_path / "running", Played([envelope(1)]), fails)
    assert batches.cut_off(tmp_path / "running") == 5


def test_it_ends_when_it_is_told_to(tmp_path: Path) -> None:
    """While it waits for rows, and after the batch that it runs."""
    as_spark(tmp_path, 0)
    server = Played([None] * 10_000)
    loop = looping(server, tmp_path, lambda *_: None)
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


@pytest.mark.parametrize(
    ("pace_s", "took_s", "ahead"), [(0.0, 0.0, True), (0.3, 0.0, False), (0.05, 0.2, True)]
)
def test_the_next_batch_is_read_ahead_where_the_job_is_behind(
    tmp_path: Path, pace_s: float, took_s: float, ahead: bool
) -> None:
    """Where batches wait for their time, whatever comes until then belongs to the next one."""
    server = Played([envelope(1), envelope(2), envelope(3)])

    def committed(batch: int, _: bool, run: Run) -> None:
        run(2)
        time.sleep(took_s)

    play(tmp_path, server, committed, pace_s=pace_s)
    assert server.ahead == [False, ahead, ahead]


@pytest.fixture
def answering() -> Iterator[Any]:
    """The other end of a server in a thread."""
    ours, theirs = Pipe()
    thread = Thread(target=serve, args=(theirs,))
    thread.start()
    yield ours
    ours.close()
    thread.join(HUNG_S)
    assert not thread.is_alive(), "it ends with the connection"


def test_an_error_of_the_server_is_its_traceback(answering: Any) -> None:
    """It goes on to answer."""
    for _ in range(2):
        answering.send(("next", ("{}", "{}")))  # before it was told what it serves
        done, answer = answering.recv()
        assert not done
        assert "Traceback" in answer


def test_a_process_that_is_gone(tmp_path: Path) -> None:
    """It cannot be asked, and closing it takes no time."""
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o700)
    server = ServerProcess([str(script)])
    with pytest.raises(ServerGone, match="has ended"):
        (server.ask("next", "{}", "{}"), server.answer())
    server.close(time.monotonic())


def test_a_process_that_hangs_is_ended(tmp_path: Path) -> None:
    """After a while."""
    code = "import time; time.sleep(600)"
    server = ServerProcess([sys.executable, "-c", code])
    server.leave()
    server.close(time.monotonic() + 0.1)
    assert server._process.returncode is not None
