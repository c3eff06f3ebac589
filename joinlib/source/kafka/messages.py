"""Messages in columns: one partition's, without an object of Python for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joinlib.arrays import I64
from joinlib.source.payloads import Payloads

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
AS_SENT = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))  # names that may be no text
Header = tuple[bytes, bytes | None]


class Message(NamedTuple):
    """One message, where it is looked at by itself."""

    topic: str
    partition: int
    offset: int
    time: int  # milliseconds since 1970; -1: it has none
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, eq=False)
class Messages(Sequence[Message]):
    """Messages of one partition, by offset. Parts of them share their bytes.

    Attributes:
        offsets: Of each.
        times: Milliseconds since 1970; -1: it has none.
        keys: Of each.
        values: Of each; a message without one is a tombstone.
        headers: Of each, as AS_SENT; NULL: they were not asked for.
    """

    topic: str
    partition: int
    offsets: I64
    times: I64
    keys: Payloads
    values: Payloads
    headers: pa.ListArray

    @classmethod
    def of(cls, messages: Sequence[Message]) -> "Messages":
        """Return messages of one partition in columns, in which they may be already."""
        if isinstance(messages, cls):
            return messages
        (topic, partition), *others = dict.fromkeys((m.topic, m.partition) for m in messages)
        assert not others
        headers = [[{"key": key, "value": value} for key, value in m.headers] for m in messages]
        return cls(
            topic,
            partition,
            np.array([m.offset for m in messages], np.int64),
            np.array([m.time for m in messages], np.int64),
            Payloads.of([m.key for m in messages]),
            Payloads.of([m.value for m in messages]),
            pa.array(headers, AS_SENT),
        )

    @classmethod
    def joined(cls, parts: Sequence["Messages"]) -> "Messages":
        """Return all of the parts, which are of one partition."""
        first = parts[0]
        if len(parts) == 1:
            return first
        return cls(
            first.topic,
            first.partition,
            np.concatenate([part.offsets for part in parts]),
            np.concatenate([part.times for part in parts]),
            Payloads.joined([part.keys for part in parts]),
            Payloads.joined([part.values for part in parts]),
            pa.concat_arrays([part.headers for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> "Messages": ...
    def __getitem__(self, at: int | slice) -> "Message | Messages":
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            assert step == 1
            headers = self.headers.slice(start, max(stop - start, 0))
            return self._with(at, self.keys[at], self.values[at], headers)
        given = self.headers[at].as_py() or ()
        return Message(
            self.topic,
            self.partition,
            int(self.offsets[at]),
            int(self.times[at]),
            self.keys[at],
            self.values[at],
            tuple((each["key"], each["value"]) for each in given),
        )

    def take(self, which: I64 | npt.NDArray[np.bool_]) -> "Messages":
        """Return those at positions, or for which there is True."""
        at = np.arange(len(self))[which]
        return self._with(at, self.keys.take(at), self.values.take(at), self.headers.take(pa.array(at)))

    def _with(self, at: slice | I64, keys: Payloads, values: Payloads, headers: pa.ListArray) -> "Messages":
        return Messages(self.topic, self.partition, self.offsets[at], self.times[at], keys, values, headers)
