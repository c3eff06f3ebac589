"""Batches without Spark: killed at named points, run again by Spark or by the next run, and killed at any moment.

small   one process runs each; there is no prefork, so it is a program of its own
wide    several do
mixed   so too, and Spark's map tasks write segments, which those processes do not: the state is in other segments then
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.spark.faults import processes
from tests.spark.faults.drawn import SEED, drawn
from tests.spark.faults.processes import Kind
from tests.spark.faults.scenario import FILES, TUNING, Run, Scenario, scenario
from tests.spark.faults.test_points import RETRYING

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
DIRECT: dict[str, Any] = {"partitions": None, "direct": True}
SEVERAL = {**TUNING, "small_rows": 0}
ALIKE = {**SEVERAL, "spool_bytes": 1 << 30, "direct_spool_bytes": 1 << 30}  # nobody writes segments but units
WAYS: dict[str, dict[str, Any]] = {
    "small": {**DIRECT, "deep": True},
    "wide": {**DIRECT, "tuning": ALIKE},
    "mixed": {**DIRECT, "tuning": SEVERAL},
}
WAY = drawn("direct way", tuple(WAYS), 1)
Like = Callable[[str, str], Scenario]
POINTS = {  # where the process dies that runs the batches
    "paths": ("arranged:3", "hopped:7"),
    "groups": ("handed:3", "grouped:7"),
    "full": ("joined:3", "written:7"),
}


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, undisturbed: Callable[[str], Scenario]) -> Iterator[Like]:
    """By way and kind: the same job in batches of Spark, never disturbed."""
    with ExitStack() as stack:

        @cache
        def made(way: str, kind: str) -> Scenario:
            if way == "mixed":
                return undisturbed(kind)
            folder = tmp_path_factory.mktemp("calm") / kind
            own: dict[str, Any] = {"tuning": ALIKE} if way == "wide" else {"partitions": None}
            job = stack.enter_context(scenario(folder, kind, **own))
            job.finish()
            return job

        yield made


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", drawn("direct", tuple(POINTS), 1))
def test_whatever_fails_spark_runs_it_again(kind: str, way: str, tmp_path: Path, calm: Like) -> None:
    """A process dies in two batches, and the run goes on; behind the first death also without Spark again."""
    with scenario(tmp_path / "job", kind, **WAYS[way]) as job:
        run = job.begin(*POINTS[kind], last=FILES - 1, conf=RETRYING)
        assert run.end() == 0
        assert not run.errors
        assert _left_to_spark(job) == 2
        job.finish()
        job.check(like=calm(way, kind), same=way != "mixed")


@pytest.mark.parametrize("way", WAY)
def test_the_driver_dies(way: str, tmp_path: Path, calm: Like) -> None:
    """When its tasks are done, and when a batch is visible: the next run, of Spark, runs the batch again."""
    with scenario(tmp_path / "job", "groups", **WAYS[way]) as job:
        for point in ("collected:3", "published_directly:7"):
            run = job.begin(point)
            assert run.end() == -9
            assert any(line.get("direct") for line in run.lines)
        job.finish()
        job.check(like=calm(way, "groups"), same=way != "mixed")


@pytest.mark.parametrize("way", WAY)
@pytest.mark.parametrize("victim", drawn("direct victims", ("server", "jvm", "driver", "everything"), 1))
def test_any_process_at_any_moment(victim: str, way: str, tmp_path: Path, calm: Like) -> None:
    """A process that runs the batches; Spark's, which they do without; the driver; or all at once."""
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(f"{SEED} {victim}")
    kinds: dict[str, Kind] = {"server": "server", "jvm": "jvm", "driver": "driver"}
    with scenario(tmp_path / "job", "stages", **WAYS[way]) as job:
        run = job.begin(first=victim != "jvm")  # there is a JVM where Spark was first
        _until_direct(run)
        time.sleep(0.2 * draw.random())
        assert run.kill(kinds[victim]) if victim in kinds else run.kill_all()
        if victim in ("server", "jvm"):
            run.until(batch=FILES - 1)
            assert run.alive
            assert not run.errors
        run.close()
        job.finish()
        job.check(like=calm(way, "stages"), same=way != "mixed")


def _left_to_spark(job: Scenario) -> int:
    """How many batches were left to Spark because something failed."""
    return (job.folder / "stderr.txt").read_text().count("a batch is left to Spark")


def _until_direct(run: Run, patience_s: float = 120.0) -> None:
    end = time.monotonic() + patience_s
    while not processes.of_kind(run.session, "server"):
        assert run.alive
        assert time.monotonic() < end
        time.sleep(0.01)
