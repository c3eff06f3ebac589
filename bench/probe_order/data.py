"""Four inputs that share one key; each as batches, in random order.

tpcds    the tables of TPC-DS themselves, customers and three kinds of returns by address, as the papers run them
uniform  as many rows, made with numpy: returns at random among the addresses
skewed   the same sizes, but returns follow Zipf's law and hot addresses are hot in every table
flip     half of the inputs let few rows pass and others multiply them; half-way they change places
drift    the same, bit by bit: the share of keys that `wr` has falls while that of `sr` rises
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from joinlib.source.zipf import zipf

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])
NAMES = {"cu": "customer", "cr": "catalog_returns", "wr": "web_returns", "sr": "store_returns"}
ROWS = {"cu": 100_000, "cr": 144_000, "wr": 72_000, "sr": 288_000}  # and 50 000 addresses
RARE, MANY = 50, 10  # one key in so many has rows; rows of a key
PHASES = 16  # of a drift
KINDS = ("tpcds", "uniform", "skewed", "flip", "drift")
Batches = list[Mapping[str, pa.RecordBatch]]
Keys = npt.NDArray[np.int64]


def made(kind: str, scale: float, batches: int) -> Batches:
    """The stream. `scale` 1: as many rows as TPC-DS has."""
    if kind == "tpcds":
        return _cut({name: _keys(scale, table) for name, table in NAMES.items()}, batches)
    if kind in ("flip", "drift"):
        parts = _phases(
            scale, [0.0, 1.0] if kind == "flip" else list(np.linspace(0, 1, min(PHASES, batches)))
        )
        return [batch for part in parts for batch in _cut(part, batches // len(parts))]
    draw, addresses = np.random.default_rng(7), max(int(50_000 * scale), 1)
    return _cut({n: _drawn(draw, n, kind, int(rows * scale), addresses) for n, rows in ROWS.items()}, batches)


def _keys(scale: float, table: str) -> Keys:
    """A table's keys, in random order, as bench/nway has them in its files."""
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "nway")]
    import tpcds

    folder = tpcds.ensure(tpcds.Shape(scale)) / table
    key = tpcds.INPUTS[table][0]
    return pa.concat_arrays(pq.read_table(folder, columns=[key])[key].chunks).to_numpy()


def _drawn(draw: np.random.Generator, name: str, kind: str, rows: int, addresses: int) -> Keys:
    if kind == "uniform" or name == "cu":
        return draw.integers(0, addresses, rows)
    return zipf(draw.random(rows), addresses, {"cr": 0.5, "wr": 0.3, "sr": 0.6}[name]).astype(np.int64)


def _phases(scale: float, shares: list[float]) -> list[dict[str, Keys]]:
    """By and by: at share 0 one key in fifty has rows in `wr`, and each ten in `sr`; at share 1 the other way round."""
    draw, keys, found = np.random.default_rng(7), max(int(40_000 * scale / len(shares)), RARE), []
    for number, share in enumerate(shares):
        own = np.arange(number * keys, (number + 1) * keys)
        counts = {"wr": _between(1 / RARE, MANY, share), "sr": _between(1 / RARE, MANY, 1 - share)}
        found.append(
            {"cu": draw.permutation(np.repeat(own, 3)), "cr": draw.permutation(own)}
            | {name: draw.permutation(_repeated(own, count)) for name, count in counts.items()}
        )
    return found


def _between(least: float, most: float, share: float) -> float:
    """From one to the other by equal factors."""
    return float(least ** (1 - share) * most**share)


def _repeated(own: Keys, count: float) -> Keys:
    """So many rows of a key on average; less than one: some keys only."""
    return own[:: round(1 / count)] if count < 1 else np.repeat(own, round(count))


def _cut(keys: Mapping[str, Keys], batches: int) -> Batches:
    parts = {n: np.array_split(k, batches) for n, k in keys.items()}
    return [{n: _rows(p[b]) for n, p in parts.items()} for b in range(batches)]


def _rows(keys: Keys) -> pa.RecordBatch:
    return pa.record_batch([pa.array(keys), pa.array(np.arange(len(keys)))], SCHEMA)
