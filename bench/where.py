"""Where does a run's processor time go, by process and by function? In any checkout of this project.

    python bench/where.py cores latency              # cases of `cases.py`; without a name all of them
    python bench/where.py cores --tree ../earlier    # the same, of another checkout
    python bench/where.py SPEC.yaml --lines 30

Runs `streamjoin run SPEC --until-done` with a sampler in each of its Python processes (`sampled/sitecustomize.py`), and prints
milliseconds: of each kind of process, and of the functions that used most. A function's time is that of all that it calls,
but for other functions of the project. The sampler takes some hundredths of the time that it tells.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from cases import CASES, made
from memory import tree

HERE = Path(__file__).parent


def sampled(spec: Path, tree: Path) -> tuple[float, dict[str, Counter[str]], dict[str, float]]:
    """Return the seconds of a run, and by kind of process those of its functions and of all of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {
            **os.environ,
            "STREAMJOIN_SAMPLES": name,
            "STREAMJOIN_TREE": str(tree),
            "PYTHONPATH": os.pathsep.join([str(tree), str(HERE / "sampled")]),
        }
        command = [sys.executable, "-m", "jobs.cli", "run", str(spec), "--until-done"]
        began = time.monotonic()
        job = subprocess.Popen(command, env=environment, cwd=spec.parent, stdout=subprocess.DEVNULL)
        jvm = 0.0
        while job.poll() is None:
            jvm = max(jvm, _jvm(job.pid))
            time.sleep(0.05)
        seconds = time.monotonic() - began
        if job.returncode:
            raise SystemExit(f"the run ended with {job.returncode}")
        spent: dict[str, Counter[str]] = {}
        whole: dict[str, float] = {}
        for file in folder.glob("*.json"):
            told = json.loads(file.read_text())
            kind = "command" if file.stem == str(job.pid) else "other processes"
            spent.setdefault(kind, Counter()).update(told["spent"])
            whole[kind] = whole.get(kind, 0.0) + told["all"]
        if jvm:
            whole["JVM"] = jvm
        return seconds, spent, whole


def _jvm(root: int) -> float:
    """Seconds of the Java processes below a process."""
    seconds = 0.0
    for process in tree(root):
        with suppress(OSError):  # ended meanwhile
            name, _, rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")
            if name.partition("(")[2] == "java":
                user, system = rest.split()[11:13]
                seconds += (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return seconds


def table(seconds: float, spent: dict[str, Counter[str]], whole: dict[str, float], lines: int) -> str:
    """Of what `sampled` says, in Markdown."""
    text = [f"{seconds:.1f} s on the clock", "", "| | ms |", "|---|---:|"]
    for kind, total in sorted(whole.items()):
        text.append(f"| **{kind}** | **{1000 * total:,.0f}** |")
        functions = spent.get(kind, Counter())
        for place, one in functions.most_common(lines):
            text.append(f"| {place} | {1000 * one:,.0f} |")
        if functions:
            other = total - sum(functions.values())
            few = sum(functions.values()) - sum(one for _, one in functions.most_common(lines))
            text.append(f"| other functions | {1000 * few:,.0f} |")
            text.append(f"| threads that are not Python's | {1000 * max(0.0, other):,.0f} |")
    return "\n".join(text)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("what", nargs="*", default=list(CASES), help="names of cases, or specs")
    asked.add_argument("--tree", type=Path, default=HERE.parent, help="another checkout of this project")
    asked.add_argument("--lines", type=int, default=8, help="functions to tell of each kind of process")
    given = asked.parse_args()
    for what in given.what:
        print(f"\n## {what}\n", flush=True)
        with tempfile.TemporaryDirectory() as name:
            spec = made(what, Path(name)) if what in CASES else Path(what).resolve()
            print(table(*sampled(spec, given.tree.resolve()), given.lines), flush=True)


if __name__ == "__main__":
    main()
