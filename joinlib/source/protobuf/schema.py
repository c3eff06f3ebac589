"""Finds the type of a message in compiled files."""

import base64
from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from joinlib.errors import InputError


class ProtoSchema:
    """Compiled files, of which the last is the schema."""

    def __init__(self, compiled: str) -> None:
        """Read what `compiled_files` has made."""
        self._pool, found = DescriptorPool(), FileDescriptorSet.FromString(base64.b64decode(compiled))
        for file in found.file:
            self._pool.Add(file)
        self._file = found.file[-1]

    def at(self, indexes: Sequence[int]) -> Descriptor:
        """Return the type at a place of the schema: its number in the file, then those within the types around it.

        As Confluent's, numbers count the types in the order of the text, without those that stand for maps.

        Raises:
            InputError: There is none.
        """
        inner: Iterable[Any] = self._file.message_type
        names = [self._file.package] if self._file.package else []
        for index in indexes:
            messages = [m for m in inner if not m.options.map_entry]
            if not 0 <= index < len(messages):
                place = ".".join(map(str, indexes))
                raise InputError(f"it has no message type at {place}; is the message written by this schema?")
            names.append(messages[index].name)
            inner = messages[index].nested_type
        return self._pool.FindMessageTypeByName(".".join(names))

    def named(self, name: str | None) -> Descriptor:
        """Return the type of a full name; the first of the schema if there is no name.

        Raises:
            InputError: There is none.
        """
        if name is None:
            return self.at([0])
        try:
            return self._pool.FindMessageTypeByName(name)
        except KeyError:
            package = f"{self._file.package}." if self._file.package else ""
            there = ", ".join(package + m.name for m in self._file.message_type) or "none"
            raise InputError(
                f"it has no message type {name}; correct registry.message (there: {there})"
            ) from None
