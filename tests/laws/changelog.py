"""What a reader of a changelog has: the sum of all that came out so far; and what each batch may hold.

    insert, update_postimage +1     delete, update_preimage -1

Law: no row is ever there less than no time; what leaves a unit in a batch holds nothing that cancels, and a pair of
images has one key.
"""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from tests.laws.harness import plain

Answer = Counter[tuple[object, ...]]
WEIGHTS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


@dataclass
class Changelog:
    """The files of the folder `out`. `key`: places of the columns of the output's key. `together`: a key is in one unit."""

    out: Path
    key: tuple[int, ...] = ()
    together: bool = False
    answer: Answer = field(default_factory=Counter)

    def batch(self, number: int, units_apart: bool) -> None:
        """Reads one more. `units_apart`: each file is of one unit."""
        files = [read(file, number) for file in sorted((self.out / f"batch={number}").glob("*.parquet"))]
        if self.together:
            pairs([row for rows in files for row in rows], self.key)
        for rows in files:
            if units_apart:
                nothing_cancels(rows)
                pairs(rows, self.key)
            both_images(rows, self.key)
            for kind, row in rows:
                self.answer[row] += WEIGHTS[kind]
        less = {row: count for row, count in self.answer.items() if count < 0}
        assert not less, f"after batch {number} rows are taken back that were not there: {less}"
        self.answer += Counter()  # drops what is no longer there


def read(file: Path, number: int) -> list[tuple[str, tuple[object, ...]]]:
    """What happened to which row."""
    table = pq.read_table(file, partitioning=None)
    *names, kind, batch = table.column_names
    assert (kind, batch) == ("_change_type", "_batch"), table.column_names
    assert set(table[batch].to_pylist()) == {number}
    rows = zip(*(table[name].to_pylist() for name in names), strict=True) if names else iter(())
    return list(zip(table[kind].to_pylist(), (tuple(map(bare, row)) for row in rows), strict=True))


def nothing_cancels(rows: Sequence[tuple[str, tuple[object, ...]]]) -> None:
    signs: dict[tuple[object, ...], set[int]] = {}
    for kind, row in rows:
        signs.setdefault(row, set()).add(WEIGHTS[kind])
    both = [row for row, found in signs.items() if len(found) == 2]
    assert not both, f"these rows come and go in one batch of one unit: {both}"


def both_images(rows: Sequence[tuple[str, tuple[object, ...]]], key: tuple[int, ...]) -> None:
    """Of each key as many rows before an update as rows behind one; none if there is no key."""
    counts: Counter[tuple[object, ...]] = Counter()
    for kind, row in rows:
        if kind.startswith("update"):
            assert key, "an update in a changelog without a key"
            counts[tuple(row[at] for at in key)] += WEIGHTS[kind]
    assert not +counts and not -counts, f"images without the other one: {counts}"


def pairs(rows: Sequence[tuple[str, tuple[object, ...]]], key: tuple[int, ...]) -> None:
    """What a unit says of a key is insert, delete, or a pair of images."""
    if not key:
        return
    found: dict[tuple[object, ...], list[str]] = {}
    for kind, row in rows:
        found.setdefault(tuple(row[at] for at in key), []).append(kind)
    allowed = [["insert"], ["delete"], ["update_preimage", "update_postimage"]]
    wrong = {k: kinds for k, kinds in found.items() if kinds not in allowed}
    assert not wrong, f"neither insert nor delete nor a pair: {wrong}"


def bare(value: object) -> object:
    return plain(value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value)
