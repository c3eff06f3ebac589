"""Over how many tasks is a batch spread? As is wanted; but as before, where it runs again."""

from pathlib import Path

from joinlib.checkpoint import batches
from joinlib.spark.operator import anywhere
from joinlib.spark.spread import Spread, Spreading
from tests.unit.checkpoint.test_batches import log


def test_the_number_is_noted_before_the_batch_runs(tmp_path: Path) -> None:
    """And may be another for each."""
    spreading = Spreading(tmp_path, Spread(2))
    for batch, partitions in enumerate((2, 8, 8, 1)):
        spreading.wanted = Spread(partitions)
        assert spreading.of(batch) == Spread(partitions)
        assert batches.partitions(tmp_path / "spark") == partitions


def test_a_batch_that_was_cut_off_has_what_it_had(tmp_path: Path) -> None:
    """Only that one."""
    log(tmp_path / "spark", [3, 4], [3])
    (tmp_path / "partitions").write_text("2\n")
    spreading = Spreading(tmp_path, Spread(8))
    assert (spreading.of(4), spreading.of(5)) == (Spread(2), Spread(8))


def test_what_is_done_is_no_matter(tmp_path: Path) -> None:
    """Nor is a batch that was cut off before it was spread at all."""
    log(tmp_path / "spark", [3, 4], [3, 4])
    (tmp_path / "partitions").write_text("2\n")
    assert Spreading(tmp_path, Spread(8)).of(5) == Spread(8)
    log(tmp_path / "new" / "spark", [0], [])
    assert Spreading(tmp_path / "new", Spread(8)).of(0) == Spread(8)


def test_places_of_another_number_of_partitions_are_none() -> None:
    """Nobody knows which they would be."""
    assert Spread(4, ("0", "1")).place is anywhere
