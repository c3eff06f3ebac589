"""`streamjoin run --page PORT`: the page of a run, for browsers of this machine only."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from jobs.figures import Figures
from jobs.flow import Flow
from jobs.page.answer import answer, subject
from jobs.page.notes import Notes
from jobs.page.rows import LastRows
from jobs.probes import choosers
from jobs.view import Moment, Phase, status
from joinlib.errors import SpecError
from joinlib.model.stage import Pipeline

_HERE = "127.0.0.1"


@contextlib.contextmanager
def serving(port: int, job: str, pipeline: Pipeline, moment: Callable[[], Moment]) -> Iterator[str]:
    """Serve the page inside the block; yield its address.

    Args:
        port: The port; 0 means any.
        job: The name of the job.
        pipeline: Its plan.
        moment: Returns all that is known now.

    Raises:
        SpecError: The port cannot be used.
    """
    from aiohttp import web  # with the server, a third of a second that runs without a page need not wait

    from jobs.hosts import check_host
    from jobs.page.serve import routes
    from jobs.server import HttpServer

    about, notes = subject(job, pipeline), Notes()

    def figures() -> dict[str, object]:
        return answer(about, moment(), notes.latest(), time.monotonic())

    async def told(request: web.Request) -> web.Response:
        check_host(request)
        return web.json_response(status(moment(), pipeline.units, time.monotonic()))

    app = web.Application()
    app.add_routes([*routes(figures, check_host), web.get("/v1/status", told)])
    server = HttpServer(app, port, host=_HERE)
    try:
        server.start()
    except OSError as error:
        raise SpecError(f"--page {port}: {error.strerror}; name another port, or 0 for any") from error
    logging.getLogger("joinlib").addHandler(notes)
    try:
        yield f"http://{_HERE}:{server.port}"
    finally:
        logging.getLogger("joinlib").removeHandler(notes)
        server.stop()


def moment_of(
    flow: Flow,
    pipeline: Pipeline,
    figures: Figures | None,
    stopping: bool,
    last: Mapping[str, LastRows] = MappingProxyType({}),
) -> Moment:
    """Return what is known of a run on this machine, which has no executors."""
    running: Phase = "Running" if flow.flowing.is_set() else "Starting"
    return Moment(
        sources=tuple(p.source for p in pipeline.inputs),
        phase="Stopping" if stopping else running,
        figures=figures,
        took=flow.took,
        lag=flow.lag,
        probes=choosers(pipeline),
        loads=flow.loads,
        route_skew=flow.route_skew,
        hot=flow.hot,
        hashed=pipeline.hashed,
        partitions=flow.job.partitions if flow.job else None,
        last=last,
    )
