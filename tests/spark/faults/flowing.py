"""A job that is killed while rows flow, and begun again whenever it has ended.

job.begin() ─► job.until_it_flows(run) ─► suffer(...): worker, driver, JVM, and the server that it writes to
"""

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.spark.faults import processes
from tests.spark.faults.scenario import Run

RETRYING = "spark.master=local[2,8]"  # a task may fail seven times, as on a cluster
_ROOT = Path(__file__).parents[3]


class Flowing:
    """A job of the folder's `spec.yaml`, and its runs."""

    folder: Path
    runs: list[Run]
    program = "from jobs.cli.commands import main; main()"

    def begin(self, *more: str, fault: str = "") -> Run:
        """`streamjoin run`, in a session of processes of its own. `fault`: a point at which it kills itself."""
        faults = self.folder / "faults"
        faults.mkdir(exist_ok=True)
        if fault:
            (faults / fault).touch()
        environment = {
            **os.environ,
            "PYTHONPATH": str(_ROOT),
            "STREAMJOIN_FAULTS": str(faults),
            "STREAMJOIN_LOCAL_DIR": str(self.folder / "indexes"),
        }
        command = [
            sys.executable,
            "-c",
            self.program,
            "run",
            str(self.folder / "spec.yaml"),
            "--plain",
            *more,
        ]
        self.runs.append(Run(command, environment, self.folder / "stderr.txt"))
        return self.runs[-1]

    @property
    def begun(self) -> int:
        """The last batch that was begun."""
        logs = (self.folder / "checkpoint" / "spark" / "offsets").glob("*")
        return max((int(f.name) for f in logs if f.name.isdigit()), default=-1)

    def until_it_flows(self, run: Run, patience_s: float = 120.0, batch: int | None = None) -> None:
        """One batch more has begun, or the given one; or the run has ended."""
        wanted, end = self.begun + 1 if batch is None else batch, time.monotonic() + patience_s
        while self.begun < wanted and run.alive:
            assert time.monotonic() < end, "nothing happens any more"
            time.sleep(0.01)

    def close(self) -> None:
        """Nothing runs on afterwards."""
        for run in self.runs:
            run.close()


def suffer(
    job: Flowing,
    server: tuple[Callable[[], None], Callable[[], None]],
    victims: Sequence[str],
    rounds: int,
    draw: random.Random,
) -> Counter[str]:
    """Kill `victims` in turn until it is enough; any that no run has (database, broker) is the server.

    server: what kills it, and what starts it again.
    """
    crash, start = server
    died: Counter[str] = Counter()
    run = job.begin("--conf", RETRYING)
    job.until_it_flows(run)
    while died.total() < rounds:
        time.sleep(draw.uniform(0.05, 1.2))
        victim = victims[died.total() % len(victims)]
        if victim in ("worker", "driver", "jvm"):
            if victim == "jvm":
                _until_spark(run)
            # What runs small batches without Spark stands for a worker.
            killed = (victim == "worker" and run.kill("server")) or run.kill(victim)  # type: ignore[arg-type]
            died[victim] += killed
            # None is killed where a batch of the run before, whose JVM lives on a little, was taken for one of this run.
            if killed and victim == "driver":
                run.end()
            elif killed and victim == "jvm":
                job.until_it_flows(run)  # or has ended: it goes on where Spark was not needed
        else:
            crash()
            time.sleep(draw.uniform(0, 0.5))
            start()
            died[victim] += 1
        if not run.alive:
            run = job.begin("--conf", RETRYING)
            job.until_it_flows(run)
    run.kill_all()
    run.end()
    return died


def _until_spark(run: Run, patience_s: float = 60.0) -> None:
    """There is a JVM: whoever runs small batches without one is killed, so that Spark is needed."""
    end = time.monotonic() + patience_s
    while run.alive and not processes.of_kind(run.session, "jvm") and time.monotonic() < end:
        run.kill("server")
        time.sleep(0.1)
