"""Each bench still runs, on data of seconds, and its tables are drawn: what it measures is no matter here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORK = Path.home() / ".cache" / "streamjoin" / "bench" / "work"


def run(script: str, *options: str) -> str:
    """What a script of bench prints."""
    command = [sys.executable, str(ROOT / "bench" / script), *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_what_benches_use_is_there(cache: Path) -> None:
    """Most of them run for minutes, so nobody would see that the product has moved on. Each folder's scripts name each other."""
    wrong = ("[attr-defined]", "[union-attr]", "[call-arg]", "[import-not-found]", "[syntax]")
    options = [
        "--config-file=",
        "--ignore-missing-imports",
        "--follow-imports=silent",
        "--check-untyped-defs",
    ]
    found = []
    for folder in sorted({script.parent for script in (ROOT / "bench").rglob("*.py")}):
        scripts = [str(script) for script in sorted(folder.glob("*.py"))]
        command = [
            sys.executable,
            "-m",
            "mypy",
            *options,
            "--no-namespace-packages",
            "--cache-dir",
            str(cache),
        ]
        paths = os.pathsep.join(map(str, (folder, ROOT / "bench", ROOT, ROOT / "operator")))
        done = subprocess.run(
            [*command, *scripts],
            check=False,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "MYPYPATH": paths},
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        found += [line for line in done.stdout.splitlines() if line.endswith(wrong)]
    assert not found, "\n".join(found)


@pytest.fixture
def cache() -> Path:
    """What mypy knows of the product is known to the next run."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "streamjoin" / "mypy-bench"


@pytest.mark.slow
def test_probe_orders(tmp_path: Path) -> None:
    """Each stream and figure, twice, so that noise is told; a second call has nothing left to do."""
    raw = tmp_path / "raw.json"
    parts = ["uniform", "skewed", "flip", "drift", "cycles", "history"]
    small = [
        "--kinds",
        "drift",
        "--scale",
        "0.01",
        "--repetitions",
        "2",
        "--orders",
        "1",
        "--results",
        str(raw),
    ]
    run("probe_order/run.py", *parts, *small)
    known = json.loads(raw.read_text())

    assert list(known) == parts
    assert {len(row["cpu"]) for part in known.values() for row in part["runs"]} == {2}
    assert [row.get("history") for row in known["history"]["runs"][:3]] == [None, 1, 2]
    assert "s, " not in run("probe_order/run.py", *parts, *small, "--go-on")
    run("probe_order/draw.py", str(raw))
    table = raw.with_suffix(".md").read_text()
    assert "## Initial orders: drift" in table
    assert "2 runs of each, medians; noise" in table


@pytest.mark.slow
def test_trees_of_joins_in_tpch() -> None:
    """Every query of UMJoin's table 3 has a tree of three inputs or more, and is planned."""
    run("nway/run.py", "convert", "--tiny")
    known = json.loads((WORK / "nway-tiny.json").read_text())["convert"]["outcomes"]

    assert len(known) == 11
    assert all(max(runs[0]["groups"]) >= 3 and runs[0]["runs"] for runs in known.values())


@pytest.mark.spark
@pytest.mark.slow
def test_joins_with_several_keys() -> None:
    """All our plans of a block give DuckDB's number of rows, and each tells its state."""
    printed = run("many_keys/run.py", "q3", "--tiny", "--systems", "ours")
    known = json.loads((WORK / "many_keys-tiny.json").read_text())["queries"]["q3"]

    assert {"auto", "text", "o l c"} <= set(known)
    assert all(known[name][0]["state_mb"] > 0 for name in ("auto", "text", "o l c"))
    assert "| q3 |" in printed


@pytest.mark.spark
@pytest.mark.slow
def test_nexmark() -> None:
    """A query that joins, and one whose changelog is kept and counted."""
    printed = run("nexmark/run.py", "q8", "q4", "--tiny", "--systems", "streamjoin-checked")
    assert all(f"| {name} |" in printed for name in ("q4", "q8"))


@pytest.mark.slow
def test_where_time_goes(tmp_path: Path) -> None:
    """Processes of the run are sampled, those forked by it too, and functions of the project are named."""
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: where}
spec:
  sql: SELECT a.k, b.v FROM a JOIN b ON a.k = b.k
  inputs:
    a: {schema: "k BIGINT, v STRING", generator: {keys: 50000, rows: 200000}}
    b: {schema: "k BIGINT, v STRING", generator: {keys: 50000, rows: 200000, seed: 1}}
  output: {noop: {}}
  checkpoint: {path: checkpoint}
"""
    )
    told = run("where.py", str(spec), "--lines", "100")
    command, others = told.split("| **command**")[1].split("| **other processes**")
    assert "| imports |" in command
    assert "joinlib/index/chains.py:Chains." in others
