"""Holds the lease of a notebook in the store: of several processes one does a thing at a time.

A holder that is dead for sure is followed at once, any other one when its lease has run out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import msgspec

from tidewheel.core.queue.lease import Notebook
from tidewheel.core.queue.requests import HostProcess
from tidewheel.errors import Unavailable
from tidewheel.ports.store import Store

IsAlive = Callable[[HostProcess], bool]  # False only where a death can be proven

LEASE_SECONDS = 60.0
RENEWALS_PER_LEASE = 3


class Owner(msgspec.Struct, frozen=True):
    """Names the holder of a notebook: a process, whose death can be proven, and a nonce.

    The nonce tells holders in one process apart.
    """

    process: HostProcess
    nonce: str


def read_owner(text: str | None) -> Owner | None:
    """Returns the owner that a row names; None if there is none that this version knows."""
    try:
        return msgspec.json.decode(text or "null", type=Owner | None)
    except msgspec.DecodeError:
        return None


async def claim_notebook(
    store: Store, name: str, owner: Owner, lease_seconds: float, is_alive: IsAlive
) -> Notebook | None:
    """Takes a notebook and returns it; None while another holder has it that may be alive."""
    text = msgspec.json.encode(owner).decode()
    held = await store.claim_notebook(name, text, lease_seconds, dead_epoch=None)
    if held is not None:
        return held
    holder = await store.notebook(name)
    other = None if holder is None else read_owner(holder.owner)
    # This one never heard of a claim that it made itself: its answer was lost.
    if holder is None or other is None or (other != owner and is_alive(other.process)):
        return None
    return await store.claim_notebook(name, text, lease_seconds, dead_epoch=holder.epoch)


@asynccontextmanager
async def held_notebook(
    store: Store, name: str, owner: Owner, is_alive: IsAlive
) -> AsyncIterator[bool]:
    """Holds a notebook for the time of a `with` block; yields False if another holds it."""
    held = await claim_notebook(store, name, owner, LEASE_SECONDS, is_alive)
    if held is None:
        yield False
        return

    async def renew() -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / RENEWALS_PER_LEASE)
            with suppress(Unavailable):
                await store.write_notebook(name, held.epoch, held.body, LEASE_SECONDS)

    renewing = asyncio.create_task(renew())
    try:
        yield True
    finally:
        renewing.cancel()
        with suppress(Unavailable):
            await store.leave_notebook(name, held.epoch)
