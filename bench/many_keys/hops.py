"""What does a further hop of a join by paths cost a small batch?

Chains of two, three and four inputs, `t0.k0 = t1.k0 AND t1.k1 = t2.k1 AND ...`, each pair by a key of its own: by paths
there is an exchange more for each input behind the second. Batches have a thousand rows, all inputs together.

    python bench/many_keys/hops.py [TURNS]
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

ROWS, BATCHES, WARM = 1_000, 40, 8  # of a batch; batches of a run; those left out: Python compiles, Java too
CHAINS = (2, 3, 4)  # inputs


def sql(inputs: int) -> str:
    """Every two neighbours share a key."""
    on = " AND ".join(f"t{n}.k{n} = t{n + 1}.k{n}" for n in range(inputs - 1))
    return (
        f"SELECT t0.v AS a, t{inputs - 1}.v AS b FROM {', '.join(f't{n}' for n in range(inputs))} WHERE {on}"
    )


def columns(inputs: int) -> Iterator[tuple[str, list[str]]]:
    """The keys of each input: what it shares with the one before, and with the one behind."""
    for n in range(inputs):
        yield f"t{n}", [f"k{at}" for at in (n - 1, n) if 0 <= at < inputs - 1]


def write(inputs: int, folder: Path) -> Path:
    """Files and a spec. A row finds a partner of each neighbour by the end."""
    random, each, given = np.random.default_rng(1), ROWS // inputs, {}
    for name, keys in columns(inputs):
        (folder / name).mkdir()
        for batch in range(BATCHES):
            rows = {key: random.integers(0, each * BATCHES, each) for key in keys} | {"v": np.arange(each)}
            pq.write_table(pa.table(rows), folder / name / f"{batch:03d}.parquet")
        schema = ", ".join(f"{column} BIGINT" for column in (*keys, "v"))
        files = {"path": name, "format": "parquet", "orderBy": "name", "maxFilesPerBatch": 1}
        given[name] = {"schema": schema, "files": files}
    spec = {
        "sql": sql(inputs),
        "inputs": given,
        "output": {"noop": {}},
        "join": {"strategy": "paths"} if inputs > 2 else {},
        "checkpoint": {"path": "checkpoint"},
    }
    whole = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "hops"}}
    file = folder / "hops.yaml"
    file.write_text(yaml.safe_dump({**whole, "spec": spec}))
    return file


def measured(inputs: int) -> list[float]:
    """Spark's own seconds for each batch, of a run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--run", str(write(inputs, Path(folder)))]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return [float(seconds) for _, seconds in found][WARM:]


def run(spec: Path) -> None:
    """One run, in this process."""
    from bench.timed import run_to_end

    sys.stdout.write(json.dumps(sorted(run_to_end(spec).seconds.items())) + "\n")


def main(turns: int) -> None:
    took: dict[int, list[float]] = {inputs: [] for inputs in CHAINS}
    for _ in range(turns):
        for inputs, seconds in took.items():
            seconds.extend(measured(inputs))
    lines = [
        "| inputs | exchanges | batches | median, ms | more than with one exchange less, ms |",
        "|---|---|---|---|---|",
    ]
    medians = {inputs: statistics.median(seconds) * 1e3 for inputs, seconds in took.items()}
    for inputs, ms in medians.items():
        more = f"{ms - medians[inputs - 1]:+.0f}" if inputs - 1 in medians else ""
        lines.append(f"| {inputs} | {inputs - 1} | {len(took[inputs])} | {ms:.0f} | {more} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    if sys.argv[1:2] == ["--run"]:
        run(Path(sys.argv[2]))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 1)
