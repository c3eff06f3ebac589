"""Files that map tasks have written and no side has taken."""

from pathlib import Path

from joinlib.model.tuning import Tuning
from joinlib.state.manifest import empty
from joinlib.state.segment import Written
from joinlib.state.unit import hold


def test_the_manifest_does_not_depend_on_the_order_in_which_blocks_arrive(tmp_path: Path) -> None:
    """Spark's shuffle delivers in any order; two attempts of a batch must save the same manifest all the same."""
    offers = [Written(f"in0-00000000-{c}.arrow", 10, c) for c in "cab"]

    def retired(order: list[Written], indexes: str) -> object:
        with hold(tmp_path / "segments", tmp_path / indexes, 0, [], Tuning(), empty(0, 1)) as unit:
            return unit.commit(empty(0, 1), 0, order).encode()

    assert retired(offers, "a") == retired(offers[::-1], "b")
