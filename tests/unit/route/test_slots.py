"""Slots spread units evenly over Spark's partitions."""

import pytest

from joinlib.errors import SpecError
from joinlib.route.slots import _murmur3, check, fitting, slots


@pytest.mark.parametrize("units", [2**n for n in range(11)])
def test_every_unit_has_a_partition_of_its_own(units: int) -> None:
    """pmod(hash(slot), units) = unit, for every power of two up to 1024; smaller ones get the same number each."""
    homes = [_murmur3(slot) % units for slot in slots(units)]

    assert homes == list(range(units))
    for partitions in (p for p in (1, 2, 4, 8) if p <= units):
        assert [sum(_murmur3(s) % partitions == p for s in slots(units)) for p in range(partitions)] == [
            units // partitions
        ] * partitions


def test_slots_are_spark_s() -> None:
    """Known pairs, from Spark's own `hash`."""
    assert slots(8) == (12, 6, 5, 1, 25, 15, 2, 0)
    assert _murmur3(0) == 933211791
    assert _murmur3(1) == -559580957


def test_partitions_for_tasks() -> None:
    """The next power of two: each task has one, and units never share out unevenly. Never more than there are units."""
    assert [fitting(8, tasks) for tasks in (0, 1, 2, 3, 4, 5, 8, 9)] == [1, 1, 2, 4, 4, 8, 8, 8]
    for units in (1, 8, 64):
        for tasks in range(100):
            check(units, fitting(units, tasks))


@pytest.mark.parametrize("partitions", [-1, 0, 3, 6, 16])
def test_partitions_that_do_not_fit(partitions: int) -> None:
    """Units would not lie evenly, or some partitions would have none."""
    with pytest.raises(SpecError, match="power of two"):
        check(8, partitions)
