"""Which killed containers ran out of memory, when their engine has not said so.

An engine hears of it from its shims. Their word can come after that of the end, and it never
comes for a container that runs out of memory within milliseconds of its start: its shim does
not listen yet (2 of 40, containerd 1.6, cgroup 1). The kernel's log, where this user may read
it, names the container in any case.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tidewheel.runners.engine.program import Cli, json_rows

LOOKS_MAX = 4
AGAIN_SECONDS = 0.2
KERNEL_LOG = Path("/dev/kmsg")
RECORD_BYTES_MAX = 8192
RECORDS_MAX = 100_000
_MARK = b"oom_memcg="  # whose limit was reached; what follows it names the victim as well


async def out_of_memory(cli: Cli, killed: Sequence[str]) -> set[str]:
    """Those of these containers, ended by SIGKILL, that are known to have lacked memory."""
    found: set[str] = set()
    unsure = list(killed)
    for look in range(LOOKS_MAX):
        if not unsure:
            break
        if look:
            await asyncio.sleep(AGAIN_SECONDS)
        rows = await _limited(cli, unsure)
        found |= {id_ for id_, lacked_memory in rows if lacked_memory}
        found |= await asyncio.to_thread(_named_by_kernel, [id_ for id_, _ in rows])
        unsure = [id_ for id_, _ in rows if id_ not in found]
    return found


async def _limited(cli: Cli, ids: Sequence[str]) -> list[tuple[str, bool]]:
    """Those of them that this engine has and that may not use all memory; what it says."""
    answer = await cli.call(
        *(cli.docker, "inspect", "--type", "container", "--format"),
        "[{{json .Id}},{{json .State.OOMKilled}},{{json .HostConfig.Memory}}]",
        *ids,
    )
    return [
        (id_, lacked_memory) for id_, lacked_memory, limit in json_rows(answer.out) if limit
    ]


def _named_by_kernel(ids: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for record in _kernel_records():
        _, _, after = record.partition(_MARK)
        path = after.partition(b",")[0]
        found |= {id_ for id_ in ids if id_.encode() in path}
    return found


def _kernel_records() -> Iterator[bytes]:
    """What the kernel has said lately; nothing, if this user may not know."""
    try:
        log = os.open(KERNEL_LOG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        for _ in range(RECORDS_MAX):
            with suppress(
                BrokenPipeError
            ):  # overwritten while it was read: the next one is there
                yield os.read(log, RECORD_BYTES_MAX)
    except OSError:  # BlockingIOError: that was the last one
        return
    finally:
        os.close(log)
