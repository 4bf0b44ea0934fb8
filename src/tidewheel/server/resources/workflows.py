"""The registry: definitions by name and version, sent as a bundle, judged before they are kept.

Nothing of a bundle is executed here, and nothing is written to a disk by the names in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidewheel.api.workflows import (
    DefinitionGraph,
    RegisteredWorkflows,
    RenderedWorkflow,
    WorkflowDocument,
    WorkflowFacts,
    WorkflowList,
    WorkflowVerdict,
)
from tidewheel.core.queue.access import Scope, covers_workflow
from tidewheel.server.call import Answer, Call
from tidewheel.server.resources.runs import run_door
from tidewheel.server.routes import API, Handler, Needs, Route, no_queue
from tidewheel.server.wire.validation import read
from tidewheel.server.wire.workflows import (
    GraphIn,
    ParametersIn,
    RegisterIn,
    RegisterQuery,
    WorkflowsQuery,
    bundles_of,
)

if TYPE_CHECKING:
    from tidewheel.core.operator.registry import Bundle
    from tidewheel.services.registry.service import RegistryService

JSON = "application/json"
ARCHIVES = ("application/x-tar", "application/gzip", "application/zip")
CREATED = 201
SECONDS_MAX = 60.0  # many stages take their time to be judged

WORKFLOWS = f"{API}/workflows"
WORKFLOW = f"{WORKFLOWS}/{{name}}"
VERSION = f"{WORKFLOW}/{{version}}"


def registry_door(call: Call) -> RegistryService:
    """The registry for this caller; no code of a definition runs here."""
    from tidewheel.services.registry.service import RegistryService

    return RegistryService(
        call.store, run_door(call), code_trusted=False, permit=call.require_workflows
    )


async def register(call: Call) -> object:
    query = call.query_as(RegisterQuery)
    async with call.doors.beginning:
        bundles = await asyncio.to_thread(_bundles, call.raw, query)
        told = await registry_door(call).register(bundles, who=call.who, strict=query.strict)
    made: Any = told["workflows"]
    call.targets += [f"{one['name']}/{one['version']}" for one in made]
    is_new = any(one["is_new"] for one in made)
    return Answer(body=told, status=CREATED if is_new else 200)


def _bundles(raw: bytes, query: RegisterQuery) -> Sequence[Bundle]:
    if raw.lstrip()[:1] in (b"{", b""):
        return bundles_of(read(raw or b"{}", RegisterIn))
    from tidewheel.core.graph.findings import Findings, InvalidDefinition
    from tidewheel.services.registry.bundles import read_archive

    findings = Findings()
    bundle = read_archive(raw, findings)
    if bundle is None:
        raise InvalidDefinition(query.name or "archive", findings.sorted())
    return [replace(bundle, name=query.name, version=query.version)]


async def list_workflows(call: Call) -> object:
    """Returns the workflows that the caller may see."""
    told = await registry_door(call).list(call.query_as(WorkflowsQuery).name)
    found: Any = told["workflows"]
    return {"workflows": [one for one in found if covers_workflow(call.grant, one["name"])]}


async def show(call: Call) -> object:
    return await registry_door(call).show(*_named(call))


async def check(call: Call) -> object:
    given = call.body_as(ParametersIn).parameters
    async with call.doors.beginning:
        return await registry_door(call).check(*_named(call), given)


async def render(call: Call) -> object:
    given = call.body_as(ParametersIn).parameters
    async with call.doors.beginning:
        return await registry_door(call).render(*_named(call), given)


async def graph(call: Call) -> object:
    asked = call.body_as(GraphIn)
    given, points = asked.parameters or {}, (asked.start, asked.stop)
    async with call.doors.beginning:
        return await registry_door(call).graph(*_named(call), given, points)


async def remove(call: Call) -> object:
    return await registry_door(call).remove(*_named(call))


def _named(call: Call) -> tuple[str, str]:
    return call.path["name"], call.path.get("version", "")


async def _workflow_of_path(call: Call) -> Iterable[str]:
    return (call.path["name"],)


_READS = Needs(scopes=(Scope.READ,), queues=no_queue, workflows=_workflow_of_path)
_SUBMITS = Needs(scopes=(Scope.SUBMIT,), queues=no_queue, workflows=_workflow_of_path)


def _trying(
    path: str,
    what: str,
    handler: Handler,
    says: str,
    answers: object,
    body: type[ParametersIn] = ParametersIn,
) -> Route:
    """A POST for the sake of its body: parameters may be larger than a URL."""
    return Route(
        method="POST",
        path=f"{path}/{what}",
        guard=_READS,
        handler=handler,
        says=says,
        body=body,
        answers=answers,
        audited=False,  # it changes nothing
        seconds_max=SECONDS_MAX,
    )


def _of_one(path: str, which: str) -> tuple[Route, ...]:
    return (
        _trying(
            path,
            "check",
            check,
            f"Whether {which} can run with some parameters.",
            WorkflowVerdict,
        ),
        _trying(
            path,
            "render",
            render,
            f"What {which} would execute with some parameters.",
            RenderedWorkflow,
        ),
        Route(
            method="GET",
            path=path,
            guard=_READS,
            handler=show,
            says=f"{which.capitalize()} of a workflow: findings, parameters, files.",
            answers=WorkflowDocument,
        ),
        Route(
            method="DELETE",
            path=path,
            guard=_SUBMITS,
            handler=remove,
            says=f"Forget {which} of a workflow; runs of it are not harmed.",
            answers=WorkflowFacts,
        ),
    )


ROUTES = (
    Route(
        method="POST",
        path=WORKFLOWS,
        guard=Needs(scopes=(Scope.SUBMIT,), queues=no_queue),
        handler=register,
        says="Register every definition of a bundle, or none: an archive, or files as JSON.",
        query=RegisterQuery,
        raw=(JSON, *ARCHIVES),
        body=RegisterIn,
        answers=RegisteredWorkflows,
        status=CREATED,
        seconds_max=SECONDS_MAX,
    ),
    Route(
        method="GET",
        path=WORKFLOWS,
        guard=Needs(scopes=(Scope.READ,), queues=no_queue),
        handler=list_workflows,
        says="Registered workflows by name, the highest version first.",
        query=WorkflowsQuery,
        answers=WorkflowList,
    ),
    *_of_one(WORKFLOW, "the highest version"),
    *_of_one(VERSION, "one version"),
    _trying(
        VERSION,
        "graph",
        graph,
        "The graph of one version before any run: who would wait for whom.",
        DefinitionGraph,
        GraphIn,
    ),
)
