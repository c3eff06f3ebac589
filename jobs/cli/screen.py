"""How a run looks: a table that is redrawn on a terminal, or a plain line now and then.

Scene (what is known now) ──► Live | Plain ──► terminal
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live as RichLive
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from jobs.cli import words
from jobs.figures import Figures, Took
from jobs.probes import Chooser, spoken
from jobs.terminal import visible
from joinlib.lookup.used import Used

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN_S = 2.0  # the shortest time between two lines
_SPARK_STARTS = "starting Spark, which runs again what failed"


@dataclass(frozen=True)
class Shown:
    """An input as its row shows it."""

    label: str
    source: str
    exact: bool  # whether its lag is counted, not estimated
    filtered: bool  # whether rows in are those that pass a filter


@dataclass(frozen=True)
class Scene:
    """Everything that can be shown at a moment."""

    name: str
    inputs: tuple[Shown, ...]
    figures: Figures | None  # None while the run is starting
    lag: Mapping[str, Mapping[str, int]]
    took: Took
    busy: bool  # whether a batch is running
    began: float
    stopping: bool
    probes: tuple[Chooser, ...] = ()
    rows_out: Mapping[str, int] = field(default_factory=dict)  # by output
    spark_starts: bool = False  # since a batch failed

    @property
    def committed(self) -> bool:
        """Whether lag and time are those of the figures' latest batch."""
        return self.figures is not None and self.figures.batch == self.took.batch

    def behind(self, shown: Shown, what: str = "rows") -> int | None:
        """Return a figure of the lag of an input's source, or None if it is not known."""
        return self.lag.get(shown.source, {}).get(what)


class View(Protocol):
    """Shows scenes, and samples of rows between them. Used as a context manager."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def update(self, scene: Scene) -> None: ...
    def sample(self, title: str, rows: "pa.Table", of: int) -> None: ...


class Plain:
    """Writes a line per batch, but no more than one every few seconds."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._said = float("-inf")
        self._told: set[str] = set()
        self._pending: Scene | None = None  # the latest scene whose batch has no line yet
        self._batches = 0  # batches up to the last line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._pending is not None:
            self._line(self._pending)

    def update(self, scene: Scene) -> None:
        if scene.figures is None:
            self._once("starting")
            return
        self._once(f"started, {words.seconds(scene.figures.began - scene.began)}")
        if scene.spark_starts:
            self._once(_SPARK_STARTS)
        if scene.stopping:
            self._once("stopping")
        if scene.figures.batches > self._batches:
            self._pending = scene
            if scene.committed and self._clock() - self._said >= _PLAIN_S:
                self._line(scene)

    def sample(self, title: str, rows: "pa.Table", of: int) -> None:
        self._console.print(table(f"{title}: {words.rows(of)}", rows))

    def _once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._say(text)

    def _line(self, scene: Scene) -> None:
        self._pending, self._said = None, self._clock()
        assert scene.figures is not None
        self._batches = scene.figures.batches
        self._say(line(scene, scene.figures, self._clock()))

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class Live:
    """Shows a table, redrawn in place; it disappears when the run is over (the summary takes its place)."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._spinner = Spinner("dots")
        self._live = RichLive(
            console=console,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.__exit__(None, None, None)

    def update(self, scene: Scene) -> None:
        self._live.update(picture(scene, self._spinner, self._clock()))

    def sample(self, title: str, rows: "pa.Table", of: int) -> None:
        self._console.print(table(f"{title}: {words.rows(of)}", rows))


def line(scene: Scene, figures: Figures, now: float) -> str:
    """Return one line with everything."""
    rates_in, rate_out = figures.rates(now)
    parts = [
        f"batch {figures.batch}" + (f", {words.seconds(scene.took.seconds)}" if scene.committed else ""),
        f"in {words.number(sum(figures.rows_in))} ({words.number(sum(rates_in))}/s)",
        f"out {words.number(figures.rows_out)} ({words.number(rate_out)}/s)",
        *(["lag " + ", ".join(f"{i.label} {_lag(scene, i)}" for i in scene.inputs)] if scene.lag else []),
        f"state {words.rows(figures.state_rows)} {words.size(figures.state_bytes)}",
        f"index {words.size(figures.index_bytes)}",
        f"watermark {words.moment(figures.watermark)}",
    ]
    if sum(figures.late):
        parts.append(
            "late " + ", ".join(f"{i.label} {words.number(n)}" for i, n in zip(scene.inputs, figures.late))
        )
    parts += [f"table {table_line(name, used)}" for name, used in figures.tables.items()]
    if orders := spoken(scene.probes, figures.probes):
        parts.append(f"probes {orders}")
    if skipped := sum(scene.behind(i, "skipped") or 0 for i in scene.inputs):
        parts.append(f"skipped {skipped} files")
    if sum(figures.deleted):
        parts.append(f"deleted {words.number(sum(figures.deleted))}")
    if sum(figures.unknown):
        parts.append(f"unknown deletions {words.number(sum(figures.unknown))}")
    if sum(figures.bad):
        parts.append(f"bad {words.counted(sum(figures.bad), 'messages')}")
    if dead := sum(figures.dead.values()):
        parts.append(f"dead letters {words.number(dead)}")
    return "; ".join(parts)


def picture(scene: Scene, spinner: Spinner, now: float) -> RenderableType:
    """Return the table of the moment."""
    if scene.figures is None:
        spinner.update(text=f"{'stopping' if scene.stopping else 'starting'} … {now - scene.began:.0f} s")
        return spinner
    figures = scene.figures
    spinner.update(text=f"{scene.name}: {_doing(scene, figures, now)}")
    used = figures.tables.items()
    tables = [Text.assemble(("  table", "dim"), " ", table_line(name, of_it)) for name, of_it in used]
    orders = spoken(scene.probes, figures.probes)
    probes = [Text.assemble(("  probes", "dim"), " ", orders)] if orders else []
    return Group(spinner, _flows(scene, figures, now), _state(figures), *tables, *probes)


def _doing(scene: Scene, figures: Figures, now: float) -> str:
    if scene.stopping:
        return "stopping"
    if scene.spark_starts:
        return _SPARK_STARTS
    if figures.batch is None:
        return f"{'first batch' if scene.busy else 'waiting for rows'} … {now - figures.began:.0f} s"
    waiting = "" if scene.busy else ", waiting for rows"
    return f"batch {figures.batch}, {words.seconds(scene.took.seconds)}{waiting}"


def _flows(scene: Scene, figures: Figures, now: float) -> Table:
    rates_in, rate_out = figures.rates(now)
    counts = [w for w in ("files", "skipped") if any(scene.behind(i, w) for i in scene.inputs)]
    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=True)
    grid.add_column("  input", no_wrap=True)
    more = {"deleted": figures.deleted, "unknown": figures.unknown, "bad": figures.bad}
    more = {title: each for title, each in more.items() if sum(each)}
    for title in ("rows in", "rows/s", "lag", "late", *more, *counts):
        grid.add_column(title, justify="right", no_wrap=True)
    for at, shown in enumerate(scene.inputs):
        grid.add_row(
            f"  {shown.label}",
            words.number(figures.rows_in[at]),
            words.number(rates_in[at]),
            _lag(scene, shown),
            words.number(figures.late[at]),
            *(words.number(each[at]) for each in more.values()),
            *(_count(scene, shown, c) for c in counts),
        )
    grid.add_row("  [bold]rows out[/]", f"[bold]{words.number(figures.rows_out)}[/]", words.number(rate_out))
    for name, count in scene.rows_out.items() if len(scene.rows_out) > 1 else ():
        grid.add_row(f"    {name}", words.number(count))
    return grid


def _lag(scene: Scene, shown: Shown) -> str:
    rows = scene.behind(shown, "rows")
    return "-" if rows is None else f"{'' if shown.exact or not rows else '~'}{words.number(rows)}"


def _count(scene: Scene, shown: Shown, what: str) -> str:
    count = scene.behind(shown, what)
    return "" if count is None else words.number(count)


def _state(figures: Figures) -> Text:
    return Text.from_markup(
        f"  [dim]state[/] {words.rows(figures.state_rows)}, {words.size(figures.state_bytes)} "
        f" [dim]index[/] {words.size(figures.index_bytes)}  [dim]watermark[/]"
        f" {words.moment(figures.watermark)}"
    )


def table_line(name: str, used: Used) -> str:
    """Return what is kept of a table: `c 98.3 % of 1,200 lookups kept, 12.3 MB, 4 queries`."""
    lookups = used.hits + used.misses
    if used.version is not None:
        how = f"version {used.version}" if used.version else "as it was"
        return f"{name} {words.rows(used.rows)}, {words.size(used.bytes)}, {how}"
    share = f"{100 * used.hits / lookups:.1f} % of " if lookups else ""
    return (
        f"{name} {share}{words.number(lookups)} lookups kept, {words.size(used.bytes)},"
        f" {words.number(used.queries)} queries"
    )


def table(title: str, rows: "pa.Table") -> Table:
    """Return a sample of result rows as a table."""
    grid = Table(title=title, title_justify="left", title_style="dim", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in rows.schema:
        grid.add_column(
            Text(visible(column.name)), justify="right" if _is_number(str(column.type)) else "left"
        )
    for row in zip(*(column.to_pylist() for column in rows.columns)):
        grid.add_row(*(Text("NULL", style="dim") if v is None else Text(words.value(v)) for v in row))
    return grid


def _is_number(type: str) -> bool:
    return type.startswith(("int", "uint", "float", "double", "decimal"))
