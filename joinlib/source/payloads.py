"""Byte strings in one buffer, as values and keys of messages are read and written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joinlib.arrays import I64
from joinlib.source.memory import lined

U8 = npt.NDArray[np.uint8]
_NOTHING = np.empty(1, np.uint8)  # an address, where there are no bytes


@dataclass(frozen=True, eq=False)
class Payloads(Sequence[bytes | None]):
    """Byte strings, of which some may be missing. Parts of them share their bytes.

    Attributes:
        data: The bytes.
        starts: Where each begins in `data`.
        sizes: How many bytes each has; -1: it is missing.
    """

    data: U8
    starts: I64
    sizes: I64

    @classmethod
    def of(cls, values: Sequence[bytes | None]) -> "Payloads":
        """Return byte strings as payloads, which they may be already."""
        if isinstance(values, cls):
            return values
        there = [v for v in values if v is not None]
        sizes = np.full(len(values), -1)
        sizes[[v is not None for v in values]] = np.fromiter(map(len, there), np.int64, len(there))
        return cls(np.frombuffer(bytearray(b"\n").join(there), np.uint8), _starts(sizes + 1), sizes)

    @classmethod
    def of_column(cls, column: pa.Array) -> "Payloads":
        """Return the texts of a column, whose bytes are shared; NULL is missing."""
        wide = column.cast(pa.large_binary())
        _, ends, data = wide.buffers()
        bounds = np.frombuffer(ends, np.int64, len(wide) + 1, 8 * wide.offset)
        sizes = np.diff(bounds)
        if wide.null_count:
            sizes[~wide.is_valid().to_numpy(zero_copy_only=False)] = -1
        return cls(np.frombuffer(data or b"", np.uint8), bounds[:-1], sizes)

    @classmethod
    def copied(cls, addresses: I64, sizes: I64) -> "Payloads":
        """Return what lies at addresses."""
        data = np.empty(int(sizes.sum()) + len(sizes) or 1, np.uint8)
        starts = np.empty(len(sizes), np.int64)
        lined(addresses, sizes, True, starts, data)
        return cls(data, starts, sizes)

    @classmethod
    def joined(cls, parts: Sequence["Payloads"]) -> "Payloads":
        """Return all of the parts."""
        if len(parts) == 1:
            return parts[0]
        sizes = np.concatenate([part.sizes for part in parts])
        return cls.copied(np.concatenate([part._addresses for part in parts]), sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, at: int) -> bytes | None: ...
    @overload
    def __getitem__(self, at: slice) -> "Payloads": ...
    def __getitem__(self, at: int | slice) -> "bytes | Payloads | None":
        if isinstance(at, slice):
            return Payloads(self.data, self.starts[at], self.sizes[at])
        start, size = int(self.starts[at]), int(self.sizes[at])
        return None if size < 0 else self.data[start : start + size].tobytes()

    def __iter__(self) -> Iterator[bytes | None]:
        data, starts = self.within
        whole = data.tobytes()
        for start, size in zip(starts.tolist(), self.sizes.tolist(), strict=True):
            yield None if size < 0 else whole[start : start + size]

    @property
    def there(self) -> npt.NDArray[np.bool_]:
        """Which are not missing."""
        return self.sizes >= 0

    @property
    def within(self) -> tuple[U8, I64]:
        """The bytes from the first to the last of them, and where each begins there."""
        if not len(self):
            return self.data[:0], self.starts
        low = int(self.starts.min())
        high = int((self.starts + np.maximum(self.sizes, 0)).max())
        return self.data[low:high], self.starts - low

    def take(self, which: I64 | npt.NDArray[np.bool_]) -> "Payloads":
        """Return those at positions, or for which there is True."""
        return Payloads(self.data, self.starts[which], self.sizes[which])

    def begin_with(self, head: bytes) -> bool:
        """Return whether all of them begin so."""
        if self.sizes.min(initial=len(head)) < len(head):
            return False
        begins = self.data[self.starts[:, None] + np.arange(len(head))]
        return bool((begins == np.frombuffer(head, np.uint8)).all())

    def lines(self) -> bytes:
        """Return them, none of which is missing, with a line break between each two."""
        if not np.array_equal(self.starts[1:], self.starts[:-1] + self.sizes[:-1] + 1):
            return Payloads.copied(self._addresses, self.sizes).lines()
        return self.within[0].tobytes()

    def column(self) -> pa.BinaryArray:
        """Return them as a column, in which those that are missing are NULL.

        Raises:
            pa.ArrowInvalid: They take 2 GiB or more.
        """
        sizes = np.maximum(self.sizes, 0)
        data, starts = np.empty(int(sizes.sum()), np.uint8), np.empty(len(self) + 1, np.int64)
        lined(self._addresses, self.sizes, False, starts, data)
        starts[-1] = len(data)
        nulls = None if self.there.all() else pa.py_buffer(np.packbits(self.there, bitorder="little"))
        found = [nulls, pa.py_buffer(starts), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), found).cast(pa.binary())

    @property
    def addresses(self) -> I64:
        """Where each begins in memory, as long as there are these payloads; zero: it is missing."""
        return np.where(self.there, self._addresses, 0)

    @property
    def _addresses(self) -> I64:
        return self.starts + (self.data if self.data.size else _NOTHING).ctypes.data


def _starts(sizes: I64) -> I64:
    return np.concatenate(([0], np.cumsum(sizes)))[:-1]
