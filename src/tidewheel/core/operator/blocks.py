"""Describes scheduling block instances, processing blocks and buffer objects (seed 004).

A processing block is a run that is called by the block's id. What a block waits for are other
blocks; whether a need is met follows from the status of the run that stands for the parent. The
statements by which schedulers look for runs say the same in SQL.

A block, an instance and a stage have statuses in the words of SIP, which are never stored: they
follow from the run, from what its tasks do, and from the blocks of an instance.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum

from tidewheel.core.graph.findings import InvalidDefinition
from tidewheel.core.operator.definition import NewRun, StoredDefinition
from tidewheel.core.operator.views import ABORTED_BY, RunView, was_aborted
from tidewheel.core.queue.access import covers, run_name
from tidewheel.core.queue.task import Instant
from tidewheel.errors import BadSetting
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

PRIORITY_MIN, PRIORITY_MAX = -1, 100
BLOCKS_MAX = 1_000  # of one instance
NEEDS_MAX = 1_000  # of one block
OBJECTS_MAX = 1_000  # that are posted at once
FACTS_BYTES_MAX = 16_000  # about one object, as JSON


class BlockStatus(StrEnum):
    """Says how a block is, or an instance, in the words of SIP.

    An instance is never waiting: its blocks are.
    """

    CREATED = "created"
    WAITING_FOR_BLOCKS = "waiting_for_blocks"  # before it begins
    WAITING_FOR_OBJECT = "waiting_for_object"  # and does nothing else
    WAITING_FOR_RESOURCES = "waiting_for_resources"  # and does nothing else
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"  # nothing goes on by itself, since a stage failed
    ABORTED = "aborted"  # by somebody, for good
    STOPPED = "stopped"  # by somebody, who may carry it on


class BlockWork(NamedTuple):
    """Says what the tasks of a running block do; each is whether there is one that does it."""

    leased: bool = False  # a worker has it
    queued: bool = False  # nobody has taken it yet
    timed: bool = False  # it waits for a time, as before a retry
    objects: bool = False  # it waits for a buffer object


NO_WORK = BlockWork()
_OF_RUN = {
    "created": BlockStatus.CREATED,
    "running": BlockStatus.RUNNING,
    "paused": BlockStatus.RUNNING,
    "waiting for release": BlockStatus.RUNNING,
    "stopping": BlockStatus.RUNNING,
    "stalled": BlockStatus.FAILED,
    "error": BlockStatus.FAILED,
    "completed": BlockStatus.COMPLETED,
    "stopped": BlockStatus.STOPPED,
}
# What is meant by each word that says what a block waits for, where it does not matter.
_WAITING = {
    BlockStatus.WAITING_FOR_BLOCKS: BlockStatus.CREATED,
    BlockStatus.WAITING_FOR_OBJECT: BlockStatus.RUNNING,
    BlockStatus.WAITING_FOR_RESOURCES: BlockStatus.RUNNING,
}


def plain_status(run_status: str, reason: str) -> BlockStatus:
    """Returns the status of the block that a run is, without what it waits for.

    A run that ended by itself after it had stalled has failed.
    """
    if run_status == "stopped" and was_aborted(reason):
        is_by_somebody = reason.startswith(ABORTED_BY)
        return BlockStatus.ABORTED if is_by_somebody else BlockStatus.FAILED
    return _OF_RUN[run_status]


def block_status(
    run_status: str, reason: str, *, waits: bool = False, work: BlockWork = NO_WORK
) -> BlockStatus:
    """Returns the status of a block; `waits`: it has not begun, since others come first."""
    found = plain_status(run_status, reason)
    if found is BlockStatus.CREATED and waits:
        return BlockStatus.WAITING_FOR_BLOCKS
    if run_status != "running" or work.leased:
        return found
    if work.queued:
        return BlockStatus.WAITING_FOR_RESOURCES
    return BlockStatus.WAITING_FOR_OBJECT if work.objects and not work.timed else found


def run_statuses(status: BlockStatus) -> list[str]:
    """Returns the statuses of runs among which those of blocks with this status are found."""
    plain = _WAITING.get(status, status)
    can_be_stopped = plain in (BlockStatus.FAILED, BlockStatus.ABORTED)
    return [one for one, of in _OF_RUN.items() if of is plain] + ["stopped"] * can_be_stopped


def run_statuses_of_sbi(status: BlockStatus) -> list[str]:
    """Returns the statuses of runs of which each instance with this status has one."""
    among = run_statuses(status)
    return [*among, "created"] if status is BlockStatus.RUNNING else among


def read_block_status(text: str) -> BlockStatus:
    """Returns the status that somebody wrote, with blanks or hyphens if they like."""
    word = text.strip().lower().replace(" ", "_").replace("-", "_")
    try:
        return BlockStatus(word)
    except ValueError:
        raise BadSetting("status", text, ", ".join(BlockStatus)) from None


def sbi_status(counts: Mapping[BlockStatus, int]) -> BlockStatus:
    """Returns the status of an instance from the plain statuses of its blocks.

    What went wrong is told as soon as nothing is active, whatever may still begin; it is
    completed when all of it is.
    """
    there = {status for status, count in counts.items() if count}
    if there <= {BlockStatus.CREATED}:
        return BlockStatus.CREATED
    worst = (BlockStatus.RUNNING, BlockStatus.FAILED, BlockStatus.ABORTED, BlockStatus.STOPPED)
    for status in worst:
        if status in there:
            return status
    return BlockStatus.RUNNING if BlockStatus.CREATED in there else BlockStatus.COMPLETED


class StageStatus(StrEnum):
    """Says how a stage of a block is, in the words of SIP."""

    CREATED = "created"  # its block has not begun
    WAITING_FOR_DEPENDENCIES = "waiting_for_dependencies"
    WAITING_FOR_OBJECT = "waiting_for_object"
    WAITING_FOR_RESOURCES = "waiting_for_resources"
    HELD = "held"
    RETRYING = "retrying"  # it failed, and waits for its next try
    PREPARING = "preparing"  # a worker has it, and it has not begun
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ABORTED = "aborted"
    SWITCHED_OFF = "switched_off"


class StageSigns(NamedTuple):
    """Holds by what the status of a stage is known."""

    state: str  # of its task in the run, with the remarks on it
    remarks: tuple[str, ...] = ()
    job: str = ""  # the status of its last submission; "": it has none
    has_begun: bool = False  # that submission
    lacks_objects_alone: bool = False
    is_aborted: bool = False  # its block
    block_begun: bool = True


_OPEN_STATES = frozenset(("waiting", "ready", "future"))
_ACTIVE_STATES = frozenset(("preparing", "submitted", "running"))
_FAILED_STATES = frozenset(("failed", "submit-failed"))


def stage_status(signs: StageSigns) -> str:
    """Returns the status of a stage: one of StageStatus, or the state of a task that did not
    run and never will, such as `not_taken`."""
    state, job = signs.state, signs.job
    if state not in _OPEN_STATES | _ACTIVE_STATES | _FAILED_STATES:
        is_off = state == "succeeded" and "switched off" in signs.remarks
        return StageStatus.SWITCHED_OFF if is_off else state.replace(" ", "_")
    # Of an aborted block too: what a worker still has is not over.
    if job in ("running", "cancelling") and state in _ACTIVE_STATES | _FAILED_STATES:
        return StageStatus.RUNNING if signs.has_begun else StageStatus.PREPARING
    if signs.is_aborted and not (state in _FAILED_STATES and job == "succeeded"):
        # Nobody may have heard of the end of its job any more.
        return job if job in ("succeeded", "failed") else StageStatus.ABORTED
    if state in _FAILED_STATES:
        return StageStatus.FAILED
    return _open_status(signs) if state in _OPEN_STATES else _submitted_status(signs)


def _open_status(signs: StageSigns) -> StageStatus:
    """Returns what a stage is or waits for that was not submitted."""
    if not signs.block_begun:
        return StageStatus.CREATED
    if "held" in signs.remarks:
        return StageStatus.HELD
    if "retrying" in signs.remarks:
        return StageStatus.RETRYING
    if signs.lacks_objects_alone:
        return StageStatus.WAITING_FOR_OBJECT
    return StageStatus.WAITING_FOR_DEPENDENCIES


def _submitted_status(signs: StageSigns) -> str:
    """Returns the status of a stage that was submitted, and that no worker is known to have."""
    if "withdrawn" in signs.remarks:
        return "withdrawn"
    if signs.job == "ready":
        return StageStatus.WAITING_FOR_RESOURCES
    return StageStatus.RUNNING if signs.state == "running" else StageStatus.PREPARING


class BlockCondition(StrEnum):
    """Says what must have become of another block."""

    COMPLETE = "complete"
    STARTED = "started"
    FAILED = "failed"
    ABORTED = "aborted"  # it failed, or somebody stopped it
    FINISHED = "finished"  # one way or the other


class NeedState(StrEnum):
    """Says whether a block still has to wait for another."""

    MET = "met"
    OPEN = "open"
    NEVER = "never"  # unless somebody carries the other one on


# By the status that the other block is told with (`may_begin.sql` has the same rule).
_MET_BY = {
    BlockCondition.COMPLETE: (BlockStatus.COMPLETED,),
    BlockCondition.FAILED: (BlockStatus.FAILED,),
    BlockCondition.ABORTED: (BlockStatus.FAILED, BlockStatus.ABORTED, BlockStatus.STOPPED),
    BlockCondition.FINISHED: (
        BlockStatus.FAILED,
        BlockStatus.ABORTED,
        BlockStatus.STOPPED,
        BlockStatus.COMPLETED,
    ),
}
_OVER = frozenset({"completed", "stopped", "stalled", "error"})
_SEEN = {BlockStatus.CREATED: "has not begun", BlockStatus.FAILED: "has failed"}


@dataclass(frozen=True, slots=True)
class BlockNeed:
    """Names a block, by its id, and what must have become of it."""

    parent: str
    condition: BlockCondition


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBlock:
    """Holds a processing block that is to be made: its run, and what it waits for."""

    id: str
    run: NewRun
    needs: tuple[BlockNeed, ...] = ()
    body: str = "{}"  # as it was asked for, JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSbi:
    """Holds a scheduling block instance that is to be made, whole or not at all."""

    id: str
    body: str  # JSON
    fingerprint: str  # the same for the same request, however it was written
    who: str
    blocks: tuple[NewBlock, ...]
    definitions: tuple[StoredDefinition, ...] = ()  # of its runs, where they are not kept yet


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedView:
    """Describes one need of a block, and how the block that it waits for is now."""

    run: int  # of the block that waits
    parent: str  # the id of the one that it waits for; "": one that is not told, see `told_to`
    condition: BlockCondition
    status: str  # of the parent's run
    begun: bool  # whether a scheduler ever began with it
    going: bool  # whether a scheduler has it, or any is asked to take it
    reason: str = ""  # of the parent's run

    @property
    def block_status(self) -> BlockStatus:
        """Returns the status of the block that is waited for, without what that waits for."""
        return plain_status(self.status, self.reason)

    @property
    def state(self) -> NeedState:
        if self.condition is BlockCondition.STARTED:
            is_met = self.begun
        else:
            is_met = self.block_status in _MET_BY[self.condition]
        if is_met:
            return NeedState.MET
        return NeedState.NEVER if self.status in _OVER and not self.going else NeedState.OPEN

    def told_to(self, names: tuple[str, ...] | None) -> NeedView:
        """Returns the need as it is told to somebody who may know of what these patterns cover:
        without the other block, if that is not covered. None: everything is."""
        is_known = names is None or covers(names, run_name(self.parent))
        return self if is_known else replace(self, parent="")

    def __str__(self) -> str:
        if not self.parent:
            return f"another block, which you may not see, to be {self.condition}"
        status = self.block_status
        seen = _SEEN.get(status, f"is {status}")
        return f"{self.parent} to be {self.condition} (it {seen})"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockView:
    """Describes a processing block as it is now."""

    id: str
    sbi: str
    position: int  # in its instance, from 1
    body: str
    run: RunView
    priority: int
    needs: tuple[NeedView, ...] = ()
    work: BlockWork = NO_WORK

    @property
    def status(self) -> BlockStatus:
        run = self.run
        return block_status(run.status, run.reason, waits=bool(self.waits), work=self.work)

    @property
    def waits(self) -> tuple[NeedView, ...]:
        """Returns the needs that keep the block from beginning; none once it has begun."""
        if self.run.batch > 0:
            return ()
        return tuple(one for one in self.needs if one.state is not NeedState.MET)


@dataclass(frozen=True, slots=True, kw_only=True)
class SbiView:
    """Describes a scheduling block instance as it was asked for, and its blocks as they are."""

    id: str
    body: str
    fingerprint: str
    requested_at: Instant
    requested_by: str
    blocks: tuple[BlockView, ...] = ()
    counts: Mapping[BlockStatus, int] = field(default_factory=dict)  # of plain statuses

    @property
    def status(self) -> BlockStatus:
        return sbi_status(self.counts)


def subarray_of(body: str, wanted: str | None = None) -> str | None:
    """Returns the id of the subarray that a request names, as text; None if it names none, or
    cannot name the one that is wanted."""
    if wanted is not None and json.dumps(wanted)[1:-1] not in body:
        return None
    asked = json.loads(body)
    found = asked.get("subarray_id") if isinstance(asked, dict) else None
    return None if found is None else str(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSince:
    """Says that a run got a status at a time, with the reason for it."""

    at: Instant
    status: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedSbi:
    """Answers a request for an instance; `made` is false if it had been accepted before."""

    sbi: SbiView
    made: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewObject:
    """Holds a buffer object that is posted: it is there from now on."""

    name: str
    facts: str = "{}"  # what is known of it, a JSON object


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectView:
    """Describes a buffer object that is there."""

    name: str
    facts: str
    posted_at: Instant
    posted_by: str


class InvalidSbi(InvalidDefinition):
    """A scheduling block instance has mistakes; it carries all of them."""

    subject = "scheduling block instance"
