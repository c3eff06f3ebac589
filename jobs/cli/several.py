"""`streamjoin run` with several outputs: a query for each, at the same time, in one Spark.

Each has its own checkpoint, in the folder of its name below that of the spec, and reads the inputs for itself. If one
fails, the others stop after their batch, and the failure is told with its output.
"""

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from jobs.cli.run import Options, WatchedRun, _end_at_once, _signals, _user_error
from jobs.cli.screen import Plain, Scene
from jobs.cli.summary import summary
from jobs.flow import Flow, default_cores
from joinlib.compiled import compiled
from joinlib.plan.explain import cautions
from joinlib.spec.model import StreamJoin

if TYPE_CHECKING:
    from rich.console import Console

_REFRESH_S = 0.2


class Named(Plain):
    """Lines that begin with the name of an output."""

    name = ""

    def _say(self, text: str) -> None:
        super()._say(f"{self.name}: {text}")


class Flows:
    """Several flows as one: they flow once all do."""

    def __init__(self, watches: Mapping[str, WatchedRun]) -> None:
        self._flows = [watch.flow for watch in watches.values()]

    @property
    def flowing(self) -> threading.Event:
        return next((f.flowing for f in self._flows if not f.flowing.is_set()), self._flows[0].flowing)

    def stop(self) -> None:
        for flow in self._flows:
            flow.stop()

    @property
    def alive(self) -> bool:
        return any(flow.is_alive() for flow in self._flows)

    @property
    def failed(self) -> bool:
        return any(flow.error is not None for flow in self._flows)


def run(parts: Mapping[str, StreamJoin], options: Options, terminal: TextIO, log: Path) -> None:
    """Run the jobs of all outputs until the inputs are done or the user stops them; raise what fails first."""
    from rich.console import Console

    from joinlib.spark.session import start

    console = Console(file=terminal, no_color=options.plain or None, width=None if terminal.isatty() else 160)
    cores = options.cores or default_cores()
    plans = {name: compiled(_here(part), cores) for name, part in parts.items()}
    for name, plan in plans.items():
        for caution in cautions(plan.pipeline):
            console.print(f"{name}: warning: {caution}", style="yellow", highlight=False, soft_wrap=True)
    began = time.monotonic()
    spark = start(cores, options.conf or {}, synced=any(plan.join.tuning.sync for plan in plans.values()))
    try:
        watches = {
            name: WatchedRun(
                Flow(plan, until_done=options.until_done, conf={}, spark=spark.newSession),
                plan.document,
                plan.pipeline,
                began,
            )
            for name, plan in plans.items()
        }
        scenes = _watched(watches, console, Flows(watches))
    finally:
        spark.stop()
    for name, watch in watches.items():
        if watch.flow.error is not None:
            error = _user_error(watch.flow.error, log)
            raise type(error)(f"outputs.{name}: {error}") from watch.flow.error
    for name, scene in scenes.items():
        console.print(f"{name}: {summary(scene, watches[name].document)}", highlight=False, soft_wrap=True)


def _here(part: StreamJoin) -> StreamJoin:
    return part.model_copy(update={"spec": part.spec.model_copy(update={"executors": None})})


def _watched(watches: Mapping[str, WatchedRun], console: "Console", flows: Flows) -> dict[str, Scene]:
    """Show all flows until they are over."""
    views = {name: Named(console) for name in watches}
    for name, view in views.items():
        view.name = name
    try:
        with _signals(flows) as asked:
            for watch in watches.values():
                watch.flow.start()
            while True:
                alive = flows.alive
                if flows.failed:
                    flows.stop()
                scenes = {
                    name: watch.look(
                        views[name], _REFRESH_S / len(watches) if alive else 0, stopping=bool(asked)
                    )
                    for name, watch in watches.items()
                }
                if not alive:
                    break
    except KeyboardInterrupt:
        _end_at_once(console, flows.flowing.is_set())
    for view in views.values():
        view.__exit__()
    return scenes
