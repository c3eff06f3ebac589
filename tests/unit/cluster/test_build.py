"""Programs and images that take minutes to make: what is said meanwhile, and of a failure. Go and buildah are stand-ins."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_GO = """#!/bin/sh
[ "$1" != list ] || { echo v1.2.3; exit; }
echo one/package >&2
printf '\\033[1mother/package\\033[0m\\r\\n\\n' >&2
until [ -e "$GO_ON" ]; do sleep 0.02; done
[ ! -s "$GO_ON" ] || { cat "$GO_ON" >&2; exit 1; }
while [ $# -gt 1 ]; do [ "$1" != -o ] || GOBIN=$(dirname "$2"); shift; done
touch "$GOBIN/kwok" "$GOBIN/helm"
"""

_BUILDAH = """#!/bin/sh
[ "$1" = build ] || exit 0
echo STEP 1
echo pip says no >&2
exit 7
"""


@dataclass
class Builder:
    """`build`, with a cache of its own and a Go that waits until it is told to go on."""

    folder: Path

    @property
    def cache(self) -> Path:
        return self.folder / "streamjoin" / "cluster"

    def start(self, *names: str, script: str = "tools/cluster/build") -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(self.folder),
            "GO_ON": str(self.folder / "on"),
            "PROGRESS_S": "0.05",
        }
        command = [str(ROOT / script), *names]
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def go_on(self, error: str = "") -> None:
        (self.folder / "on").write_text(error)


@pytest.fixture
def builder(tmp_path: Path) -> Iterator[Builder]:
    if shutil.which("flock") is None:
        pytest.skip("there is no flock")
    (tmp_path / "bin").mkdir()
    for name, text in {"go": _GO, "buildah": _BUILDAH, "docker": "#!/bin/sh\nexit 1\n"}.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    made = Builder(tmp_path)
    yield made
    made.go_on()  # whoever waits ends


def until(process: subprocess.Popen[str], words: str) -> list[str]:
    """What it says up to a line with these words."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line.rstrip("\n"))
        if words in line:
            return said
    raise AssertionError(said)


def test_it_says_what_it_makes(builder: Builder) -> None:
    """Which program of how many, for how long, and its last line, without what only a terminal understands; then nothing more."""
    process = builder.start("kwok", "helm")
    log = builder.cache / "kwok.log"
    begun, *_, told = until(process, "line 3")
    assert begun == f"build: making kwok, 1 of 2; log: {log}"
    assert told.startswith("build: making kwok, 1 of 2: ")
    assert told.endswith(" s, line 3: other/package")
    builder.go_on()
    out, err = process.communicate()
    assert process.returncode == 0
    assert "build: making kwok, 1 of 2: done in" in err
    assert "build: making helm, 2 of 2: done in" in err
    assert [Path(line).name for line in out.split()] == ["kwok", "helm"]
    assert all(Path(line).exists() for line in out.split())

    again = builder.start("kwok", "helm")
    assert again.communicate() == (out, "")


def test_a_failure_says_why(builder: Builder) -> None:
    """The end of the log, and where it lies; nothing is left that would be taken for the program."""
    builder.go_on("it does not compile\n")
    process = builder.start("kwok")
    out, err = process.communicate()
    log = builder.cache / "kwok.log"
    assert (process.returncode, out) == (1, "")
    *_, why, last = err.splitlines()
    assert why == "it does not compile"
    assert last.startswith("build: making kwok, 1 of 1: failed after ")
    assert last.endswith(f"; log: {log}")
    assert "it does not compile" in log.read_text()
    assert sorted(f.name for f in builder.cache.iterdir()) == [".kwok.lock", "kwok.log"]


def test_it_says_that_another_one_is_at_it(builder: Builder) -> None:
    """And takes what that one has made."""
    first = builder.start("kwok")
    until(first, "line 3")
    second = builder.start("kwok")
    until(second, "another process is at it; log:")
    builder.go_on()
    made, _ = first.communicate()
    assert second.communicate()[0] == made


def test_an_image_that_cannot_be_built_says_why(builder: Builder) -> None:
    """With the exit code of whoever failed."""
    process = builder.start(script="docker/build")
    out, err = process.communicate()
    assert (process.returncode, out) == (7, "")
    log = builder.folder / "streamjoin" / "image" / "build.log"
    *_, step, why, last = err.splitlines()
    assert (step, why) == ("STEP 1", "pip says no")
    assert last.startswith("build: building localhost/streamjoin:dev: failed after ")
    assert last.endswith(f"; log: {log}")
