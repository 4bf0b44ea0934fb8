"""What a block waits for, and what that waits for: down to the one that can be acted on."""

from __future__ import annotations

import shlex
from collections import deque
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from tidewheel.core.operator.blocks import NeedState, NeedView
from tidewheel.errors import NotFound
from tidewheel.ports.store import Store
from tidewheel.views.run_facts import Document

BLOCKS_MAX = 1_000  # looked at to find the root of one wait
CREATED = "created"
# Nothing goes on there by itself; the same words would carry it on.
_LEFT = ("stalled", "stopped", "error")

Chain = tuple[NeedView, ...]  # the first is the block's own need, the last is the root


async def chains_of(store: Store, run: int) -> tuple[Chain, ...]:
    """For each need of a run that is not met, the way to what has to happen first."""
    needs = await store.needs_of([run])
    open_ones = [one for one in needs if one.state is not NeedState.MET]
    return tuple([await _with_abort(store, await _chain(store, one)) for one in open_ones])


async def _with_abort(store: Store, chain: Chain) -> Chain:
    """Whether the root was aborted: nobody could carry it on then."""
    *before, root = chain
    if root.status != "stopped":
        return chain
    run = await store.find_run(root.parent)
    return (*before, replace(root, aborted=run.is_aborted))


async def _chain(store: Store, need: NeedView) -> Chain:
    """Of several ways one that ends where somebody is needed; of those the shortest."""
    todo: deque[Chain] = deque([(need,)])
    seen = {need.parent}
    ends: list[Chain] = []
    while todo and len(seen) < BLOCKS_MAX:
        chain = todo.popleft()
        last = chain[-1]
        further: Chain = ()
        if last.state is NeedState.OPEN and last.status == CREATED:
            with suppress(NotFound):  # it was deleted meanwhile
                further = (await store.block(last.parent)).waits
        if not further:
            ends.append(chain)
        for one in further:
            if one.parent not in seen:
                seen.add(one.parent)
                todo.append((*chain, one))
    return min(ends, key=lambda one: (not _is_stuck(one[-1]), len(one)), default=(need,))


def _is_stuck(need: NeedView) -> bool:
    return need.state is NeedState.NEVER or (need.status in _LEFT and not need.going)


def wait_document(name: str, chain: Chain) -> Document:
    """A reason of the run as a whole; its commands concern the root, and so no verb of it."""
    root = chain[-1]
    verb = "needs" if root.state is NeedState.NEVER else "waits for"
    links = [f"it {verb} {chain[0]}"]
    links += [f"{before.parent} {verb} {need}" for before, need in pairwise(chain)]
    text = f"{name} {'; '.join(links).removeprefix('it ')}"
    if root.state is NeedState.NEVER:
        text = f"{name} can never begin: {'; '.join(links)}, which is over"
    return {
        "text": text,
        "passes": not _is_stuck(root),
        "until": None,
        "commands": _commands(name, root),
        "actions": [],
    }


def _commands(name: str, root: NeedView) -> list[str]:
    if not _is_stuck(root):
        return []
    # What has stalled would do so again at once; this leaves time to mend it.
    option = " --stall-timeout 1h" if root.status == "stalled" else ""
    lines = [f"tidewheel run {shlex.quote(root.parent)}{option}"]
    abort = [f"tidewheel blocks abort {shlex.quote(name)}"]
    can_go_on = root.status in _LEFT and not root.aborted
    return [*(lines if can_go_on else ()), *abort]
