"""Registers definitions under a name and a version, finds and removes them."""

from __future__ import annotations

from collections.abc import Sequence

from tidewheel.core.operator.definition import is_same_content
from tidewheel.core.operator.registry import NewWorkflow, Registered, WorkflowView
from tidewheel.core.queue.access import is_within
from tidewheel.errors import AlreadyRegistered, NotFound
from tidewheel.store.operations.queries import page_count
from tidewheel.store.operations.runs import PATTERNS, save_definition
from tidewheel.store.transaction import STORED, Conflict, Stored, Transaction, found_one, row_of

STORED[NewWorkflow, "definition"] = Stored(str, lambda definition: definition.digest)
STORED[NewWorkflow, "sees"] = STORED[WorkflowView, "sees"] = PATTERNS


def register(tx: Transaction, workflows: Sequence[NewWorkflow]) -> list[Registered]:
    """Registers all of these workflows, or none: then AlreadyRegistered is raised.

    The error names those that are there with another content. One with the same content stays
    as it is, except that somebody who may see all that its registrant may see, and more, takes
    it over; and that its owner may register it again, from a folder of their own, as trusted:
    then it is marked as that.
    """
    # In an order of their own, so that two calls never wait for each other.
    for new in sorted(workflows, key=lambda one: one.definition.digest):
        save_definition(tx, new.definition)
    taken: list[str] = []
    is_new: dict[int, bool] = {}
    for position, new in sorted(
        enumerate(workflows), key=lambda one: (one[1].name, one[1].version)
    ):
        is_new[position] = bool(tx.rows("insert_workflow", **row_of(new)))
        if not is_new[position] and not _agrees(tx, new):
            taken.append(f"{new.name}/{new.version}")
    if taken:
        raise AlreadyRegistered(taken)
    return [
        Registered(new.name, new.version, is_new[position])
        for position, new in enumerate(workflows)
    ]


def _agrees(tx: Transaction, new: NewWorkflow) -> bool:
    """Says whether the version that is registered has the same content. If so, and the new one
    is trusted or its registrant sees more, it takes the place of the registered one."""
    found = tx.records("get_workflow", WorkflowView, name=new.name, version=new.version)
    if not found:
        raise Conflict("it was removed at the same moment")
    there = found[0].definition
    if not is_same_content(there, new.definition.digest):
        return False
    is_trusted = new.definition.is_trusted and there != new.definition.digest
    if is_trusted or _sees_more(new.sees, found[0].sees):
        tx.rows("delete_workflow", name=new.name, version=new.version)
        tx.rows("insert_workflow", **row_of(new))
    return True


def _sees_more(names: tuple[str, ...] | None, than: tuple[str, ...] | None) -> bool:
    if names is None or than is None:
        return than is not None
    return names != than and all(is_within(one, names) for one in than)


def get_workflow(tx: Transaction, name: str, version: str) -> WorkflowView:
    """Returns one version of a workflow; raises NotFound if it is not registered."""
    found = tx.records("get_workflow", WorkflowView, name=name, version=version)
    return found_one(found, "workflow", f"{name}/{version}")


def list_workflows(
    tx: Transaction, name: str | None = None, count: int = 1_000
) -> list[WorkflowView]:
    """Returns registered workflows, of one name or of all, by name and version as texts."""
    asked = {"name": name, "count": page_count(count)}
    return tx.records("list_workflows", WorkflowView, **asked)


def remove_workflow(tx: Transaction, name: str, version: str) -> WorkflowView:
    """Removes a version of a workflow from the registry, and returns what it was.

    Its definition stays, as runs may have been made of it.
    """
    found = get_workflow(tx, name, version)
    if not tx.rows("delete_workflow", name=name, version=version):
        raise NotFound("workflow", f"{name}/{version}")
    return found
