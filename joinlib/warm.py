"""Compiles every numba kernel with the types of the job, so that the first batch does not.

Run it by `python -m joinlib.warm`. Worker processes load only what every job runs: loading the kernels of
inequalities takes half a second.
"""

import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joinlib.index.ascending import guide, restored
from joinlib.index.chains import Chains
from joinlib.index.kernels import group
from joinlib.index.sealed import HashProbes, Sealed
from joinlib.lookup.hashed import SortedHashes
from joinlib.lookup.incremental import LookupCache
from joinlib.lookup.ranges import RangeIndex
from joinlib.route.hash import key_hash, spread
from joinlib.route.hotspot import rule
from joinlib.route.split import split


def warm() -> None:
    """Compile the kernels that every job runs: a second with a cold cache, milliseconds with a warm one."""
    keys = [pa.array([1, 2]), pa.array(["a", "b"]), pa.array([b"a", b"b"])]
    hashes = key_hash(keys)
    spread(2, 1)
    block = pa.record_batch([pa.array(hashes)], ["$hash"])
    list(split(block, 1))
    frozen = block.column(0).to_numpy()
    list(split(block, 2, rule(frozen, 2).units(frozen)))
    with tempfile.TemporaryDirectory() as folder:
        chains = Chains(Path(folder) / "index", 0)
        chains.insert(frozen)
        for found in (hashes, frozen):
            for positions, rows in chains.probe(found, 16):
                group(rows, np.array([0, 2], np.int32), positions, rows.copy(), positions.copy())
                chains.mark(rows)
            ordered = np.sort(found)
            ordered.flags.writeable = found.flags.writeable
            made = guide(_frozen(ordered))
            read = restored(_frozen(made.fences), _frozen(made.filter.words), made.last, made.keys)
            for given in (made, read):
                sealed = Sealed(Path(folder), False)
                sealed.hold([(_frozen(ordered), given)])
                list(sealed.probe(HashProbes(ordered), 16))
            list(SortedHashes.of(np.sort(frozen)).probe(found))
            list(RangeIndex.of(np.sort(frozen), found, found).probe(found, found, found))
        cache = LookupCache(
            Path(folder) / "cache", pa.schema([("$hash", pa.uint64()), ("k", pa.int64())]), ["k"], 1
        )
        cache.lookup(keys[:1], lambda asked: pa.record_batch([key_hash(asked), *asked], ["$hash", "k"]), 0)


def _frozen(array: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a read-only view, like an array that is mapped from a file."""
    frozen = array.view()
    frozen.flags.writeable = False
    return frozen


def warm_inequalities() -> None:
    """Compile the kernels of inequalities.

    Few probes are scanned, many are swept; where nothing can be sorted every row is compared.
    """
    from joinlib.index import nested
    from joinlib.index.inequality import Op, build

    many = np.arange(64)
    list(nested.pairs([many], [many], ["<"], 64, 64, 16))
    run = build([many, many[::-1]], [Op.LT, Op.GT])
    for asked in (many[:1], many):
        run.count([asked, asked])
        list(run.probe([asked, asked]))


def warm_windows() -> None:
    """Compile the kernels of window functions."""
    from joinlib.model.over import RUNNING, Frame, OrderKey, Over, OverCall
    from joinlib.over.compute import computed
    from joinlib.over.kept import families

    columns = (("k", pa.int64()), ("t", pa.int64()), ("x", pa.float64()))
    rows = pa.record_batch([pa.array([1, 2], pa.uint64()), *(pa.array([1, 2]).cast(kind) for _, kind in columns)],
                           names=["$hash", "k", "t", "x"])  # fmt: skip
    by, near = (OrderKey("t"),), Frame("range", -1, 0)
    framed = [(name, frame) for name in ("sum", "max", "var_pop") for frame in (RUNNING, near)]
    calls = [
        OverCall(f"$w{at}", name, columns[2:], pa.float64(), name, by, frame)  # type: ignore[arg-type]
        for at, (name, frame) in enumerate(framed)
    ]
    calls.append(OverCall("$w", "session_start", columns[1:2], pa.int64(), "session_start", by))
    over = Over(columns, ("k",), tuple(calls), None, ())
    computed(over, rows)
    families(over)[0].kept(rows.append_column("$weight", pa.array([1, 1])))


def warm_kafka() -> None:
    """Compile the kernels that take messages from a client."""
    from joinlib.source.kafka import kernel
    from joinlib.source.payloads import Payloads

    none, room = np.empty(0, np.int64), np.empty(3, np.int64)
    kernel.opened(none, 0, room, np.empty((0, kernel.FIELDS), np.int64))
    kernel.counted(none, 0, 0, room, none, none)
    kernel.listed(none, none, 0, room, np.empty((0, 4), np.int64))
    kernel.released(none, 0)
    Payloads.copied(none, none).column()


def warm_avro() -> None:
    """Compile the kernels that read Avro."""
    from joinlib.source.avro.columns import AvroRows
    from joinlib.source.avro.program import compiled
    from joinlib.source.avro.schema import AvroField, AvroType

    amount = AvroType("bytes", logical="decimal", precision=9, scale=2)
    writer = AvroType("record", fields=(AvroField("a", amount), AvroField("b", AvroType("string"))))
    want = pa.schema([("a", pa.decimal128(9, 2)), ("b", pa.string())])
    AvroRows(compiled(writer, want, None), want.names).table([b"\2\1\2x"])


def warm_protobuf() -> None:
    """Compile the kernel that reads Protobuf."""
    from google.protobuf.timestamp_pb2 import Timestamp

    from joinlib.source.protobuf.columns import ProtobufRows
    from joinlib.source.protobuf.program import tables

    want = pa.schema([("seconds", pa.int64()), ("nanos", pa.int32())])
    ProtobufRows(tables(Timestamp.DESCRIPTOR, want, Timestamp.DESCRIPTOR), want.names).table([b"\x08\1"])


if __name__ == "__main__":
    warm()
    warm_inequalities()
    warm_windows()
    warm_kafka()
    warm_avro()
    warm_protobuf()
