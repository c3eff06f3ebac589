"""A job whose rows have come long before it began, killed while what follows a batch is read.

STREAMJOIN_FAULT_ROUNDS: how many kills (3 unless told).
"""

import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.spark.faults import processes
from tests.spark.faults.flowing import Flowing
from tests.spark.faults.scenario import Run

ROUNDS = int(os.environ.get("STREAMJOIN_FAULT_ROUNDS", "3"))


@dataclass
class Backlog(Flowing):
    """The job of a folder. `program`: that of its runs."""

    folder: Path
    runs: list[Run] = field(default_factory=list)
    program: str = Flowing.program

    def suffer(self, draw: random.Random) -> int:
        """The driver dies, at last the newest of those that read and join; return the most of these that were seen.

        What is left to do is done.
        """
        died, most = Counter[str](), 0
        try:
            for victim in (*["driver"] * (ROUNDS - 1), "server"):
                run = self.begin("--until-done")
                self.until_it_flows(run, batch=self.begun + 2)  # during a run's first none is read ahead
                time.sleep(draw.uniform(0, 0.1))
                most = max(most, len(processes.of_kind(run.session, "server")))
                died[victim] += run.kill(victim)  # type: ignore[arg-type]
                if victim == "driver":
                    run.end()
            assert run.end() == 0, run.last_words()
        finally:
            self.close()
        print(f"{self.begun + 1} batches, killed: {died}")
        assert died["driver"]
        return most
