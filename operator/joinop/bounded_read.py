"""Read the body of an HTTP response, up to a limit."""

import aiohttp

_PART = 1 << 16


async def read_bounded(answer: aiohttp.ClientResponse, most: int) -> bytes:
    """Return the body.

    Raises:
        ValueError: the body has more than `most` bytes.
    """
    parts, size = [], 0
    async for part in answer.content.iter_chunked(_PART):
        size += len(part)
        if size > most:
            raise ValueError(f"the answer is longer than {most} bytes")
        parts.append(part)
    return b"".join(parts)
