"""Logs over HTTP: the end of one, or a part of it, as plain text whatever it holds (S11)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec

from tidewheel.errors import NotFound
from tidewheel.server.call import Answer
from tidewheel.server.wire.forms import In

LOG_BYTES_MAX = 1_000_000


class PartQuery(In):
    """Which part; without an offset, the end."""

    offset: Annotated[int, msgspec.Meta(ge=0, le=2**62)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=LOG_BYTES_MAX)] = LOG_BYTES_MAX


async def log_answer(root: Path, path: Path, query: PartQuery, what: str) -> Answer:
    """Some bytes of a file below the root; NotFound if there is no such plain file."""
    from tidewheel.views.log import part_of_file

    part = await asyncio.to_thread(part_of_file, root, path, query.offset, query.limit)
    if part is None:
        raise NotFound("log", what)
    text, offset, size = part
    headers = {"x-log-offset": str(offset), "x-log-size": str(size)}
    return Answer(body=text, media_type="text/plain; charset=utf-8", headers=headers)
