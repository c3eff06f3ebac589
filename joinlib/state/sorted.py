"""Sorted indexes of segments, in files of the executor's local folder that every worker process maps.

An index is of one or several segments. A segment never changes, so neither does its index: it is built on
first use and deleted with its segments. The file's name is made of the segments' names (which identify
their content) and of what is compared. The file is a cache: if it is missing or truncated, it is rebuilt.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import xxhash

from joinlib.files import whole

if TYPE_CHECKING:  # imported lazily: joins by equality never need it
    from joinlib.index.inequality import PermutedRun

# "groups" exists only with a key.
_NAMES = ("ops", "of", "floats", "values", "order", "perms", "places", "starts", "groups")


class SortedIndexes:
    """The sorted indexes of one side of one join.

    number: the side's number. compared: a description of what is compared, and how.
    """

    def __init__(self, folder: Path, number: int, compared: str = "") -> None:
        self.folder, self.number = folder, number
        self._prefix = f"s{number}-{xxhash.xxh3_64_hexdigest(compared.encode())}-"
        self._open: dict[str, PermutedRun] = {}  # by name

    def of(self, segments: Sequence[str], make: "Callable[[], PermutedRun]") -> "PermutedRun":
        """Return the index of these segments, built by `make` if there is none.

        O(1) once it is open, O(n log n) if it must be built.
        """
        name = named(segments)
        if name not in self._open:
            path = self.folder / f"{self._prefix}{name}"
            found = _read(path)
            if found is None:
                _write(path, make())
                found = _read(path)
                assert found is not None
            self._open[name] = found
        return self._open[name]

    @property
    def names(self) -> set[str]:
        """The names of the indexes that are open in this process."""
        return set(self._open)

    def keep(self, alive: set[str]) -> None:
        """Delete all indexes but those named in `alive`, including those of other processes. O(files)."""
        self._open = {name: run for name, run in self._open.items() if name in alive}
        for path in self.folder.glob(f"s{self.number}-*"):
            if path.name.split("-", 2)[2] not in alive or not path.name.startswith(self._prefix):
                path.unlink(missing_ok=True)

    @property
    def bytes(self) -> int:
        """The size of the index files on the executor, in bytes."""
        return sum(path.stat().st_size for path in self.folder.glob(f"{self._prefix}*"))


def named(segments: Sequence[str]) -> str:
    """Return the name of the index of these segments."""
    if len(segments) == 1:
        return segments[0]
    return f"{segments[0]}+{xxhash.xxh3_64_hexdigest(' '.join(segments).encode())}"


def _write(path: Path, run: "PermutedRun") -> None:
    arrays = run.arrays()
    with whole(path) as aside, pa.OSFile(str(aside), "wb") as file:
        for name in [name for name in _NAMES if name in arrays]:
            array = np.ascontiguousarray(arrays[name])
            pa.ipc.write_tensor(
                pa.Tensor.from_numpy(array.reshape(-1, run.rows) if array.ndim == 2 else array), file
            )


def _read(path: Path) -> "PermutedRun | None":
    from joinlib.index.inequality import PermutedRun

    try:
        with pa.memory_map(str(path)) as file:
            size = file.size()
            needed = (name for name in _NAMES if name != "groups" or file.tell() < size)
            return PermutedRun.of({name: pa.ipc.read_tensor(file).to_numpy() for name in needed})
    except (FileNotFoundError, pa.ArrowInvalid, OSError):
        return None
