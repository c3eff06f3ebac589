"""Result rows come in frames of bounded size, in their order, however wide they are and however many come at once."""

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from joinlib.engine.frames import frames, project
from joinlib.expr import ref
from joinlib.join.rows import Picked, Tuples
from joinlib.model.stage import OutputColumn

MOST = 1 << 20


def test_wide_tuples_are_evaluated_a_few_at_once() -> None:
    """A hundred megabytes of results, of which no part is much larger than what was asked for."""
    texts = pa.array(["x" * 1000] * 10)
    rows = pa.record_batch([pa.array(range(10)), texts], ["a.n", "a.s"])
    many = Tuples(Picked(rows, np.arange(100_000) % 10))
    select = tuple(OutputColumn(n, ref(f"a.{n}", rows.schema.field(f"a.{n}").type)) for n in "ns")
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    made = list(project(iter([many]), select, schema, 8 * MOST))

    assert max(part.nbytes for part in made) <= 9 * MOST
    assert list(itertools.chain(*(p.column("n").to_pylist() for p in made))) == [
        n % 10 for n in range(100_000)
    ]
    framed = list(frames(iter(made), 100_000, 8 * MOST))
    assert len(made) <= len(framed) + 1
    assert max(part.nbytes for part in framed) <= 9 * MOST


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 5), st.integers(1, 64))
@example([1, 3], 4, 25)
def test_frames(sizes: list[int], rows: int, most_bytes: int) -> None:
    """The same rows; never more than asked for, and larger only where one part is."""
    ends = np.cumsum([0, *sizes]).tolist()
    batches = [
        pa.record_batch([pa.array(range(a, b), pa.int64())], ["v"]) for a, b in itertools.pairwise(ends)
    ]
    made = list(frames(iter(batches), rows, most_bytes))

    assert [v for part in made for v in part.column("v").to_pylist()] == list(range(sum(sizes)))
    assert all(part.num_rows <= rows for part in made)
    widest = 8 * min(rows, max(sizes, default=0))  # one part
    assert all(part.nbytes <= max(most_bytes, widest) for part in made)
