"""Everything that a job started, found and ended, however it tried to get away.

Theory of operation
-------------------
A job is the leader of a session. What it starts is found by four traces, each of which
survives something that the others do not: being below the leader (lost when a parent ends),
its process group (lost by setpgid), its session (lost by setsid, so by every daemon), and
the attempt's directory in the environment (lost only by a program that clears it). A process
that loses all four at once escapes here; ``tie_jobs`` runs jobs where even that is in vain.

Signals go to a (pid, start time) through a pidfd and so never to a stranger.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from tidewheel.runners.process.processes import ProcessId, all_ended, is_alive, send_signal
from tidewheel.runners.process.table import ProcessRow, ProcessTable, read_table

MARKER = "TIDEWHEEL_JOB_DIR"
KILL_ROUNDS_MAX = 4  # a tree that forks while it is killed needs more than one
KILL_ROUND_SECONDS_MAX = 0.5  # four of them: gone within 2 s after the grace


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTree:
    """The traces of one job's processes."""

    leader: ProcessId
    directory: str  # the value of MARKER in the environment of this job alone
    spare_leader: bool = False  # it keeps the job in a namespace and must outlive a SIGTERM

    def members(self, table: ProcessTable) -> list[ProcessId]:
        """Every process of the job that has not ended."""
        pids = table.with_descendants(self._roots(table))
        rows = (table.rows[pid] for pid in pids)
        return [
            ProcessId(pid=row.pid, started=row.started)
            for row in rows
            if not row.ended and row.pid != os.getpid()
        ]

    def _roots(self, table: ProcessTable) -> list[int]:
        first = table.rows.get(self.leader.pid)
        # Without its leader the numbers of group and session may be another's by now.
        leads = first is not None and first.started == self.leader.started
        return [
            row.pid
            for row in table.rows.values()
            # Nothing of the job is older than its leader: most processes are told apart here,
            # before their environment is read.
            if row.started >= self.leader.started
            and ((leads and self._is_led(row)) or self._is_marked(row, table))
        ]

    def _is_led(self, row: ProcessRow) -> bool:
        return self.leader.pid in (row.pid, row.group, row.session)

    def _is_marked(self, row: ProcessRow, table: ProcessTable) -> bool:
        return table.environment(row.pid).get(MARKER.encode()) == os.fsencode(self.directory)


async def terminate(tree: ProcessTree) -> list[ProcessId]:
    """Ask every process of the tree to end; the answer is whom it asked."""
    members = await _read_members(tree)
    asked = [one for one in members if not (tree.spare_leader and one == tree.leader)]
    if not tree.spare_leader:
        _signal_group(tree, signal.SIGTERM)
        members_outside = [one for one in asked if not _is_in_group(one, tree.leader)]
    else:
        members_outside = asked
    _send(members_outside, signal.SIGTERM)
    # A stopped process sees the SIGTERM only when it goes on.
    _send(asked, signal.SIGCONT)
    return members


async def kill(tree: ProcessTree) -> bool:
    """End every process of the tree now; False if some would not even end by SIGKILL."""
    for _ in range(KILL_ROUNDS_MAX):
        members = await _read_members(tree)
        if not members:
            return True
        _signal_group(tree, signal.SIGKILL)
        _send(members, signal.SIGKILL)
        await all_ended(members, KILL_ROUND_SECONDS_MAX)
    return not await _read_members(tree)


async def _read_members(tree: ProcessTree) -> list[ProcessId]:
    """Reading /proc takes milliseconds on a full machine: not in the loop."""
    return await asyncio.to_thread(lambda: tree.members(read_table()))


def _signal_group(tree: ProcessTree, number: signal.Signals) -> None:
    """One call for the whole group: a process that forks meanwhile cannot slip through."""
    if is_alive(tree.leader.pid, tree.leader.started):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(tree.leader.pid, number)


def _is_in_group(process: ProcessId, leader: ProcessId) -> bool:
    with suppress(ProcessLookupError):
        return os.getpgid(process.pid) == leader.pid
    return False


def _send(processes: Iterable[ProcessId], number: signal.Signals) -> None:
    for process in processes:
        send_signal(process, number)
