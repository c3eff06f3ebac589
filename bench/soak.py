"""Does anything grow with the number of batches?

A job of tiny batches, watched from outside until it has made so many.

    python bench/soak.py --work FOLDER --out bench/results/soak [--batches 100000]
    python bench/soak.py --draw bench/results/soak.json

`streamjoin run` joins two generators by a LEFT JOIN within ten seconds, four slices of 500 rows a second
each, into files: state is bounded by time, so all that rises is a leak - or is meant to be kept, as results
are. Every `--every` seconds: how many files and folders of the checkpoint and of the indexes, results,
descriptors, memory maps, memory of Java and of all Python processes (proportional set sizes), live objects of
Java's heap (after a full collection), seconds a batch.

OUT.json: the samples, and the slope of each over the second half, by 1 000 batches; OUT.png: the curves.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import facts
from matplotlib.figure import Figure
from memory import PROC, held_mb, tree
from picture import save

SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: soak}
spec:
  sql: >-
    SELECT a.k, a.v AS a, b.v AS b FROM a LEFT JOIN b
    ON a.k = b.k AND b.t BETWEEN a.t - INTERVAL 10 SECONDS AND a.t + INTERVAL 10 SECONDS
  inputs:
    a:
      schema: k BIGINT, v STRING, t TIMESTAMP
      eventTime: {column: t, delay: 1s}
      generator: {rowsPerSecond: 2000, keys: 20000}
    b:
      schema: k BIGINT, v STRING, t TIMESTAMP
      eventTime: {column: t, delay: 1s}
      generator: {rowsPerSecond: 2000, keys: 20000, seed: 1}
  output: {files: {path: out}}
  join: {units: 4}
  batch: {maxRows: 1000}
  checkpoint: {path: checkpoint}
"""
CURVES = {  # of a sample: what its axis says
    "seconds_a_batch": "seconds a batch",
    "java_mb": "Java, MB",
    "java_live_mb": "Java's live objects, MB",
    "python_mb": "Python, MB",
    "checkpoint_files": "files of the checkpoint",
    "local_files": "files of indexes, temporary ones",
    "results": "folders of results",
    "descriptors": "descriptors",
    "maps": "memory maps",
}
HEAP_EVERY = 180  # samples: a full collection has Spark delete files, which it must do by itself
Sample = dict[str, float]


class Soak:
    """The job, and what it was seen to hold."""

    def __init__(self, work: Path) -> None:
        self.work, self.samples = work, list[Sample]()
        (work / "tmp").mkdir(parents=True)
        file = work / "soak.yaml"
        file.write_text(SPEC)
        local = {"TMPDIR": str(work / "tmp"), "STREAMJOIN_LOCAL_DIR": str(work / "tmp")}
        with (work / "said").open("wb") as said:
            self._job = subprocess.Popen(
                [sys.executable, "-m", "jobs.cli", "run", str(file), "--plain"],
                env={**os.environ, **local},
                stdout=said,
                stderr=said,
            )

    @property
    def batches(self) -> int:
        """Those that have been committed."""
        commits = self.work / "checkpoint" / "spark" / "commits"
        done = [int(f.name) for f in commits.iterdir() if f.name.isdigit()] if commits.exists() else []
        return max(done, default=-1) + 1

    @property
    def alive(self) -> bool:
        return self._job.poll() is None

    def look(self, before: tuple[float, int]) -> tuple[float, int]:
        """One sample more; `before`: the time and the batches of the one before."""
        now, batches = time.monotonic(), self.batches
        if batches > before[1]:
            self.samples.append(self._sample(batches, (now - before[0]) / (batches - before[1])))
        return now, batches

    def _sample(self, batches: int, seconds: float) -> Sample:
        processes = tree(self._job.pid)
        java = {p for p in processes if _name(p) == "java"}
        heap = {"java_live_mb": sum(map(_live_mb, java))} if len(self.samples) % HEAP_EVERY == 0 else {}
        return {
            "batches": batches,
            "seconds_a_batch": seconds,
            "java_mb": sum(map(held_mb, java)),
            "python_mb": sum(map(held_mb, processes - java)),
            "checkpoint_files": _entries(self.work / "checkpoint"),
            "local_files": _entries(self.work / "tmp"),
            "results": len(os.listdir(self.work / "out")),
            "descriptors": sum(map(_descriptors, processes)),
            "maps": sum(map(_maps, processes)),
            "load": os.getloadavg()[0],
            **heap,
        }

    def end(self) -> None:
        """Stops the job between two batches."""
        if self.alive:
            self._job.send_signal(signal.SIGINT)
        self._job.wait(120)


def _name(process: int) -> str:
    try:
        return (PROC / str(process) / "comm").read_text().strip()
    except OSError:  # ended meanwhile, here and below
        return ""


def _descriptors(process: int) -> int:
    try:
        return len(os.listdir(PROC / str(process) / "fd"))
    except OSError:
        return 0


def _maps(process: int) -> int:
    try:
        return (PROC / str(process) / "maps").read_text().count("\n")
    except OSError:
        return 0


def _live_mb(process: int) -> float:
    """Of Java's heap, after a full collection. The last line is `Total INSTANCES BYTES`."""
    told = subprocess.run(["jmap", "-histo:live", str(process)], capture_output=True, text=True, check=False)
    return int(told.stdout.split()[-1]) / 1e6 if told.returncode == 0 else 0.0


def _entries(folder: Path) -> int:
    """Files and folders below a folder that changes meanwhile."""
    return sum(len(folders) + len(files) for _, folders, files in os.walk(folder))


def slopes(samples: list[Sample]) -> dict[str, float]:
    """By 1 000 batches, of a line through the second half of each curve."""
    late = [s for s in samples if s["batches"] >= samples[-1]["batches"] / 2]
    found = {}
    for name in CURVES:
        points = [(s["batches"] / 1000, s[name]) for s in late if name in s]
        if len(points) > 1:
            found[name] = round(float(np.polyfit(*zip(*points, strict=True), 1)[0]), 4)
    return found


def draw(report: dict[str, Any], file: Path) -> None:
    """A curve of each, over batches; its slope in the title."""
    figure = Figure(figsize=(12, 8))
    for axes, (name, label) in zip(figure.subplots(3, 3).flat, CURVES.items(), strict=True):
        points = [(s["batches"], s[name]) for s in report["samples"] if name in s]
        axes.plot(*zip(*points, strict=True), linewidth=0.8)
        axes.set_title(f"{label}: {report['slopes'].get(name, 0):+g} by 1 000 batches", fontsize=9)
        axes.set_ylim(0)
        axes.set_xlabel("batches", fontsize=8)
    save(figure, file)


def soak(work: Path, out: Path, batches: int, every: float) -> None:
    """Writes the report whenever it has grown: a soak may be cut off."""
    report: dict[str, Any] = {"machine": facts(), "every_seconds": every}
    job = Soak(work)
    try:
        seen = time.monotonic(), 0
        while seen[1] < batches and job.alive:
            time.sleep(every)
            seen = job.look(seen)
            if len(job.samples) > 2:
                report |= {"slopes": slopes(job.samples), "samples": job.samples}
                out.with_suffix(".json").write_text(json.dumps(report))
        if seen[1] < batches:
            sys.exit(f"the job ended after {seen[1]} batches: {(work / 'said').read_text()[-2000:]}")
    finally:
        job.end()
    draw(report, out.with_suffix(".png"))


def main() -> None:
    """Soak or draw, and say the slopes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, help="a folder that does not exist yet, removed at the end")
    parser.add_argument("--out", type=Path, help="the report's name, without .json")
    parser.add_argument("--batches", type=int, default=100_000)
    parser.add_argument("--every", type=float, default=10.0, help="seconds")
    parser.add_argument("--draw", type=Path, help="draw again from this report")
    args = parser.parse_args()
    if args.draw:
        report = json.loads(args.draw.read_text())
        draw(report, args.draw.with_suffix(".png"))
    elif args.work and args.out:
        try:
            soak(args.work, args.out, args.batches, args.every)
        finally:
            shutil.rmtree(args.work, ignore_errors=True)
        report = json.loads(args.out.with_suffix(".json").read_text())
    else:
        parser.error("--work and --out are needed, or --draw")
    print(json.dumps(report["slopes"], indent=1))


if __name__ == "__main__":
    main()
