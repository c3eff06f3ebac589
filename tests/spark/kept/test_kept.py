"""What earlier versions have written: this one goes on from it, and the results of both are DuckDB's answer."""

import json
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from joinlib.errors import SpecError
from joinlib.state import manifests
from joinlib.state.manifest import Manifest, decode
from tests.spark.kept import job
from tests.spark.trial import Trial

pytestmark = pytest.mark.spark


APART = job.archive("groups-apart")  # of before groups were stages


@pytest.mark.parametrize(
    "archive", sorted({*job.archives()} - {APART}), ids=lambda path: path.name.removesuffix(".tar.xz")
)
def test_a_kept_checkpoint_goes_on(trial: Trial, archive: Path) -> None:
    """With stages, marks, sorted runs and groups of then: rows that come now find them, each once."""
    _unpack(archive, trial.folder)
    job.declare(trial)
    before = trial.output(job.SQL)
    _holds_everything(trial)

    job.feed(trial, job.FILES, 3)
    ran = trial.run(job.SQL, tuning=job.TUNED)

    assert sum(ran.late) == 0
    assert before < trial.output(job.SQL) == trial.expected(job.SQL)


def test_a_kept_checkpoint_goes_on_with_fewer_aggregates(trial: Trial) -> None:
    """Of groups that earlier versions have begun; those that came out then are not told again."""
    _unpack(job.archive("0.1.0"), trial.folder)
    job.declare(trial)
    before = trial.output(job.SQL)
    fewer = job.SQL.replace(
        "count(*) AS n, count(p.v) AS paid, sum(p.v) AS v, min(p.s) AS first",
        "min(p.s) AS first, count(p.v) AS paid",
    )
    job.feed(trial, job.FILES, 3)
    trial.run(fewer, tuning=job.TUNED, output={"files": {"path": "fewer"}})

    after = trial.output(fewer, out="fewer")
    told = Counter((minute, s, first, paid) for minute, s, _, paid, _, first in before.elements())
    assert told + after == trial.expected(fewer) != Counter()


def test_what_cannot_go_on_is_refused(trial: Trial) -> None:
    """Before anything of it is touched."""
    _unpack(APART, trial.folder)
    before = _content(trial.folder)
    job.declare(trial)
    job.feed(trial, job.FILES, 3)
    with pytest.raises(SpecError, match="an earlier version kept the groups beside the stages"):
        trial.run(job.SQL, tuning=job.TUNED)
    assert before.items() <= _content(trial.folder).items()


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as packed:
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.2 has none
        packed.extractall(folder, **safe)  # type: ignore[arg-type]


def _content(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def _holds_everything(trial: Trial) -> None:
    """Or it would show less than it is kept for."""
    checkpoint = trial.folder / "checkpoint"
    assert json.loads((checkpoint / "streamjoin.json").read_text())["id"]
    assert {f.stem for f in (checkpoint / "sources").glob("*.jsonl")} == set(job.STREAMS)
    last = max((checkpoint / "state" / "manifests").iterdir())
    units = [(int(f.name[0]), decode(m)) for f in sorted(last.iterdir()) for m in manifests._read(f).values()]
    assert {stage for stage, _ in units} == {0, 1, 2}  # two joins, and the groups
    joins = [side for stage, unit in units if stage < 2 for side in unit.sides]
    assert any(side.marks for side in joins), "marks"
    assert any(run.sealed and run.level for side in joins for run in side.runs), "runs that were merged"
    assert any(side.merges for side in joins), "merges half way"
    assert any(s.content is None for side in joins for s in side.segments), "files"
    assert any(s.content is not None for side in joins for s in side.segments), "rows in the manifest"
    assert _groups(units), "groups"


def _groups(units: list[tuple[int, Manifest]]) -> int:
    return sum(side.rows for stage, unit in units if stage == 2 for side in unit.sides)
