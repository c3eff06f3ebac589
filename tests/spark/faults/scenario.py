"""A spec that is run, killed and run again; and what must hold when it is done.

    job.begin("segment:2") ─► run.until(batch=2) ─► run.kill("worker") ─► … ─► job.finish() ─► job.check(undisturbed)

Laws: the output is DuckDB's answer in the batches of a calm run, the state is that of a calm run, and nothing is left over.
"""

import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pyspark
from pyspark.sql import SparkSession

from joinlib.compiled import compiled
from joinlib.direct.report import Report
from joinlib.model.tuning import Tuning
from joinlib.spark.job import started
from joinlib.spark.spread import Spread
from joinlib.spec import load
from joinlib.state import segment
from joinlib.state.manifest import Manifest, decode
from tests.patience import HUNG_S
from tests.spark.faults import processes
from tests.spark.faults.processes import Kind
from tests.spark.faults.run import CORES, Kept, last_manifests
from tests.spark.trial import Trial, patiently

SCHEMA = "k BIGINT, v BIGINT, s STRING, at TIMESTAMP"
START = datetime(2026, 1, 1, tzinfo=UTC)
UNITS = 4
FILES, ROWS = 9, 40  # a file of each input a batch
TUNING = {  # a head lives for three batches or so: long enough to be found half changed, and to be sealed and merged
    "spool_bytes": 300,
    "direct_spool_bytes": 300,
    "file_bytes": 200,
    "seal_rows": 48,
    "spans": 1,
    "merge_segments": 2,
    "max_segments": 10,
    "max_runs": 2,
    "frame_rows": 7,
    "probe_pairs": 16,
}
APART = "p.at BETWEEN o.at - INTERVAL 6 MINUTES AND o.at + INTERVAL 9 MINUTES"
BOUND = f"o.k = p.k AND {APART}"
QUERIES = {
    "inner": f"SELECT o.k AS k, o.v AS ov, p.v AS pv, p.s AS s FROM orders o JOIN payments p ON {BOUND}",
    "tables": (
        "SELECT o.k AS k, o.v AS ov, p.v AS pv, c.name AS name, r.label AS label"
        f" FROM orders o JOIN payments p ON {BOUND} LEFT JOIN customers c ON o.k = c.k JOIN regions r ON o.s = r.s"
    ),
    "asked": (
        "SELECT o.k AS k, o.v AS ov, p.v AS pv, c.name AS name, r.label AS label"
        f" FROM orders o JOIN payments p ON {BOUND} LEFT JOIN customers c ON o.v % 11 = c.k JOIN regions r ON o.s = r.s"
    ),
    "routed": "SELECT o.v AS v, c.name AS name, r.label AS label FROM orders o"
    " LEFT JOIN customers c ON o.k = c.k LEFT JOIN regions r ON o.s = r.s",
    "band": f"SELECT o.k AS k, o.v AS ov, p.v AS pv, p.s AS s FROM orders o JOIN payments p ON ABS(o.k - p.k) <= 1 AND {APART}",
    "itself": (
        "SELECT o.k AS k, o.v AS ov, p.v AS pv, p.s AS s FROM orders o JOIN orders p"
        f" ON ABS(o.k - p.k) <= 1 AND {APART}"
    ),
    "stages": (
        "SELECT o.k AS k, o.v AS ov, p.s AS s, r.s AS rs, r.v AS rv"
        f" FROM orders o JOIN payments p ON {BOUND} JOIN refunds r ON r.v = p.v"
        " AND r.at BETWEEN p.at - INTERVAL 3 MINUTES AND p.at + INTERVAL 3 MINUTES"
    ),
    "groups": (
        "SELECT date_trunc('minute', o.at) AS minute, o.s AS s, count(*) AS n, sum(p.v) AS v, min(p.s) AS first"
        f" FROM orders o JOIN payments p ON {BOUND} GROUP BY date_trunc('minute', o.at), o.s"
    ),
    "full": f"SELECT o.k AS ok, p.k AS pk, o.v AS ov, p.v AS pv, p.s AS s FROM orders o FULL JOIN payments p ON {BOUND}",
}
QUERIES["changing"] = (
    "SELECT o.k AS k, o.v AS ov, p.v AS pv, p.s AS s FROM orders o LEFT JOIN payments p ON o.k = p.k"
)
QUERIES["totals"] = (
    "SELECT o.s AS s, count(*) AS n, sum(p.v) AS v, max(p.v) AS most, count(DISTINCT p.s) AS texts"
    " FROM orders o JOIN payments p ON o.k = p.k GROUP BY o.s"
)
QUERIES["nested"] = (  # groups below a join below a top-n
    "SELECT q.s AS s, q.n AS n, q.v AS v FROM (SELECT g.s AS s, g.n AS n, p.v AS v"
    " FROM (SELECT o.k AS k, o.s AS s, count(*) AS n FROM orders o GROUP BY o.k, o.s) g"
    " JOIN payments p ON g.k = p.k) q ORDER BY q.n DESC NULLS LAST, q.v NULLS FIRST, q.s NULLS FIRST LIMIT 9"
)
QUERIES["sealing"] = QUERIES["full"]
QUERIES["paths"] = QUERIES["stages"]
SEALING = {
    "levelled": True,
    "seal_rows": 1,
    "fanout": 2,
    "piece_bytes": 300,
}  # each batch seals, and goes on with merges
_EARLY = {"retain_batches": 3}  # files that were read go within a run
_TUNING = {"groups": _EARLY, "sealing": {**SEALING, **_EARLY}}  # of a kind, beside TUNING
_COMPACT = {"compact": {"every": "1h", "size": "200Ki"}}  # of about three batches
_JOIN = {"paths": {"strategy": "paths"}}
# Of a kind that meets random deaths, beside its query; "full" has none.
FEATURES: dict[str, dict[str, Any]] = {
    "stages": {"files": _COMPACT},
    "groups": {"done": "delete"},
    "sealing": {"files": _COMPACT, "done": "archive"},
}
Line = dict[str, Any]
_ROOT = Path(__file__).parents[3]


class Run:
    """One process tree, in a session of its own. `until` and `end` read what it tells.

    Its TMPDIR is short, as a user's is: sockets lie there, and in too deep a folder a run does without them, and without the
    prefork, which takes seconds. `deep`: it is so deep.
    """

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        errors: Path,
        deep: bool = False,
    ) -> None:
        self.lines: list[Line] = []
        temporary = tempfile.mkdtemp(prefix="run-" + "deep-" * 20 * deep)
        weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)
        self._errors = errors
        self._told: queue.Queue[Line | None] = queue.Queue()
        environment = {**environment, "TMPDIR": temporary}
        self._process = _begun(command, environment, errors)
        self.session = self._process.pid
        threading.Thread(target=self._listen, daemon=True).start()

    def until(self, patience_s: float = 300.0, **wanted: Any) -> Line:
        """Reads up to the line that holds `wanted`."""
        end = time.monotonic() + patience_s
        while (line := self._next(end)) is not None:
            if wanted.items() <= line.items():
                return line
        raise AssertionError(f"the run ended before {wanted}: {self.lines[-3:]}\n{self.last_words()}")

    def until_batches(self, count: int) -> None:
        """Reads up to the report of so many batches more."""
        end = time.monotonic() + 300
        while count >= 0 and (line := self._next(end)) is not None:
            count -= "batch" in line or "flowing" in line

    def end(self, patience_s: float = 300.0) -> int:
        """Reads on until the process has ended; its exit code."""
        end = time.monotonic() + patience_s
        while self._next(end) is not None:
            pass
        return self._process.wait(HUNG_S)

    def kill(self, kind: Kind) -> bool:
        """Kills the newest process of a kind; false if there is none."""
        found = processes.of_kind(self.session, kind)
        if found:
            processes.kill(max(found))
        return bool(found)

    def kill_all(self) -> int:
        """The whole session, as `kill -9` of everything would: the kernel lives on, with all that was written (for a power cut see `disk`). How many there were."""
        found = processes.of_session(self.session)
        for p in found:
            processes.kill(p.pid)
        return len(found)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def done(self) -> Line | None:
        """What the run told when its inputs were done."""
        return next((line for line in self.lines if line.get("done")), None)

    @property
    def flowing(self) -> bool:
        """Whether it has told that its query runs."""
        with self._told.mutex:
            return any(line and line.get("flowing") for line in [*self.lines, *self._told.queue])

    @property
    def reported(self) -> int:
        """The last batch of which it has told that it is done; -1 if there is none."""
        with self._told.mutex:
            lines = [*self.lines, *self._told.queue]
        return max((line["batch"] for line in lines if line and "batch" in line), default=-1)

    @property
    def errors(self) -> list[str]:
        """The messages that a user would have seen."""
        return [line["error"] for line in self.lines if "error" in line]

    def close(self) -> None:
        """Whatever happened: nothing of it runs on."""
        self.kill_all()
        self._process.wait(HUNG_S)
        assert not processes.gone(self.session)

    def _next(self, end: float) -> Line | None:
        try:
            line = self._told.get(timeout=max(end - time.monotonic(), 0.01))
        except queue.Empty:
            raise AssertionError(
                f"nothing happens any more: {self.lines[-3:]}\n{self.last_words()}"
            ) from None
        if line is None:
            self._told.put(None)  # it has ended, whoever asks next
        else:
            self.lines.append(line)
        return line

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for text in lines:
                if text.startswith("{"):
                    self._told.put(json.loads(text))
        self._told.put(None)

    def last_words(self) -> str:
        return self._errors.read_text(errors="replace")[-3000:]


def _begun(command: list[str], environment: dict[str, str], errors: Path) -> "subprocess.Popen[str]":
    with errors.open("ab") as stderr:
        return subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
            text=True,
        )


@dataclass(frozen=True)
class Table:
    """One of a database that the job looks rows up in. `postgres`: the field of the input."""

    schema: str
    rows: list[tuple[Any, ...]]
    postgres: dict[str, Any]


@dataclass
class Scenario:
    """The folder of one job that suffers. `runs`: all that it has been through."""

    schema: ClassVar[str] = SCHEMA
    session: ClassVar[SparkSession | None] = None  # in which jobs are finished; a process does without one
    folder: Path
    kind: str
    tables: dict[str, Table] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    tuning: dict[str, int] = field(default_factory=lambda: TUNING)
    files: dict[str, Any] = field(default_factory=dict)  # further fields of output.files
    done: str = "keep"  # what becomes of input files that were read
    partitions: int | None = CORES  # of its runs, unless one is told others
    direct: bool = False  # whether its runs do without Spark where they can, but for the one that finishes
    deep: bool = False  # whether its runs have too deep a TMPDIR for sockets
    apart: bool = False  # whether no other process may hold files of its folder: it is on a disk that goes

    def __post_init__(self) -> None:
        self.trial = Trial(self.folder, None)  # type: ignore[arg-type]  # only its files and its oracle are used
        (self.folder / "faults").mkdir()
        self.finished: Kept | None = None  # the manifests, where it was not a run that finished it
        self.tuning = {**self.tuning, **_TUNING.get(self.kind, {})}
        self.streams = [
            name for name in ("orders", "payments", "refunds") if f" {name} " in QUERIES[self.kind]
        ]
        self.trial.schemas |= {name: table.schema for name, table in self.tables.items()}
        self.rows = {name: self._drawn(seed, name) for seed, name in enumerate(self.streams)}
        for name, rows in self.rows.items():
            self.trial.input(name, self.schema)
            self.trial.fill(name, rows, FILES)
        (self.folder / "spec.yaml").write_text(json.dumps(self._spec()))

    def begin(self, *faults: str, under: Sequence[str] = (), **order: Any) -> Run:
        """Starts the job. `faults`: points at which something of it dies; `under`: a command that runs the job's."""
        for fault in faults:
            (self.folder / "faults" / fault).touch()
        spec, spread = str(self.folder / "spec.yaml"), {"partitions": self.partitions}
        # Of runs that do without Spark, every second one does from its first batch on.
        how = {"direct": self.direct, "first": self.direct and len(self.runs) % 2 == 0}
        told = {"spec": spec, "tuning": self.tuning, **how, **spread, **order}
        environment = {
            **os.environ,
            "PYTHONPATH": str(_ROOT),
            "STREAMJOIN_FAULTS": str(self.folder / "faults"),
            "STREAMJOIN_LOCAL_DIR": str(self.indexes),
        }
        command = [*under, sys.executable, "-m", "tests.spark.faults.run", json.dumps(told)]
        self.runs.append(Run(command, environment, self.folder / "stderr.txt", self.deep))
        return self.runs[-1]

    def divide(self, units: int) -> None:
        """Changes the number of units in the spec."""
        spec = self._spec()
        spec["spec"]["join"]["units"] = units
        (self.folder / "spec.yaml").write_text(json.dumps(spec))

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def indexes(self) -> Path:
        """Where all that run it keep their indexes: who finishes it finds what the dead have left."""
        shared = os.environ.get("STREAMJOIN_LOCAL_DIR") if self.session and not self.apart else None
        return Path(shared or self.folder / "indexes")

    def leave_behind(self, batch: int) -> None:
        """What attempts leave that die while they write: half a file, and a whole one that no manifest names."""
        for folder in (self.folder / "checkpoint" / "state" / "0").iterdir():
            (folder / f".0-{batch:08d}.1.1").write_bytes(b"half")
            (folder / f"0-{batch:08d}-0000000000000000.arrow").write_bytes(b"whole")

    def finish(self, **order: Any) -> None:
        """Runs to the end, undisturbed from here on: in the session that is there already, unless it is told an order."""
        if self.session is None or self.apart or order:
            self.finished, run = None, self.begin(**{"direct": False, "first": False, **order})
            run.until(done=True)
            assert run.end() == 0, run.last_words()
            return
        session = self.session
        self.finished = patiently(lambda: self._finished(session.newSession()))

    def _finished(self, spark: SparkSession) -> Kept:
        """The last manifests."""
        plan = compiled(load(self.folder / "spec.yaml"), CORES, Tuning(**self.tuning))
        spread = Spread(self.partitions) if self.partitions else None
        with started(plan, _quiet, until_done=True, cores=CORES, spark=spark, spread=spread) as job:
            assert job.wait(300), "the run has not ended"
            return last_manifests(plan, job.partitions)

    def check(self, like: "Scenario", same: bool = True) -> None:
        """Every law of exactly once. `like`: the same job, never disturbed; same: its state is in the same segments."""
        assert not list((self.folder / "faults").iterdir()), "a fault was never reached"
        self.check_output(like)
        if same:
            assert self.manifests == like.manifests, "they are those of the undisturbed run, byte by byte"
        self._check_state()
        self._check_inputs()
        for run in self.runs:
            assert not processes.gone(run.session)

    def close(self) -> None:
        for run in self.runs:
            run.close()
            for line in run.lines:
                if line.get(
                    "application"
                ):  # executors of a local-cluster leave their logs beside Spark itself
                    shutil.rmtree(
                        Path(pyspark.__file__).parent / "work" / line["application"], ignore_errors=True
                    )

    def _drawn(self, seed: int, name: str) -> list[tuple[Any, ...]]:
        """The rows of an input, in the order of its files."""
        return _made(seed)

    # --- laws --------------------------------------------------------------------------------------------------------

    def check_output(self, like: "Scenario") -> None:
        """DuckDB's answer, in the same batches unless they are compacted, and nothing staged or waiting is left."""
        sql = QUERIES[self.kind]
        tables = {name: table.rows for name, table in self.tables.items()}
        assert self.trial.output(sql) == self.trial.expected(sql, **self.rows, **tables) != Counter()
        files = _batches(self.trial.out)
        if "compact" in self.files:
            assert len(files) < FILES or self._starts > 3, "several batches a folder, unless runs are short"
        else:
            assert files == _batches(like.trial.out)
            assert max(files.values()) <= CORES, "a file a task"
        assert not (self.trial.out / ".waiting").exists()
        staged = self.trial.out / ".staging"
        assert not staged.exists() or not list(staged.iterdir())

    def _check_state(self) -> None:
        """Every file that the manifests name is whole.

        There is no other, but what attempts of the last batch have left: it goes when the next one begins.
        """
        (last, before) = (self.manifests[b] for b in sorted(self.manifests, reverse=True))
        written = f"-{max(self.manifests):08d}"
        for unit, manifest in enumerate(last):
            folder = self._segments(manifest, unit)
            there = {f.name for f in folder.iterdir()} if folder.exists() else set()
            assert manifest.names <= there
            left = [name for name in there - manifest.names if written not in name]
            assert not left, f"{folder}: {left}"
            for side in (*before[unit].sides, *manifest.sides):
                for live in side.segments:
                    segment.verify(folder, live)
        assert len(self.streams) == 1 or sum(s.rows for m in before for s in m.sides) > 0

    def _check_inputs(self) -> None:
        """Files that were read have gone, to the archive or for good; none is in two places, and none is archived twice."""
        for name in self.streams:
            there, archived = (
                sorted(f.name for f in folder.glob("*.parquet"))
                for folder in (self.folder / name, self._archive(name))
            )
            assert (len(there) < FILES) == (self.done != "keep")
            if self.done == "archive":
                assert sorted(there + archived) == [f"{at:03d}.parquet" for at in range(FILES)]

    def _archive(self, name: str) -> Path:
        return self.folder / f"{name}.archive"

    @property
    def _starts(self) -> int:
        """How often it was run."""
        return len(self.runs) + (self.finished is not None)

    @property
    def manifests(self) -> dict[int, list[Manifest]]:
        """By batch: those of all units, of the last run; without the probe orders, which depend on measured times."""
        kept = self.finished
        if kept is None:
            done = self.runs[-1].done
            assert done is not None
            kept = done["manifests"]
        return {
            int(batch): [replace(decode(m.encode("latin-1")), probes=()) for m in all_]
            for batch, all_ in kept.items()
        }

    def _segments(self, manifest: Manifest, unit: int) -> Path:
        stage, number = divmod(unit, UNITS)
        return self.folder / "checkpoint" / "state" / str(stage) / f"{number:05d}"

    def _spec(self) -> dict[str, Any]:
        event_time = {"column": "at", "delay": "2m"}
        inputs: dict[str, Any] = {
            name: {
                "schema": self.schema,
                "eventTime": event_time,
                "files": {"path": name, "orderBy": "name", "maxFilesPerBatch": 1, "done": self.done},
            }
            for name in self.streams
        }
        if self.done == "archive":
            for name in self.streams:
                inputs[name]["files"]["archive"] = self._archive(name).name
        for name, table in self.tables.items():
            inputs[name] = {"schema": table.schema, "postgres": {**table.postgres, "table": name}}
        return {
            "apiVersion": "streamjoin.dev/v1alpha1",
            "kind": "StreamJoin",
            "metadata": {"name": "faults"},
            "spec": {
                "sql": QUERIES[self.kind],
                "inputs": inputs,
                "output": {"files": {"path": "out", "format": "parquet", **self.files}},
                "checkpoint": {"path": "checkpoint"},
                "batch": {"interval": "0s"},  # nobody waits for a kill
                "join": {"units": UNITS, **_JOIN.get(self.kind, {})},
            },
        }


@contextmanager
def scenario(folder: Path, kind: str, made_as: type[Scenario] = Scenario, **more: Any) -> Iterator[Scenario]:
    """A scenario of which nothing runs on afterwards."""
    folder.mkdir()
    made = made_as(folder, kind, **more)
    try:
        yield made
    finally:
        made.close()


def _made(seed: int) -> list[tuple[Any, ...]]:
    """Few keys; times that rise by five seconds, give or take half a minute, so that none is late."""
    draw = random.Random(seed)
    return [
        (
            draw.choice([None, *range(11)]),
            at,
            draw.choice(["ape", "bee", None]),
            START + timedelta(seconds=5 * at + draw.randrange(-30, 30)),
        )
        for at in range(FILES * ROWS)
    ]


def _quiet(report: Report) -> None:
    """Tells nobody of a batch."""


def _batches(out: Path) -> dict[str, int]:
    return {folder.name: len(list(folder.iterdir())) for folder in out.glob("batch=*")}
