"""How a run looks: everything fits 80 columns, and lines come in good time."""

import io
from dataclasses import replace

import pyarrow as pa
import pytest
from rich.console import Console
from rich.spinner import Spinner

from jobs.cli import screen, words
from jobs.cli.screen import Plain, Scene, Shown
from jobs.figures import Took, beginning
from joinlib.lookup.used import Used
from joinlib.model.time import ALWAYS, NEVER
from tests.unit.jobs.test_figures import RECEIPT, Report, after

INPUTS = (
    Shown("flights f", "flights", exact=True, filtered=True),
    Shown("weather w", "weather", exact=False, filtered=False),
)
LAG = {
    "flights": {"rows": 1_234_567, "files": 12, "skipped": 0},
    "weather": {"rows": 9, "files": 3, "skipped": 1},
}
SCENE = Scene("flights-weather", INPUTS, None, {}, Took(), busy=True, began=0.0, stopping=False)


def drawn(scene: Scene, now: float = 3.0) -> list[str]:
    """The picture's lines at 80 columns."""
    console = Console(file=io.StringIO(), width=80)
    console.print(screen.picture(scene, Spinner("dots"), now))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_it_is_starting() -> None:
    """Nothing flows yet: the user sees time pass. Later, Spark may have to start, which takes seconds."""
    assert drawn(SCENE)[0].endswith("starting … 3 s")
    scene = replace(SCENE, figures=beginning(2, 0.0), spark_starts=True)
    assert drawn(scene)[0].endswith("starting Spark, which runs again what failed")


def test_the_picture_shows_everything_at_80_columns() -> None:
    """Rows, rates, lag (estimates marked), late rows, skipped files, state, watermark; nothing is cut."""
    lines = drawn(replace(SCENE, figures=after(1.0, 2.0), lag=LAG, took=Took(1, 0.84)))
    text = "\n".join(lines)
    for part in (
        "flights-weather: batch 1, 0.84 s",
        "1,234,567",
        "~9",
        "skipped",
        "60 rows, 660 B",
        "1970-01-01",
    ):
        assert part in text
    assert "…" not in text
    assert max(map(len, lines)) <= 80


def test_tables_are_shown() -> None:
    """A cache by how far it suffices, a whole table by its size; in the picture, in lines and at the end."""
    receipt = replace(
        RECEIPT,
        tables=(
            Used(98, 2, 1, 3, 50, 4096, 10_000, table="customers"),
            Used(7, rows=9, bytes=512, version=2, table="p"),
        ),
    )
    figures = beginning(2, 0.0).after(Report(0, (receipt,)), 1.0)
    scene = replace(SCENE, figures=figures)
    cache = "customers 98.0 % of 100 lookups kept, 4.1 kB, 3 queries"
    for text in ("\n".join(drawn(scene)), screen.line(scene, figures, 1.0)):
        assert cache in text
        assert "p 9 rows, 512 B, version 2" in text


def test_columns_without_content_are_left_out() -> None:
    """A generator has no files."""
    assert "files" not in "\n".join(drawn(replace(SCENE, figures=beginning(2, 0.0))))


def test_what_is_going_on() -> None:
    """The first batch takes long, and an idle job is no broken one: both are said."""
    assert "first batch … 3 s" in drawn(replace(SCENE, figures=beginning(2, 0.0)))[0]
    assert "waiting for rows … 3 s" in drawn(replace(SCENE, figures=beginning(2, 0.0), busy=False))[0]
    assert drawn(replace(SCENE, figures=after(1.0), busy=False))[0].endswith(", waiting for rows")


def test_stopping_is_said() -> None:
    """The user who pressed Ctrl-C sees that it was heard."""
    assert "stopping" in drawn(replace(SCENE, figures=after(1.0), stopping=True))[0]


class Clock:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_plain_lines_are_few_and_the_last_is_never_lost(clock: Clock) -> None:
    """One line every two seconds at most, each batch's once; what was held back comes at the end."""
    console = Console(file=io.StringIO(), width=200)
    with Plain(console, clock) as view:
        view.update(SCENE)
        view.update(SCENE)
        figures = beginning(2, 0.0)
        view.update(replace(SCENE, figures=figures))
        view.update(replace(SCENE, figures=figures, spark_starts=True))
        for batch in range(5):
            clock.now = batch * 0.9
            figures = figures.after(Report(batch), clock.now)
            view.update(replace(SCENE, figures=figures, lag=LAG, took=Took(batch, 0.5)))
            view.update(replace(SCENE, figures=figures, lag=LAG, took=Took(batch, 0.5)))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert [" ".join(line.split()[:2]) for line in lines] == [
        "starting",
        "started, 0.00",
        "starting Spark,",
        "batch 0,",
        "batch 3,",
        "batch 4,",
    ]
    assert "late flights f 10, weather w 0; skipped 1 files" in lines[-1]


def test_a_sample_is_a_table() -> None:
    """NULL is told from text, a time has no zone, a float no noise; markup in a value is only text."""
    console = Console(file=io.StringIO(), width=80)
    rows = pa.table({"a": [1, None], "b": [0.1 + 0.2, 960.0], "c": ["[red]x", "NULL"]})
    console.print(screen.table("batch 3", rows))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for part in ("batch 3", "NULL", "0.3", "960", "[red]x"):
        assert part in text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (words.number(1234567), "1,234,567"),
        (words.number(2.34), "2.3"),
        (words.number(3.0), "3"),
        (words.size(999), "999 B"),
        (words.size(12_345_678), "12.3 MB"),
        (words.size(5e15), "5000.0 TB"),
        (words.seconds(0.836), "0.84 s"),
        (words.seconds(59.9), "59.9 s"),
        (words.seconds(125), "2 min 5 s"),
        (words.moment(None), "-"),
        (words.moment(NEVER), "-"),
        (words.moment(ALWAYS), "end"),
        (words.moment(0), "1970-01-01 00:00:00"),
        (words.moment(2**60), "1152921504606846976 µs"),
    ],
)
def test_words(said: str, text: str) -> None:
    """Figures as people read them."""
    assert said == text
