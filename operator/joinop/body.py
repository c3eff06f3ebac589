"""How much of an answer is read? All of it, unless it is longer than it may be."""

import aiohttp

_PART = 1 << 16


async def whole(answer: aiohttp.ClientResponse, most: int) -> bytes:
    """The body; ValueError if it has more than `most` bytes."""
    parts, size = [], 0
    async for part in answer.content.iter_chunked(_PART):
        size += len(part)
        if size > most:
            raise ValueError(f"the answer is longer than {most} bytes")
        parts.append(part)
    return b"".join(parts)
