"""What the footers of Parquet files say of their rows: how many there are, and how many values whole numbers can have.

Cost: the footers of some files; the others count by their sizes.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from joinlib.source.listing import listing, locate

_MOST = 32  # files whose footers are read


@dataclass(frozen=True)
class FileFigures:
    """Rows, and how many whole numbers lie between the least and the greatest value of a column."""

    rows: float
    spans: Mapping[str, float]


def footers(root: Path, columns: Collection[str]) -> FileFigures | None:
    """Return what is said of these columns; None if there are no files that can be read.

    Raises:
        InputError: `root` does not exist or cannot be listed.
    """
    files = listing(root, "name", lambda _: False)
    some = files[:: max(1, -(-len(files) // _MOST))]
    read = [(file, metadata) for file in some if (metadata := _read(locate(root, file.path))) is not None]
    if not read:
        return None
    every, seen = sum(file.size for file in files), sum(file.size for file, _ in read)
    rows = sum(metadata.num_rows for _, metadata in read) * every / seen
    whole = len(read) == len(files)
    return FileFigures(rows, _spans([metadata for _, metadata in read], columns) if whole else {})


def _read(file: Path) -> pq.FileMetaData | None:
    try:
        return pq.read_metadata(file)
    except (OSError, pa.ArrowInvalid):
        return None


def _spans(files: Sequence[pq.FileMetaData], columns: Collection[str]) -> dict[str, float]:
    """Return the spans of the columns whose footers say their ends."""
    ends: dict[str, list[tuple[int, int]]] = {}
    unknown = set[str]()
    for column in (column for metadata in files for column in _chunks(metadata)):
        name, said = column.path_in_schema, column.statistics
        if name not in columns:
            continue
        if said is None or not said.has_min_max or not isinstance(said.min, int):
            unknown.add(name)
        else:
            ends.setdefault(name, []).append((said.min, said.max))
    known = {name: pairs for name, pairs in ends.items() if name not in unknown}
    return {n: float(max(high for _, high in p) - min(low for low, _ in p) + 1) for n, p in known.items()}


def _chunks(metadata: pq.FileMetaData) -> Iterator[pq.ColumnChunkMetaData]:
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return (group.column(at) for group in groups for at in range(metadata.num_columns))
