"""Registers definitions under a name and a version, finds and removes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidewheel.core.operator.definition import is_same_content
from tidewheel.core.operator.registry import NewWorkflow, Registered, WorkflowView
from tidewheel.errors import AlreadyRegistered, NotFound
from tidewheel.store.operations.queries import page_count
from tidewheel.store.operations.runs import save_definition
from tidewheel.store.rows import filled, row_type
from tidewheel.store.transaction import Conflict, Transaction


def register(tx: Transaction, workflows: Sequence[NewWorkflow]) -> list[Registered]:
    """Registers all of them or none; one that is there with the same content stays as it is.

    Except that its owner may give it the mark of those that are trusted, from his own folder.
    """
    # In an order of their own, so that two calls never wait for each other.
    for new in sorted(workflows, key=lambda one: one.definition.digest):
        save_definition(tx, new.definition)
    taken: list[str] = []
    is_new: dict[int, bool] = {}
    for position, new in sorted(enumerate(workflows), key=_name_and_version):
        is_new[position] = _put(tx, new)
        if not is_new[position] and not _agrees(tx, new):
            taken.append(f"{new.name}/{new.version}")
    if taken:
        raise AlreadyRegistered(taken)
    return [
        Registered(new.name, new.version, is_new[position])
        for position, new in enumerate(workflows)
    ]


def _name_and_version(numbered: tuple[int, NewWorkflow]) -> tuple[str, str]:
    return numbered[1].name, numbered[1].version


def _put(tx: Transaction, new: NewWorkflow) -> bool:
    found = tx.rows(
        "insert_workflow",
        name=new.name,
        version=new.version,
        definition=new.definition.digest,
        runnable=new.runnable,
        findings=new.findings,
        parameters=new.parameters,
        registered_by=new.registered_by,
    )
    return bool(found)


def _agrees(tx: Transaction, new: NewWorkflow) -> bool:
    """Says whether what is there has the same content, and marks it as trusted if asked to."""
    found = tx.records("get_workflow", WorkflowRow, name=new.name, version=new.version)
    if not found:
        raise Conflict("it was removed at the same moment")
    there = found[0].definition
    if not is_same_content(there, new.definition.digest):
        return False
    if new.definition.is_trusted and there != new.definition.digest:
        tx.rows("delete_workflow", name=new.name, version=new.version)
        _put(tx, new)
    return True


def get_workflow(tx: Transaction, name: str, version: str) -> WorkflowView:
    """Returns one version of one workflow."""
    found = tx.records("get_workflow", WorkflowRow, name=name, version=version)
    if not found:
        raise NotFound("workflow", f"{name}/{version}")
    return _workflow_view(found[0])


def list_workflows(
    tx: Transaction, name: str | None = None, count: int = 1_000
) -> list[WorkflowView]:
    """Returns workflows by name and version, as texts are sorted."""
    asked = {"name": name, "count": page_count(count)}
    return list(map(_workflow_view, tx.records("list_workflows", WorkflowRow, **asked)))


def remove_workflow(tx: Transaction, name: str, version: str) -> WorkflowView:
    """Removes a version; its definition stays, as runs may have been made of it."""
    found = get_workflow(tx, name, version)
    if not tx.rows("delete_workflow", name=name, version=version):
        raise NotFound("workflow", f"{name}/{version}")
    return found


WorkflowRow = row_type(WorkflowView)


def _workflow_view(r: Any) -> WorkflowView:  # noqa: ANN401 - a WorkflowRow
    return filled(WorkflowView, r, runnable=bool(r.runnable))
