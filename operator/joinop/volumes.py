"""Resolve the paths of a spec to volumes.

Each must be under one, and a checkpoint must be where no other job has its own.

Two paths are compared by claim, or by node, and folder: where they are mounted does not matter.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from joinlib.spec.inputs import Input, KafkaTopics
from joinlib.spec.kafka import KafkaConnection, SchemaRegistry
from joinlib.spec.model import Spec, Volume
from joinlib.spec.postgres import PostgresConnection


@dataclass(frozen=True)
class VolumePath:
    """A folder of a claim, or of the node (no claim)."""

    claim: tuple[str, str] | None  # namespace and name
    folder: PurePosixPath

    def overlaps(self, other: "VolumePath") -> bool:
        """Is one of them in the other?"""
        if self.claim != other.claim:
            return False
        return self.folder.is_relative_to(other.folder) or other.folder.is_relative_to(self.folder)


def checkpoint(spec: Spec, namespace: str) -> VolumePath | None:
    """Return where the checkpoint is; None if it is under no volume."""
    path = PurePosixPath(spec.checkpoint.folder)
    volume = _volume(spec, path)
    if volume is None:
        return None
    below = path.relative_to(volume.mount_path)
    if volume.claim is not None:
        return VolumePath((namespace, volume.claim), "/" / below)
    return VolumePath(None, PurePosixPath(volume.host_path or "/") / below)


def claims(spec: Spec) -> list[str]:
    """Return the claims that must exist."""
    return sorted({volume.claim for volume in spec.volumes if volume.claim is not None})


def problems(spec: Spec) -> Iterator[str]:
    """Yield paths that are under no volume, and volumes that are mounted twice."""
    for number, volume in enumerate(spec.volumes):
        yield from _in_the_way(spec, number, volume)
    for place, path, written in _paths(spec):
        found = _volume(spec, path)
        named = "the file" if place.endswith("File") else path  # a secret may stand in place of its file
        if found is None:
            mounted = ", ".join(volume.mount_path for volume in spec.volumes) or "none"
            yield (
                f"spec.{place}: {named} is under no volume (mounted: {mounted}); "
                "add one to spec.volumes with a mountPath that holds it"
            )
        elif written and not found.written:
            why = "readOnly; remove readOnly, or use" if found.secret is None else "a Secret; use"
            yield f"spec.{place}: {named} is on the volume {found.mount_path}, which is {why} another volume"


def _in_the_way(spec: Spec, number: int, volume: Volume) -> Iterator[str]:
    path = PurePosixPath(volume.mount_path)
    if any(path == PurePosixPath(other.mount_path) for other in spec.volumes[:number]):
        yield f"spec.volumes.{number}.mountPath: {volume.mount_path} is mounted twice; remove one"


def _paths(spec: Spec) -> Iterator[tuple[str, PurePosixPath, bool]]:
    for name, source in spec.inputs.items():
        yield from _input(f"inputs.{name}", source)
    if spec.output.kafka is not None:
        yield from _kafka("output.kafka", spec.output.kafka)
        yield from _registry("output.kafka", spec.output.kafka.registry)
    if spec.output.postgres is not None:
        yield from _postgres("output.postgres", spec.output.postgres)
    if spec.output.files is not None:
        yield "output.files.path", PurePosixPath(spec.output.files.path), True
    if spec.dead_letters is not None:
        yield "deadLetters.path", PurePosixPath(spec.dead_letters.path), True
    yield "checkpoint.path", PurePosixPath(spec.checkpoint.path), True


def _input(place: str, source: Input) -> Iterator[tuple[str, PurePosixPath, bool]]:
    if source.files is not None:
        yield f"{place}.files.path", PurePosixPath(source.files.path), source.files.done != "keep"
        if source.files.archive is not None:
            yield f"{place}.files.archive", PurePosixPath(source.files.archive), True
    if source.kafka is not None:
        yield from _topics(f"{place}.kafka", source.kafka)
    if source.postgres is not None:
        yield from _postgres(f"{place}.postgres", source.postgres)


def _topics(place: str, kafka: KafkaTopics) -> Iterator[tuple[str, PurePosixPath, bool]]:
    yield from _kafka(place, kafka)
    yield from _registry(place, kafka.registry)
    if kafka.dead_letters is not None:
        yield f"{place}.deadLetters.path", PurePosixPath(kafka.dead_letters.path), True


def _kafka(place: str, connection: KafkaConnection) -> Iterator[tuple[str, PurePosixPath, bool]]:
    """Yield the files of credentials."""
    for field, path in connection.security.files.items():
        yield f"{place}.security.{field}", PurePosixPath(path), False


def _registry(place: str, registry: SchemaRegistry | None) -> Iterator[tuple[str, PurePosixPath, bool]]:
    """Yield the files of credentials."""
    for field, path in registry.files.items() if registry is not None else ():
        yield f"{place}.registry.{field}", PurePosixPath(path), False


def _postgres(place: str, connection: PostgresConnection) -> Iterator[tuple[str, PurePosixPath, bool]]:
    """Yield the files of credentials.

    A password file under no volume would be somebody else's, such as the driver's token.
    """
    if connection.password_file is not None:
        yield f"{place}.passwordFile", PurePosixPath(connection.password_file), False
    for field, path in connection.security.files.items():
        yield f"{place}.security.{field}", PurePosixPath(path), False


def _volume(spec: Spec, path: PurePosixPath) -> Volume | None:
    """Return the deepest volume that holds a path."""
    holding = [volume for volume in spec.volumes if path.is_relative_to(volume.mount_path)]
    return max(holding, key=lambda volume: len(PurePosixPath(volume.mount_path).parts), default=None)
