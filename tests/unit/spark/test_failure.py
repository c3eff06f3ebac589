"""What is said of an error that nobody foresaw, of real texts of Spark: pages, of which one line is of use."""

from pathlib import Path

import pytest

from joinlib.errors import NotReady, SqlError, StateError, StreamJoinError, Unforeseen, exit_code
from joinlib.spark.failure import translate

REAL = Path(__file__).parent / "failures"


def said(name: str, batch: int | None = 3) -> StreamJoinError:
    return translate((REAL / f"{name}.txt").read_text(), batch)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("worker", "a task failed in batch 3, unit 1 of stage 0: ValueError: range() arg 3 must not be zero"),
        (
            "input",
            "a task failed in batch 3, input b: TypeError: '<' not supported between instances of 'str' and 'int'",
        ),
        ("driver", "a task failed in batch 3: PermissionError: [Errno 13] Permission denied: '/out/x'"),
    ],
)
def test_an_error_that_nobody_foresaw_is_where_it_was_and_its_last_line(name: str, text: str) -> None:
    """It would come again: whoever starts jobs must not do so by itself."""
    error = said(name)

    assert str(error) == text
    assert isinstance(error, Unforeseen)
    assert exit_code(error) == 2


def test_an_error_that_may_pass_says_so() -> None:
    """By its kind: what the machine or the network did, not what the rows are."""
    text = (REAL / "worker.txt").read_text()
    for kind in ("MemoryError", "ConnectionResetError", "pyarrow.lib.ArrowMemoryError"):
        error = translate(text.replace("ValueError", kind), None)
        assert isinstance(error, NotReady)
        assert str(error).startswith(f"a task failed in unit 1 of stage 0: {kind}: range()")
        assert "run again" in str(error)
        assert exit_code(error) == 1


def test_spark_itself() -> None:
    """A log that is cut off never passes; what the JVM says is its own first line."""
    cut = translate((REAL / "log.txt").read_text().replace("/data/", "/my data/"), 3)
    assert isinstance(cut, StateError)
    assert str(cut).startswith("/my data/ok/ck/spark/offsets/0 is empty or cut off")
    lost = "[X] Return Message: Traceback (most recent call last):\n  File x\npy4j.protocol.Py4JJavaError: An error\n"
    lost += ": org.apache.spark.SparkException: Job aborted due to stage failure: ExecutorLostFailure\n\tat a.b.C\n"
    error = translate(lost, 7)
    assert str(error) == (
        "Spark ended the query in batch 7: SparkException: Job aborted due to stage failure: ExecutorLostFailure"
    )
    assert exit_code(error) == 1


@pytest.mark.parametrize("view", ["", "late", "outputs.rows"])
def test_a_mistake_that_rows_show_keeps_its_place(view: str) -> None:
    """So that the file's line can be told."""
    error = SqlError("this subquery has several rows; write max", 3, 14, view)
    found = translate(f"Traceback\n  File\njoinlib.errors.SqlError: {error}\n\tat org.apache", 1)
    assert isinstance(found, SqlError)
    assert (found.message, found.line, found.column, found.view) == (error.message, 3, 14, view)


def test_an_error_of_ours_is_left_as_it_is() -> None:
    """However deep it is wrapped, and wherever a task says that it was."""
    assert (
        str(said("ours")) == "round(b.x, 0) cannot be computed for some row: the value does not fit the type"
    )
    assert exit_code(said("ours")) == 2
