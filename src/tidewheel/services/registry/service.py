"""Keeps the registry on a store: registers workflows, shows, checks, removes and runs them.

Everybody comes through here: applications, the command line, and the server for those who come
over HTTP.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tidewheel.core.graph.findings import InvalidDefinition
from tidewheel.core.operator.definition import RunOptions, StoredDefinition
from tidewheel.core.operator.registry import Bundle, RunRequest, WorkflowView, in_order
from tidewheel.core.operator.views import RunView
from tidewheel.ports.runs import Document, Parameters, RunDoor
from tidewheel.ports.store import Store
from tidewheel.services.registry import run_factory
from tidewheel.services.registry.run_factory import WORKFLOWS_MAX, found_workflow, only_workflow
from tidewheel.services.registry.validation import ValidationOptions, validate_bundles
from tidewheel.vocabulary import time_text


class RegistryService:
    """Is ``ports.registry.RegistryDoor`` on a store."""

    def __init__(
        self,
        store: Store,
        runs: RunDoor,
        *,
        code_trusted: bool,
        permit: Callable[[Iterable[str]], None] = lambda _: None,
    ) -> None:
        """Sets up the registry for a caller.

        ``permit`` raises if the caller may not register workflows of these names.
        """
        self._store, self._runs = store, runs
        self._code_trusted, self._permit = code_trusted, permit

    async def register(
        self, bundles: Sequence[Bundle], *, who: str, strict: bool = False
    ) -> Document:
        manner = ValidationOptions(
            now=float(await self._store.now()), strict=strict, code_trusted=self._code_trusted
        )
        validated = await asyncio.to_thread(validate_bundles, bundles, manner)
        self._permit(one.name for one in validated)
        refused = [one for one in validated if not one.registrable]
        if refused:
            found = [finding for one in refused for finding in one.told]
            raise InvalidDefinition(", ".join(map(str, refused)), found)
        answers = await self._store.register([one.new(who) for one in validated])
        return {
            "workflows": [
                one.document() | {"is_new": answer.is_new}
                for one, answer in zip(validated, answers, strict=True)
            ]
        }

    async def list(self, name: str = "") -> Document:
        found = await self._store.workflows(name or None, WORKFLOWS_MAX)
        return {"workflows": [_listed(one) for one in in_order(found)]}

    async def show(self, name: str, version: str = "") -> Document:
        view = await found_workflow(self._store, name, version)
        definition = await self._store.definition(view.definition)
        versions = await self._store.workflows(view.name, WORKFLOWS_MAX)
        return _listed(view) | {
            "findings": json.loads(view.findings),
            "versions": [one.version for one in in_order(versions)],
            "files": [
                {"path": one.path, "size": len(one.content), "executable": one.executable}
                for one in definition.files
            ],
        }

    async def check(
        self, name: str, version: str = "", parameters: Parameters | None = None
    ) -> Document:
        view, kept, asked = await self._asked(name, version, parameters)
        is_request = parameters is not None
        told = await asyncio.to_thread(run_factory.checked, kept, asked, is_request=is_request)
        return _listed(view) | told

    async def render(
        self, name: str, version: str = "", parameters: Parameters | None = None
    ) -> Document:
        view, kept, asked = await self._asked(name, version, parameters)
        rendered = await asyncio.to_thread(run_factory.rendered, kept, asked)
        return {"name": view.name, "version": view.version, "kind": view.kind} | rendered

    async def graph(
        self, name: str, version: str, parameters: Parameters, points: tuple[str, str]
    ) -> Document:
        """Returns which tasks would wait for which, from one point to another.

        "" is the first point, or a few points after it.
        """
        view, kept, asked = await self._asked(name, version, parameters)
        drawn = await asyncio.to_thread(run_factory.graphed, kept, asked, *points)
        return {"name": view.name, "version": view.version, "kind": view.kind} | drawn

    async def _asked(
        self, name: str, version: str, parameters: Parameters | None
    ) -> tuple[WorkflowView, StoredDefinition, RunRequest]:
        """Returns the workflow that is meant, its definition, and a run with these values."""
        view = await found_workflow(self._store, name, version)
        kept = await self._store.definition(view.definition)
        asked = RunRequest(
            workflow=view.name,
            version=view.version,
            parameters=parameters or {},
            options=RunOptions(now=float(await self._store.now())),
            code_trusted=self._code_trusted,
        )
        return view, kept, asked

    async def remove(self, name: str, version: str = "") -> Document:
        view = await only_workflow(self._store, name, version)
        return _listed(await self._store.remove_workflow(view.name, view.version))

    async def begin(self, asked: RunRequest) -> RunView:
        trusted = replace(asked, code_trusted=self._code_trusted)
        new, definition = await run_factory.request_run(self._store, trusted)
        return await self._runs.begin(new, definition)


def _listed(view: WorkflowView) -> Document:
    return {
        "name": view.name,
        "version": view.version,
        "kind": view.kind,
        "definition": view.definition,
        "runnable": view.runnable,
        "parameters": json.loads(view.parameters),
        "registered_at": time_text(view.registered_at),
        "registered_by": view.registered_by,
    }
