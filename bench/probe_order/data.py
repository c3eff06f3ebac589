"""Four inputs that share one key, made with numpy; each as batches, in random order.

tpcds   the counts of TPC-DS at scale 1: customers and three kinds of returns, at random among their addresses
skewed  the same sizes, but returns follow Zipf's law and hot addresses are hot in every table
flip    half of the inputs let few rows pass and others multiply them; half-way they change places
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joinlib.source.zipf import zipf

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])
NAMES = {"cu": "customer", "cr": "catalog_returns", "wr": "web_returns", "sr": "store_returns"}
ROWS = {"cu": 100_000, "cr": 144_000, "wr": 72_000, "sr": 288_000}  # and 50 000 addresses
Batches = list[Mapping[str, pa.RecordBatch]]
Keys = npt.NDArray[np.int64]


def made(kind: str, scale: float, batches: int) -> Batches:
    """The stream. `scale` 1: as many rows as TPC-DS has."""
    if kind == "flip":
        return _flip(scale, batches)
    draw, addresses = np.random.default_rng(7), int(50_000 * scale)
    keys = {n: _keys(draw, n, kind, int(rows * scale), addresses) for n, rows in ROWS.items()}
    return _cut(keys, batches)


def _keys(draw: np.random.Generator, name: str, kind: str, rows: int, addresses: int) -> Keys:
    if kind == "tpcds" or name == "cu":
        return draw.integers(0, addresses, rows)
    return zipf(draw.random(rows), addresses, {"cr": 0.5, "wr": 0.3, "sr": 0.6}[name]).astype(np.int64)


def _flip(scale: float, batches: int) -> Batches:
    """At first one key in fifty has rows in `wr`, and each ten in `sr`; then the other way round."""
    draw, keys = np.random.default_rng(7), int(20_000 * scale)
    halves = []
    for half, (rare, many) in enumerate((("wr", "sr"), ("sr", "wr"))):
        own = np.arange(half * keys, (half + 1) * keys)
        found = {
            "cu": draw.permutation(np.repeat(own, 3)),
            "cr": draw.permutation(own),
            rare: draw.permutation(own[::50]),
            many: draw.permutation(np.repeat(own, 10)),
        }
        halves += _cut(found, batches // 2)
    return halves


def _cut(keys: Mapping[str, Keys], batches: int) -> Batches:
    parts = {n: np.array_split(k, batches) for n, k in keys.items()}
    return [{n: _rows(p[b]) for n, p in parts.items()} for b in range(batches)]


def _rows(keys: Keys) -> pa.RecordBatch:
    return pa.record_batch([pa.array(keys), pa.array(np.arange(len(keys)))], SCHEMA)
