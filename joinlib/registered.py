"""Loads a spec whose inputs have their schemas in a registry: the columns come from there, or fit what is there.

The reader's schema is the newest one of the subject, as it is when a checkpoint begins; from then on it is the one
that the checkpoint keeps, so a job goes on as it was begun, whatever is registered meanwhile.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pydantic import ValidationError

from joinlib.errors import InputError, SpecError
from joinlib.spec import load as load_spec
from joinlib.spec.base import is_from_registry
from joinlib.spec.inputs import METADATA_TYPES, Input
from joinlib.spec.model import StreamJoin

if TYPE_CHECKING:
    from joinlib.source.kafka.codecs import Codec


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


def schemas(checkpoint: Path, name: str) -> Path:
    """Return the folder in which a checkpoint keeps the schemas of an input."""
    return checkpoint / "sources" / f"{name}.schemas"


def _registered(path: str | Path, name: str, given: Input, folder: Path) -> Input:
    from joinlib.source.kafka.codecs import codec_of
    from joinlib.source.kafka.registry import with_reader

    place = f"{path}: spec.inputs.{name}"
    assert given.kafka is not None
    codec = codec_of(given.kafka)
    try:
        texts = _reader(place, given, folder, codec)
        own = codec.columns(texts) if is_from_registry(given.arrow_schema) else None
        columns = given.arrow_schema if own is None else _columns(given, own)
        filled = given.kafka.metadata.columns.values()
        codec.check(texts, pa.schema([f for f in columns if f.name not in filled]))
    except InputError as error:
        raise SpecError(f"{place}.schema: the schema of subject {_subject(given)}: {error}") from None
    return given.model_copy(update={"arrow_schema": with_reader(_checked(place, given, columns), texts)})


def _reader(place: str, given: Input, folder: Path, codec: "Codec") -> tuple[str, ...]:
    from joinlib.source.kafka import registry

    assert given.kafka is not None and given.kafka.registry is not None
    if (found := registry.kept(folder)) is not None:
        return found
    subject = _subject(given)
    try:
        return codec.texts(registry.RegistryClient(given.kafka.registry, codec.kind).newest(subject))
    except registry.Unknown as error:
        said = f"subject {subject} of registry {given.kafka.registry.url} {error}"
        raise SpecError(f"{place}.kafka.registry: {said}; register a schema, or correct subject") from None


def _subject(given: Input) -> str:
    assert given.kafka is not None and given.kafka.registry is not None
    return given.kafka.registry.subject_of(given.kafka.names[0])


def _columns(given: Input, own: pa.Schema) -> pa.Schema:
    """Return the columns of the reader's schema, and those that are filled from what is about a message."""
    assert given.kafka is not None
    filled = {column: METADATA_TYPES[about][0] for about, column in given.kafka.metadata.columns.items()}
    rest = [f for f in own if f.name not in filled]
    return pa.schema([*rest, *(pa.field(name, type) for name, type in filled.items())])


def _checked(place: str, given: Input, columns: pa.Schema) -> pa.Schema:
    """Return the columns, once all that the spec says of them is right."""
    try:
        Input.model_validate({**dict(given), "arrow_schema": columns})
    except ValidationError as error:
        lines = [line for e in error.errors() for line in str(e["msg"]).splitlines()]
        raise SpecError("\n".join(f"{place}.{line}" for line in lines)) from None
    return columns
