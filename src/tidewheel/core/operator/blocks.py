"""Describes scheduling block instances, processing blocks and buffer objects (seed 004).

A processing block is a run that is called by the block's id. What a block waits for are other
blocks; whether a need is met follows from the status of the run that stands for the parent. The
statements by which schedulers look for runs say the same in SQL.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from tidewheel.core.graph.findings import InvalidDefinition
from tidewheel.core.operator.definition import NewRun, StoredDefinition
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.access import covers, run_name
from tidewheel.core.queue.task import Instant
from tidewheel.lazy_dataclasses import dataclass

PRIORITY_MIN, PRIORITY_MAX = -1, 100
BLOCKS_MAX = 1_000  # of one instance
NEEDS_MAX = 1_000  # of one block
OBJECTS_MAX = 1_000  # that are posted at once
FACTS_BYTES_MAX = 16_000  # about one object, as JSON


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


_WENT_WRONG = frozenset({"stalled", "error"})
_MET_BY = {
    BlockCondition.COMPLETE: frozenset({"completed"}),
    BlockCondition.FAILED: _WENT_WRONG,
    BlockCondition.ABORTED: _WENT_WRONG | {"stopped"},
    BlockCondition.FINISHED: _WENT_WRONG | {"stopped", "completed"},
}
_OVER = frozenset({"completed", "stopped", "stalled", "error"})


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
    aborted: bool = False  # known to be, which is final; looked up where somebody asks why

    @property
    def state(self) -> NeedState:
        if self.condition is BlockCondition.STARTED:
            is_met = self.begun
        else:
            is_met = self.status in _MET_BY[self.condition]
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
            return f"a block of others to be {self.condition}"
        seen = "has not begun" if self.status == "created" else f"is {self.status}"
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
