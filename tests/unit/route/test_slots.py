"""Slots spread units evenly over Spark's partitions."""

import pytest

from joinlib.route.slots import _murmur3, slots


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
