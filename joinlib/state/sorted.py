"""The sorted index of one or several segments, in a file of the executor's local folder that every worker process maps.

A segment never changes, so neither does its index: made when it is first asked for, gone with its segments. The file is named
by them (they by their content) and by what is compared. It is a cache: one that is missing or cut off is made anew.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import xxhash

from joinlib.files import whole

if TYPE_CHECKING:  # most joins have an equality and need none
    from joinlib.index.inequality import Run

# The last with a key only.
_NAMES = ("ops", "of", "floats", "values", "order", "perms", "places", "starts", "groups")


class SortedIndexes:
    """Those of one side of one join. `number` is the side's, `compared` says what is compared, and how."""

    def __init__(self, folder: Path, number: int, compared: str = "") -> None:
        self.folder, self.number = folder, number
        self._prefix = f"s{number}-{xxhash.xxh3_64_hexdigest(compared.encode())}-"
        self._open: dict[str, Run] = {}  # by name

    def of(self, segments: Sequence[str], make: "Callable[[], Run]") -> "Run":
        """The index of these segments. O(1) once it is open, O(n log n) where it must be made."""
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
        """Of those that this process has open."""
        return set(self._open)

    def keep(self, alive: set[str]) -> None:
        """Deletes all but those with these names, whoever has made them. O(files)."""
        self._open = {name: run for name, run in self._open.items() if name in alive}
        for path in self.folder.glob(f"s{self.number}-*"):
            if path.name.split("-", 2)[2] not in alive or not path.name.startswith(self._prefix):
                path.unlink(missing_ok=True)

    @property
    def bytes(self) -> int:
        """What they take on the executor."""
        return sum(path.stat().st_size for path in self.folder.glob(f"{self._prefix}*"))


def named(segments: Sequence[str]) -> str:
    """The name of the index of these segments."""
    if len(segments) == 1:
        return segments[0]
    return f"{segments[0]}+{xxhash.xxh3_64_hexdigest(' '.join(segments).encode())}"


def _write(path: Path, run: "Run") -> None:
    arrays = run.arrays()
    with whole(path) as aside, pa.OSFile(str(aside), "wb") as file:
        for name in [name for name in _NAMES if name in arrays]:
            array = np.ascontiguousarray(arrays[name])
            pa.ipc.write_tensor(
                pa.Tensor.from_numpy(array.reshape(-1, run.rows) if array.ndim == 2 else array), file
            )


def _read(path: Path) -> "Run | None":
    from joinlib.index.inequality import Run

    try:
        with pa.memory_map(str(path)) as file:
            size = file.size()
            needed = (name for name in _NAMES if name != "groups" or file.tell() < size)
            return Run.of({name: pa.ipc.read_tensor(file).to_numpy() for name in needed})
    except (FileNotFoundError, pa.ArrowInvalid, OSError):
        return None
