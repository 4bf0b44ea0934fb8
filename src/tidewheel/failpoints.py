"""Names the places at which a process can be told to die, to test that nothing is lost then.

``TIDEWHEEL_FAILPOINT=claim_after_commit`` kills the process, as kill -9 does, when it gets
there for the first time; ``claim_after_commit:3`` the third time. In production nothing is
named and a failpoint is a call that does nothing. A test walks over all of these, so a new one
needs a scenario that reaches it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from tidewheel.errors import BadSetting

Failpoint = Callable[[str], None]

# Operations of a store that write. Each can end before its commit, and after it before anybody
# has heard of it. What only the list of workers shows (set_trouble, delete_workers) has none.
OPERATIONS = (
    "submit",
    "arm",
    "amend",
    "cancel",
    "cancel_matching",
    "add_edges",
    "remove_edges",
    "configure_queue",
    "pause_queue",
    "register_worker",
    "stop_worker",
    "claim",
    "claim_by_id",
    "heartbeat",
    "report",
    "adopt",
    "take_back_lapsed_leases",
    "delete_tasks",
)
# The same about runs.
RUN_OPERATIONS = (
    "save_definition",
    "create_run",
    "claim_run",
    "scheduler_lease_renew",
    "write_batch",
    "post_command",
    "delete_run",
    "delete_definitions",
)
# Within the transaction of a batch: after the events that it deals with, its rows of the pool,
# its submissions, and its timers.
WITHIN_BATCH = ("output_recorded", "children_spawned", "child_enqueued", "retry_scheduled")
# Around it: where what it would write is only in memory, and where nobody was told of it yet.
AROUND_BATCH = ("run_opened", "batch_before_write", "batch_written", "batch_told")
# Of a notifier: what it will send is in the store; somebody was told, and the store was not.
NOTIFYING = ("diary_written", "notification_sent")
# Of `tidewheel run`: the end of the run is printed, and nobody has the exit status.
RUN_TOLD = ("result_told",)
FAILPOINTS = (
    *(
        f"{one}_{when}_commit"
        for one in (*OPERATIONS, *RUN_OPERATIONS)
        for when in ("before", "after")
    ),
    *WITHIN_BATCH,
    *AROUND_BATCH,
    "job_before_start",  # its directory is there, the job is not
    "job_spawned_before_record",  # the job runs, and its worker has not told anybody
    "job_exited_before_report",
    "retention_exported",  # written down, and still in the store
    *NOTIFYING,
    *RUN_TOLD,
)


def go_on(_name: str) -> None:
    """Does nothing: this is the failpoint of production."""


class DeathAt:
    """Kills the process when it gets to one place for the n-th time."""

    def __init__(self, name: str, nth: int = 1) -> None:
        self._name = name
        self._left = nth

    def __call__(self, name: str) -> None:
        if name != self._name:
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def failpoint_named(text: str | None) -> Failpoint:
    """Returns the failpoint that a setting describes, ``NAME`` or ``NAME:NTH``; without a
    setting it is ``go_on``, which does nothing."""
    if not text:
        return go_on
    name, _, nth = text.partition(":")
    if name not in FAILPOINTS or not (nth or "1").isdecimal():
        accepted = f"NAME or NAME:NTH, where NAME is one of {', '.join(FAILPOINTS)}"
        raise BadSetting("TIDEWHEEL_FAILPOINT", text, accepted)
    return DeathAt(name, int(nth or "1"))
