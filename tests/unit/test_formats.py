"""What another version has written: the one before is gone on from, a later one is refused by name. Nothing is changed by that."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from joinlib import formats
from joinlib.checkpoint.identity import READERS, identify
from joinlib.compiled import Compiled, compiled
from joinlib.errors import SpecError, StateError
from joinlib.model.fingerprint import compare, fingerprint
from joinlib.spark.source import StreamReader
from joinlib.spec import parse
from joinlib.state.manifest import Run, Segment, SideManifest, decode, empty

SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: formats}
spec:
  sql: SELECT a.k, a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k AND b.t BETWEEN a.t AND a.t + INTERVAL 1 MINUTE
  inputs:
    a: {schema: "k INT, v INT, t TIMESTAMP", eventTime: {column: t, delay: 1s}, files: {path: a}}
    b: {schema: "k INT, v INT, t TIMESTAMP", eventTime: {column: t, delay: 1s}, files: {path: b}}
  output: {noop: {}}
  checkpoint: {path: checkpoint}
"""
LATER = "a later version wrote it"


@pytest.fixture
def plan(tmp_path: Path) -> Compiled:
    (tmp_path / "checkpoint").mkdir()
    return compiled(parse(SPEC, "formats.yaml", tmp_path), 2)


def changed(file: Path, **fields: Any) -> bytes:
    """Other fields in a file of JSON; None: not there."""
    raw = {**json.loads(file.read_text()), **fields}
    file.write_text(json.dumps({k: v for k, v in raw.items() if v is not None}))
    return file.read_bytes()


def test_every_version_that_is_read_has_a_reader() -> None:
    """And what is written is read."""
    assert set(READERS) == set(formats.IDENTITY.reads)
    assert set(formats.FIRST) == {f.name for f in formats.STORED}
    for format in (formats.IDENTITY, formats.PLAN, *formats.STORED):
        assert format.writes == max(format.reads)


def test_an_identity_of_the_version_before(plan: Compiled) -> None:
    """It said nothing of formats. It is gone on from, and says it from then on; what else stood in it stays."""
    made = identify(plan.checkpoint, "formats", plan.pipeline)
    file = plan.checkpoint / "streamjoin.json"
    changed(file, v=None, formats=None, by=None, epoch=7)

    assert identify(plan.checkpoint, "formats", plan.pipeline) == made
    said = json.loads(file.read_text())
    assert (said["v"], said["formats"], said["epoch"]) == (2, formats.written(), 7)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"v": 3}, ["identity version 3", "reads 1 and 2", LATER, "StreamJoin 9.9"]),
        ({"formats": {**formats.FIRST, "hash": 2}}, ["hash version 2", "reads 1", LATER]),
        (
            {"formats": {**formats.FIRST, "segment": 0}},
            ["segment version 0", "reads 1", "a version in between"],
        ),
        ({"formats": {**formats.FIRST, "weights": 1}}, ["weights", LATER]),
        ({"formats": None}, ["is damaged"]),
    ],
)
def test_an_identity_of_another_version(plan: Compiled, fields: dict[str, Any], words: list[str]) -> None:
    """Refused with both versions and the way on; the file stays as it is."""
    identify(plan.checkpoint, "formats", plan.pipeline)
    file = plan.checkpoint / "streamjoin.json"
    before = changed(file, by="9.9", **fields)

    with pytest.raises(StateError) as refused:
        identify(plan.checkpoint, "formats", plan.pipeline)
    assert [word for word in words if word not in str(refused.value)] == []
    assert file.read_bytes() == before


def test_a_plan_of_another_version(plan: Compiled) -> None:
    """A field more, wherever it stands, may be what the stored rows depend on."""
    now = json.loads(json.dumps(fingerprint(plan.pipeline)))
    assert compare(now, now) == []
    for at in (now, now["inputs"][1], now["tree"]):
        at["weights"] = "signed"
        (why,) = compare(now, fingerprint(plan.pipeline))
        assert "weights" in why and LATER in why
        del at["weights"]
    (why,) = compare({"version": 2}, now)
    assert "plan version 2" in why and "reads 1" in why

    identify(plan.checkpoint, "formats", plan.pipeline)
    changed(plan.checkpoint / "streamjoin.json", plan={**now, "weights": 1})
    with pytest.raises(SpecError, match=LATER):
        identify(plan.checkpoint, "formats", plan.pipeline)


def test_an_offset_of_another_version(plan: Compiled) -> None:
    """Also of the batch that was cut off, whose end is read before anything else is."""
    reader = StreamReader(plan.source)
    start = reader.initialOffset()
    later = formats.OFFSET.writes + 1
    for offset, named in (
        ({**start, "v": later}, f"offset version {later}"),
        ({**start, "weights": True}, "weights"),
    ):
        for ask in (partial(reader.latestOffset, offset), partial(reader.partitions, start, offset)):
            with pytest.raises(StateError, match=f"{named}.*{LATER}"):
                ask()


def test_a_manifest_of_another_version() -> None:
    """Its number, or a field more on any level of it."""
    segment = Segment("s", 1, 1, "d", 1, 0)
    manifest = replace(empty(1, 1), sides=(SideManifest(runs=(Run(0, False, (segment,)),)),))
    assert decode(manifest.encode()) == manifest
    with pytest.raises(StateError, match=f"manifest version 99.* reads 2; {LATER}"):
        decode(orjson.dumps({"v": 99}))
    for place in ('{"v":2,', '"sides":[{', '"runs":[{', '"segments":[{'):
        later = manifest.encode().replace(place.encode(), f'{place}"weights":1,'.encode(), 1)
        assert later != manifest.encode()
        with pytest.raises(StateError, match=f"weights.*{LATER}"):
            decode(later)
