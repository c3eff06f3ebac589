"""Messages with the number of their schema in front, which a registry knows.

Each message is read by the schema of its own id; where ids are mixed, each is read by itself, and the rows are
put in the order of the messages.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from joinlib.errors import InputError
from joinlib.source.cells.arrow import Malformed
from joinlib.source.kafka.bad import Bad
from joinlib.source.kafka.codecs import ID, Codec, MessageReader
from joinlib.source.kafka.registry import RegistryClient, Unknown, keep, kept
from joinlib.source.payloads import Payloads
from joinlib.spec.kafka import SchemaRegistry
from joinlib.worker import current

_UNFRAMED = "does not begin with a zero byte and the number of a schema; is it written with a registry?"


@dataclass(frozen=True)
class Framed:
    """Reads messages of one input to some of its columns."""

    registry: SchemaRegistry
    codec: Codec
    folder: Path  # where schemas are kept
    reader: tuple[str, ...]  # the reader's schema
    unknown: dict[int, str] = field(default_factory=dict)  # ids that there are no schemas of: why

    def table(self, values: Payloads, want: pa.Schema) -> pa.Table:
        """Return the rows of messages, none of which is missing.

        Raises:
            Bad: One cannot be read.
            NotReady, SpecError: The registry does not answer, or refuses.
        """
        first = self.codec.head(values[0] or b"")
        if values.begin_with(first):  # nothing else begins so
            return self._of_one(first, values, want)
        heads = [self.codec.head(value or b"") for value in values]
        tables, order = [], []
        for kind in sorted(set(heads)):
            own = np.array([i for i, head in enumerate(heads) if head == kind])
            tables.append(self._of_one(kind, values.take(own), want))
            order.append(own)
        return pa.concat_tables(tables).take(pa.array(np.argsort(np.concatenate(order))))

    def _of_one(self, head: bytes, values: Payloads, want: pa.Schema) -> pa.Table:
        if len(head) < ID or head[0]:
            raise Bad(_UNFRAMED)
        try:
            return self._rows(head, want).table(values, len(head))
        except Malformed as error:
            raise Bad(str(error)) from None

    def _rows(self, head: bytes, want: pa.Schema) -> MessageReader:
        """Return what reads messages of a schema, which a worker keeps."""
        key = self.folder, self.codec, head, want, self.reader
        found: MessageReader = current().schemas.made(key, lambda: self._made(head, want))
        return found

    def _made(self, head: bytes, want: pa.Schema) -> MessageReader:
        id = int.from_bytes(head[1:ID], "big")
        try:
            return self.codec.rows(self._texts(id), head, want, self.reader)
        except InputError as error:
            raise Bad(f"schema {id}: {error}") from None

    def _texts(self, id: int) -> tuple[str, ...]:
        if (found := kept(self.folder, id)) is not None:
            return found
        if id in self.unknown:
            raise Bad(self.unknown[id])
        try:
            found = self.codec.texts(RegistryClient(self.registry, self.codec.kind).of_id(id))
        except (Unknown, InputError) as error:
            self.unknown[id] = f"schema {id} of registry {self.registry.url}: {error}"
            raise Bad(self.unknown[id]) from None
        keep(self.folder, found, id)
        return found
