"""A disk that is full of bytes or of inodes, a process that may map no more: a word that names the folder, where a write through a map would kill the process.

Each test runs in a process of its own, which SIGBUS may end.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

CHAINS = """
from joinlib.index.chains import Chains
chains = Chains(place / "index", 0)
for number in range(200):
    chains.insert(np.arange(1000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
"""
MARKS = """
from joinlib.index.chains import Chains
chains = Chains(place / "index", 0, 1 << 15)
chains.insert(np.arange(1 << 15, dtype=np.uint64) << np.uint64(40))
(place / "others").write_bytes(bytes(os.statvfs(place).f_bavail * 4096))
chains.mark(np.arange(1 << 15, dtype=np.int32))
"""
SEALED = """
from joinlib.index.marks import MarkFile
MarkFile(place / "marks", 1 << 21).mark(np.arange(1 << 21, dtype=np.int32))
"""
CACHE = """
from joinlib.lookup.entries import Entries
entries = Entries(place / "entries", 15)
for number in range(32):
    hashes = np.arange(number << 10, number + 1 << 10, dtype=np.uint64) << np.uint64(40)
    entries.append(number, hashes, np.zeros(1024, np.int64), np.ones(1024, np.int64), 1024, 9)
"""
TABLE = """
import pyarrow as pa
from joinlib.lookup.spill import PARTS, Spill
rows = pa.record_batch([pa.array(np.arange(1 << 9, dtype=np.uint64))], ["$hash"])
spill = Spill(place / "spill", rows.schema)
for number in range(32):
    spill.add([[rows]] * PARTS)
"""
MAPS = """
import mmap
import pyarrow as pa
from joinlib.index.chains import Chains
from joinlib.state import segment
Chains(place / "index", 0)
written = segment.write(place, "0", pa.record_batch([pa.array([1])], ["a"]))
held = []
try:
    while True:
        held.append(mmap.mmap(-1, 4096))
except OSError:
    pass
{then}
"""
OPENED = {
    "segment": "segment.read(place, written, pa.schema([('a', pa.int64())]))",
    "scattered": "segment.read(place, written, pa.schema([('a', pa.int64())]), scattered=True)",
    "index": "Chains(place / 'index', 0)",
}
FILES = """
from joinlib.files import whole
for number in range(100):
    with whole(place / str(number)) as aside:
        aside.write_text("")
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a tmpfs with such options."""
    with ExitStack() as stack:

        def mounted(options: str) -> Path:
            place = tmp_path / "disk"
            place.mkdir()
            command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
            stack.callback(subprocess.run, ["umount", "-l", str(place)], check=True)
            return place

        yield mounted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "code", "left"),
    [
        pytest.param("size=1m", CHAINS, "KiB", id="chains"),
        pytest.param("size=1m", MARKS, "KiB", id="marks"),
        pytest.param("size=1m", SEALED, "KiB", id="sealed"),
        pytest.param("size=1m", CACHE, "KiB", id="cache"),
        pytest.param("size=1m", TABLE, "KiB", id="table"),
        pytest.param("size=1m,nr_inodes=30", FILES, " 0 inodes left", id="inodes"),
    ],
)
def test_a_full_disk_is_a_word(disk: Callable[[str], Path], options: str, code: str, left: str) -> None:
    """The process lives, and says which folder it is and what to do."""
    place = disk(options)
    said = last_words(place, code)
    folder = place / "spill" if code == TABLE else place
    assert f"NotReady: the disk is full: {folder} has " in said
    assert left in said and "run again" in said


@pytest.mark.slow
@pytest.mark.parametrize("what", OPENED)
def test_no_map_more_is_a_word(tmp_path: Path, what: str) -> None:
    """And no damage: nothing is to be restored."""
    said = last_words(tmp_path, MAPS.format(then=OPENED[what]))
    assert f"NotReady: {tmp_path}/" in said
    assert "vm.max_map_count allows" in said and "sysctl" in said and "nothing is damaged" in said


def last_words(place: Path, code: str) -> str:
    """Of a process that ends with an error, and not by a signal."""
    head = f"import os\nimport numpy as np\nfrom pathlib import Path\nplace = Path({str(place)!r})\n"
    spare = {**os.environ, "PYTHONMALLOC": "malloc"}  # Python's own takes maps
    done = subprocess.run(
        [sys.executable, "-c", head + code], env=spare, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, (done.returncode, done.stderr[-500:])
    return done.stderr.splitlines()[-1]
