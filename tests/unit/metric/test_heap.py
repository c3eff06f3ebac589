"""What a JVM says of its heap."""

from joinlib.metric.heap import Heap, heap, heaps


def test_a_heap() -> None:
    """Bytes, and milliseconds as seconds."""
    assert heap("300 800 1500") == Heap(300, 800, 1.5)


def test_heaps_of_executors() -> None:
    """A line for each; none before one has told."""
    assert heaps("1 300 800 1500\n12 5 9 0") == {"1": Heap(300, 800, 1.5), "12": Heap(5, 9, 0.0)}
    assert heaps("") == {}
