"""A database that is as far away as one in another rack: a private PostgreSQL behind a relay that holds every
message back.

On one machine a round trip takes 0.05 ms, which no database at the other end of a network does: without the
relay a cache would have little to save. It costs a little of a core, as a network's driver does.
"""

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager

ONE_WAY_S = 0.0005  # so a round trip takes 1 ms and what asyncio adds


@contextmanager
def far(port: int) -> Iterator[int]:
    """The port at which `port` of this machine is reached with a delay."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    relay = context.Process(target=_serve, args=(port, theirs), daemon=True)
    relay.start()
    try:
        yield int(mine.recv())
    finally:
        relay.kill()
        relay.join()


def _serve(port: int, tell: object) -> None:
    asyncio.run(_relay(port, tell))


async def _relay(port: int, tell: object) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_later(reader, back), _later(there, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=1 << 22)
    tell.send(server.sockets[0].getsockname()[1])  # type: ignore[attr-defined]
    await server.serve_forever()


async def _later(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Bytes in their order, each a while after it came: the way is long, not narrow."""
    loop = asyncio.get_running_loop()
    while data := await source.read(1 << 20):
        loop.call_later(ONE_WAY_S, sink.write, data)
    loop.call_later(ONE_WAY_S, sink.close)
