"""Loads a spec whose inputs have their schemas in a registry: the columns come from there, or fit what is there.

The reader's schema, of values and of keys, is the newest one of its subject, as it is when a checkpoint begins; from
then on it is the one that the checkpoint keeps, so a job goes on as it was begun, whatever is registered meanwhile.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from joinlib.errors import InputError, SpecError
from joinlib.spec import load as load_spec
from joinlib.spec.base import is_from_registry
from joinlib.spec.from_registry import RegistryColumns, checked, columns_of, fills_from_keys, metadata
from joinlib.spec.inputs import Input
from joinlib.spec.kafka import SchemaRegistry
from joinlib.spec.model import StreamJoin

if TYPE_CHECKING:
    from joinlib.source.kafka.codecs import Codec

_LONGEST = 1 << 16  # characters of columns, of all inputs: a status of Kubernetes holds a megabyte


def load(path: str | Path) -> StreamJoin:
    """Load the StreamJoin of a YAML file, with the columns that a registry has.

    Raises:
        SpecError: It cannot be run, or the registry refuses.
        NotReady: The registry does not answer.
    """
    document = load_spec(path)
    spec, known = document.spec, {}
    for name, given in spec.inputs.items():
        if given.kafka is not None and given.kafka.registry is not None:
            known[name] = _registered(path, name, given, schemas(spec.checkpoint.folder, name))
    if not known:
        return document
    inputs = {**spec.inputs, **known}
    return document.model_copy(update={"spec": spec.model_copy(update={"inputs": inputs})})


def columns_in_registry(document: StreamJoin) -> dict[str, dict[str, str]]:
    """Return, as text, the columns that inputs of a loaded document have in a registry, whatever they declare of them.

    A schema without columns is left out, and so are all that would make the text longer than others want to keep.
    """
    from joinlib.source.kafka.codecs import codec_of, key_codec_of
    from joinlib.source.kafka.registry import KEYS, reader_of

    found, room = dict[str, dict[str, str]](), _LONGEST
    for name, given in document.spec.inputs.items():
        if given.kafka is None or given.kafka.registry is None:
            continue
        with suppress(InputError):
            values, keys = reader_of(given.arrow_schema), reader_of(given.arrow_schema, KEYS)
            own, of_keys = codec_of(given.kafka).columns(values), key_codec_of(given.kafka)
            text = RegistryColumns(own, of_keys.columns(keys) if of_keys is not None and keys else None).text
            room -= sum(map(len, text.values()))
            if room >= 0:
                found[name] = text
    return found


def schemas(checkpoint: Path, name: str) -> Path:
    """Return the folder in which a checkpoint keeps the schemas of an input."""
    return checkpoint / "sources" / f"{name}.schemas"


@dataclass(frozen=True)
class _ReaderSchema:
    """The reader's schema of an input's values, or of its keys."""

    place: str  # of the input, for errors
    subject: str
    codec: "Codec"
    texts: tuple[str, ...]

    def columns(self) -> pa.Schema:
        """Return the columns that it has."""
        with _named(self.place, self.subject):
            return self.codec.columns(self.texts)

    def check(self, want: pa.Schema) -> None:
        """Raise SpecError if columns cannot be read by it."""
        with _named(self.place, self.subject):
            self.codec.check(self.texts, want)


def _registered(path: str | Path, name: str, given: Input, folder: Path) -> Input:
    from joinlib.source.kafka.registry import KEYS, with_reader

    place = f"{path}: spec.inputs.{name}"
    values, keys = _of_values(place, given, folder), _of_keys(place, given, folder)
    columns = given.arrow_schema
    if is_from_registry(columns):
        whole = keys.columns() if keys is not None and fills_from_keys(given) else None
        columns = columns_of(given, RegistryColumns(values.columns(), whole))
    filled = metadata(given).columns.values()
    values.check(pa.schema([f for f in columns if f.name not in filled]))
    columns = with_reader(checked(place, given, columns), values.texts)
    if keys is not None:
        for want in _in_keys(given, columns):
            keys.check(want)
        columns = with_reader(columns, keys.texts, KEYS)
    return given.model_copy(update={"arrow_schema": columns})


def _of_values(place: str, given: Input, folder: Path) -> _ReaderSchema:
    from joinlib.source.kafka.codecs import codec_of
    from joinlib.source.kafka.registry import VALUES

    assert given.kafka is not None and given.kafka.registry is not None
    subject = given.kafka.registry.subject_of(given.kafka.names[0])
    codec = codec_of(given.kafka)
    return _ReaderSchema(
        place, subject, codec, _texts(place, given.kafka.registry, subject, codec, folder, VALUES)
    )


def _of_keys(place: str, given: Input, folder: Path) -> _ReaderSchema | None:
    """Return the reader's schema of keys, if they have one and columns are wanted of them."""
    from joinlib.source.kafka.codecs import key_codec_of
    from joinlib.source.kafka.registry import KEYS

    assert given.kafka is not None and given.kafka.registry is not None
    codec = key_codec_of(given.kafka)
    if codec is None or (given.kafka.metadata.key is None and given.upsert is None):
        return None
    subject = given.kafka.registry.key_subject_of(given.kafka.names[0])
    return _ReaderSchema(
        place, subject, codec, _texts(place, given.kafka.registry, subject, codec, folder, KEYS)
    )


def _in_keys(given: Input, columns: pa.Schema) -> Iterator[pa.Schema]:
    """Yield the columns that are read from keys: for themselves, and of a row that a key deletes."""
    about = metadata(given)
    if about.key is not None:
        yield pa.schema([columns.field(about.key)])
    filled = about.columns.values()
    own = [columns.field(n) for n in (given.upsert.key if given.upsert else ()) if n not in filled]
    if own:
        yield pa.schema(own)


def _texts(
    place: str, given: SchemaRegistry, subject: str, codec: "Codec", folder: Path, of: str
) -> tuple[str, ...]:
    """Return the reader's schema: the one that the checkpoint keeps, or the newest."""
    from joinlib.source.kafka import registry

    if (found := registry.kept(folder, of)) is not None:
        return found
    field = "keySubject" if of == registry.KEYS else "subject"
    try:
        with _named(place, subject):
            return codec.texts(registry.RegistryClient(given, codec.kind).newest(subject))
    except registry.Unknown as error:
        said = f"subject {subject} of registry {given.url} {error}"
        raise SpecError(f"{place}.kafka.registry: {said}; register a schema, or correct {field}") from None


@contextmanager
def _named(place: str, subject: str) -> Iterator[None]:
    """Name the subject whose schema is at fault."""
    try:
        yield
    except InputError as error:
        raise SpecError(f"{place}.schema: the schema of subject {subject}: {error}") from None
