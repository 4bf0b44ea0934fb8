"""Which registered workflow a name and a version mean."""

from __future__ import annotations

from tidewheel.core.graph.suggestions import nearest
from tidewheel.core.operator.registry import WorkflowView, highest, in_order
from tidewheel.errors import Refused
from tidewheel.ports.registry import RegistryStore
from tidewheel.registry_errors import UnknownWorkflow

WORKFLOWS_MAX = 10_000  # versions of all workflows that are listed


async def found_workflow(store: RegistryStore, name: str, version: str) -> WorkflowView:
    """A version of a workflow, without one the highest; else UnknownWorkflow."""
    versions = await store.workflows(name, WORKFLOWS_MAX)
    if not versions:
        raise await _unknown(store, name)
    if not version:
        return highest(versions)
    for one in versions:
        if one.version == version:
            return one
    known = ", ".join(one.version for one in in_order(versions)[:10])
    raise UnknownWorkflow(f"{name}/{version}", f"registered versions: {known}")


async def _unknown(store: RegistryStore, name: str) -> UnknownWorkflow:
    names = sorted({one.name for one in await store.workflows(None, WORKFLOWS_MAX)})
    near = nearest(name, names)
    if near is not None:
        return UnknownWorkflow(name, f"did you mean {near!r}?")
    if names:
        return UnknownWorkflow(name, "those that are: tidewheel workflows")
    return UnknownWorkflow(name, "register it first: tidewheel register PATH")


async def only_workflow(store: RegistryStore, name: str, version: str) -> WorkflowView:
    """The same for whoever must not guess: without a version there is only one."""
    if version:
        return await found_workflow(store, name, version)
    versions = in_order(await store.workflows(name, WORKFLOWS_MAX))
    if len(versions) > 1:
        known = ", ".join(one.version for one in versions[:10])
        raise Refused(f"there are several versions of {name!r}; say which: {known}")
    return await found_workflow(store, name, version)
