"""Keeps the registry on a store: registers workflows, shows, checks, removes and runs them.

Everybody comes through here: applications, the command line, and the server for those who come
over HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

from tidewheel.core.graph.findings import (
    Findings,
    InvalidDefinition,
    Severity,
    finding_document,
    nearest,
)
from tidewheel.core.operator.definition import (
    PYTHON,
    SIP,
    NewRun,
    RunOptions,
    StoredDefinition,
    check_options,
)
from tidewheel.core.operator.registry import (
    Bundle,
    RunRequest,
    WorkflowView,
    highest,
    in_order,
    registry_text,
)
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.access import covers, narrowed, workflow_name
from tidewheel.errors import Refused, UnknownWorkflow
from tidewheel.formats.flow_cylc.template_variables import VariableTexts, read_variables
from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow
from tidewheel.formats.sip.parameters import Values
from tidewheel.formats.sip.stage_renderer import RenderedStage
from tidewheel.formats.sip.validation import validate
from tidewheel.ports.runs import Document, Parameters, RunDoor
from tidewheel.ports.store import Store
from tidewheel.services.definitions import graph as drawing
from tidewheel.services.definitions.diff import definitions_diff
from tidewheel.services.definitions.sip import load_sip, source_of, warn_of_scripts
from tidewheel.services.definitions.snapshot import (
    GraphCheck,
    capture,
    check_definition,
    check_new,
    load_flow,
)
from tidewheel.services.definitions.stages import rendered_document, stages_document
from tidewheel.services.registry import validation
from tidewheel.services.service import ReadsDefinitions, read_in_thread
from tidewheel.vocabulary import time_text

WORKFLOWS_MAX = 10_000  # versions of all workflows that are listed


class RegistryService:
    """Implements ``ports.runs.RegistryDoor`` on a store."""

    def __init__(  # noqa: PLR0913 - each by name
        self,
        store: Store,
        runs: RunDoor,
        *,
        code_trusted: bool,
        permit: Callable[[Iterable[str]], None] = lambda _: None,
        sees: tuple[str, ...] | None = None,
        read: ReadsDefinitions = read_in_thread,
        check: GraphCheck | None = None,
    ) -> None:
        """Sets up the registry for a caller. ``permit`` raises if the caller may not register
        workflows of these names; ``sees`` covers the names that the caller may be told, and
        that the code may see which the caller registers. ``check`` finds what keeps a run from
        beginning here; without it, ``runs`` does, and reads the definition once more for
        that."""
        self._store, self._runs, self._sees, self._check = store, runs, sees, check
        self._code_trusted, self._permit, self._read = code_trusted, permit, read

    async def register(
        self, bundles: Sequence[Bundle], *, who: str, strict: bool = False
    ) -> Document:
        manner = validation.ValidationOptions(
            now=float(await self._store.now()), strict=strict, code_trusted=self._code_trusted
        )
        self._permit(one.name for one in bundles if one.name)  # before any work is done
        named = next((one.name for one in bundles if one.name), who)
        validated = await self._read(
            named, partial(validation.validate_bundles, bundles, manner)
        )
        self._permit(one.name for one in validated)
        refused = [one for one in validated if not one.registrable]
        if refused:
            found = [finding for one in refused for finding in one.told]
            raise InvalidDefinition(", ".join(map(str, refused)), found)
        answers = await self._store.register([one.new(who, self._sees) for one in validated])
        return {
            "workflows": [
                one.document() | {"source": one.source_document, "is_new": answer.is_new}
                for one, answer in zip(validated, answers, strict=True)
            ]
        }

    async def list(self, name: str = "") -> Document:
        found = await self._store.workflows(name or None, WORKFLOWS_MAX)
        return {"workflows": [_listed(one) for one in in_order(found)]}

    async def show(self, name: str, version: str = "") -> Document:
        view = await found_workflow(self._store, name, version, sees=self._sees)
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
        """Says whether a run with these parameters could begin; for None, whether any could."""
        view, kept, asked = await self._asked(name, version, parameters)
        is_request = parameters is not None
        told = await self._read(
            view.name, partial(_checked, kept, asked, is_request=is_request)
        )
        return _listed(view) | told

    async def render(
        self, name: str, version: str = "", parameters: Parameters | None = None
    ) -> Document:
        """Returns what a run would execute, with every value in its place."""
        view, kept, asked = await self._asked(name, version, parameters)
        rendered = await self._read(view.name, partial(_rendered, kept, asked))
        return {"name": view.name, "version": view.version, "kind": view.kind} | rendered

    async def stages(
        self, name: str, version: str = "", parameters: Parameters | None = None
    ) -> Document:
        """Returns what each stage is: what it waits for and needs, its values and its files."""
        view, kept, asked = await self._asked(name, version, parameters)
        told = await self._read(view.name, partial(_staged, kept, asked))
        return {"name": view.name, "version": view.version, "kind": view.kind} | told

    async def graph(
        self,
        name: str,
        version: str,
        parameters: Parameters,
        points: tuple[str, str],
        bounds: RunOptions | None = None,
    ) -> Document:
        """Returns which tasks would wait for which, between these two points.

        An empty text stands for the first point, or for a point a little after it. With the
        ``bounds`` of a run it is the part that such a run goes through, counted.
        """
        view, kept, asked = await self._asked(name, version, parameters)
        if bounds is not None:
            asked = replace(asked, options=replace(bounds, now=asked.options.now))
        draws = partial(_drawn, kept, asked, *points, counted=bounds is not None)
        drawn = await self._read(view.name, draws)
        return {"name": view.name, "version": view.version, "kind": view.kind} | drawn

    async def _asked(
        self, name: str, version: str, parameters: Parameters | None
    ) -> tuple[WorkflowView, StoredDefinition, RunRequest]:
        """Returns a workflow, its definition, and the request for a run with these values."""
        view = await found_workflow(self._store, name, version, sees=self._sees)
        kept = await self._store.definition(view.definition)
        asked = RunRequest(
            workflow=view.name,
            version=view.version,
            parameters=parameters or {},
            options=RunOptions(now=float(await self._store.now())),
            code_trusted=self._code_trusted,
        )
        return view, kept, asked

    async def definition(self, name: str, version: str = "") -> StoredDefinition:
        view = await found_workflow(self._store, name, version, sees=self._sees)
        return await self._store.definition(view.definition)

    async def diff(self, name: str, version: str, against: str) -> Document:
        old = await found_workflow(self._store, name, version, sees=self._sees)
        new = await found_workflow(self._store, name, against, sees=self._sees)
        kept = [await self._store.definition(one.definition) for one in (old, new)]
        told = await self._read(old.name, partial(definitions_diff, *kept))
        return {"name": old.name, "version": old.version, "against": new.version} | told

    async def remove(self, name: str, version: str = "") -> Document:
        view = await found_workflow(
            self._store, name, version, may_guess=False, sees=self._sees
        )
        return _listed(await self._store.remove_workflow(view.name, view.version))

    async def begin(self, asked: RunRequest) -> RunView:
        trusted = replace(asked, code_trusted=self._code_trusted)
        new, definition = await request_run(
            self._store, trusted, read=self._read, check=self._check
        )
        is_checked = self._check is not None
        return await self._runs.begin(new, definition, is_checked=is_checked)


def _listed(view: WorkflowView) -> Document:
    shown = ("name", "version", "kind", "definition", "runnable", "registered_by")
    return {
        **{name: getattr(view, name) for name in shown},
        "parameters": json.loads(view.parameters),
        "registered_at": time_text(view.registered_at),
        "source": json.loads(view.source) if view.source else None,
    }


# Lookup of the registered workflow that a name and a version mean.


async def found_workflow(
    store: Store,
    name: str,
    version: str,
    *,
    may_guess: bool = True,
    sees: tuple[str, ...] | None = None,
) -> WorkflowView:
    """Returns a version of a workflow, the highest for ""; raises UnknownWorkflow for none.
    Unless ``may_guess``, it raises Refused for "" if there are several versions. ``sees`` has
    patterns for the names that the caller may be told; None: all.
    """
    versions = in_order(await store.workflows(name, WORKFLOWS_MAX))
    if not versions:
        raise await _unknown(store, name, sees)
    known = ", ".join(one.version for one in versions[:10])
    if not version:
        if len(versions) > 1 and not may_guess:
            raise Refused(f"there are several versions of {name!r}; say which: {known}")
        return highest(versions)
    for one in versions:
        if one.version == version:
            return one
    raise UnknownWorkflow(f"{name}/{version}", f"registered versions: {known}")


async def _unknown(store: Store, name: str, sees: tuple[str, ...] | None) -> UnknownWorkflow:
    known = {one.name for one in await store.workflows(None, WORKFLOWS_MAX)}
    names = sorted(one for one in known if sees is None or covers(sees, workflow_name(one)))
    near = nearest(name, names)
    if near is not None:
        return UnknownWorkflow(name, f"did you mean {near!r}?")
    if names:
        return UnknownWorkflow(name, "list registered workflows: tidewheel workflows")
    return UnknownWorkflow(name, "register it first: tidewheel register PATH")


# Runs of registered workflows are made from what is kept, never from the folder it came from.
# Every request is validated anew, with its parameters, before anything is stored.


async def request_run(
    store: Store,
    asked: RunRequest,
    findings: Findings | None = None,
    read: ReadsDefinitions = read_in_thread,
    check: GraphCheck | None = None,
) -> tuple[NewRun, StoredDefinition]:
    """Returns the run that is asked for and its definition, to be stored; nothing is written.

    Raises InvalidDefinition with every finding: no such workflow or version, a parameter that
    is missing, whatever keeps this request from running. The definition may be a new one, which
    has to be kept before the run is made. ``findings`` gets what refuses nothing, too.

    Its jobs see what both may see, who registered the workflow and who asks for the run: code
    of one team sees no more because somebody else begins it.
    """
    findings = Findings() if findings is None else findings
    try:
        view = await found_workflow(store, asked.workflow, asked.version, sees=asked.sees)
    except UnknownWorkflow as unknown:
        known = unknown.name == asked.workflow
        code = "unknown-workflow" if known else "unknown-version"
        message = f"no workflow {unknown.name!r} is registered"
        raise validation.refusal(str(asked), code, message, unknown.advice) from None
    kept = await store.definition(view.definition)
    if not asked.options.now:
        options = replace(asked.options, now=float(await store.now()))
        asked = replace(asked, options=options)
    new, definition = await request_run_of(kept, asked, findings, read, check)
    assert definition.workflow == view.name, "a caller's rights are those for this name"
    sees = narrowed(view.sees, asked.sees)
    return replace(new, folder=registry_text(str(view)), sees=sees), definition


async def request_run_of(
    kept: StoredDefinition,
    asked: RunRequest,
    findings: Findings,
    read: ReadsDefinitions = read_in_thread,
    check: GraphCheck | None = None,
) -> tuple[NewRun, StoredDefinition]:
    """Returns the run that is asked for of a definition that is kept as it was written, and its
    definition, to be stored. Raises InvalidDefinition as `request_run` does."""
    work = partial(_made_with, kept, asked, findings, check)
    definition, options, found = await read(kept.workflow, work)
    for one in found:  # another process has a copy of what was found before
        findings.add(one)
    new = NewRun(
        workflow=definition.workflow,
        definition=definition.digest,
        name=asked.name,
        options=options,
        queue=asked.queue,
        request=asked.request,
        sees=asked.sees,
    )
    return new, definition


@contextmanager
def _loaded(
    kept: StoredDefinition, asked: RunRequest, values: Values | None, findings: Findings
) -> Iterator[tuple[LoadedWorkflow, Path, Mapping[str, RenderedStage]]]:
    """Reads a SIP definition with these values, or a flow.cylc with those of the request.

    Yields it with the folder in which a flow.cylc lies meanwhile, and the stages of a SIP one.
    """
    if kept.kind == SIP:
        validated = load_sip(source_of(kept.text, kept.files), Path(), values, findings)
        found = validated.validation
        yield validated.loaded, Path(), {} if found is None else found.rendered
    else:
        given, trusted = asked.parameters, asked.code_trusted
        with load_flow(kept, asked.options, findings, given, code_trusted=trusted) as flow:
            yield *flow, {}


def _made_with(
    kept: StoredDefinition, asked: RunRequest, findings: Findings, check: GraphCheck | None
) -> tuple[StoredDefinition, RunOptions, Findings]:
    return *_made(kept, asked, findings, check), findings


def _made(
    kept: StoredDefinition,
    asked: RunRequest,
    findings: Findings,
    check: GraphCheck | None = None,
) -> tuple[StoredDefinition, RunOptions]:
    """Returns the definition and the options of a run. Raises InvalidDefinition, with all
    findings, if no run could begin with this request."""
    options = asked.options
    if kept.kind == PYTHON:
        _check_python(kept, asked, findings)
    else:
        with _loaded(kept, asked, _values(asked), findings) as (loaded, folder, _):
            if loaded.source.is_plain:
                _check_no_parameters(asked, findings, REGISTERED_HINT)
            check_new(kept.kind, options, loaded.graph, findings, check)
            if kept.kind == SIP and not findings.has_errors:  # else they may be no JSON
                options = replace(options, parameters=asked.parameters_text)
            elif kept.kind != SIP and loaded.graph is not None and not findings.has_errors:
                variables = read_variables(VariableTexts(values=asked.parameters), findings)
                trusted = asked.code_trusted and kept.is_trusted
                kept = capture(loaded, folder, variables, trusted=trusted).definition
    if findings.has_errors:
        raise InvalidDefinition(str(asked), findings.sorted())
    return kept, options


def _values(asked: RunRequest) -> Values:
    """Returns the parameters of a request as the validation of SIP definitions takes them. A
    value that is no JSON becomes a finding there."""
    return cast("Values", dict(asked.parameters))


# A file is executed for each run, or once, when it is registered.
EXECUTED_HINT = "leave them out; the file itself may read the environment"
REGISTERED_HINT = "leave them out, or register the file again with the values that you need"


def _check_no_parameters(asked: RunRequest, findings: Findings, hint: str) -> None:
    if asked.parameters:
        seen = f"{asked} was written in Python, and takes no parameters"
        findings.error("no-parameters", seen, hint)


def _check_python(kept: StoredDefinition, asked: RunRequest, findings: Findings) -> None:
    _check_no_parameters(asked, findings, EXECUTED_HINT)
    if not asked.code_trusted:
        findings.error(
            "python-definition",
            "servers do not load Python workflows, because loading one executes its code",
            f"run it where the store is: tidewheel run {asked} --store URL",
        )
    if not findings.has_errors:
        check_definition(kept, asked.options)


def _checked(kept: StoredDefinition, asked: RunRequest, *, is_request: bool) -> Document:
    if kept.kind == SIP:
        source = source_of(kept.text, kept.files)
        seen = validate(source, _values(asked) if is_request else None)
        if is_request:
            seen.refuse_unused()  # as run does
        warn_of_scripts(seen)
        return validation.validate_sip(source, seen).document()
    findings = Findings()
    try:
        _made(kept, asked, findings)
        found = findings.sorted()
    except InvalidDefinition as refused:
        found = list(refused.findings)
    return {
        "registrable": True,
        "runnable": all(one.severity is not Severity.ERROR for one in found),
        "findings": [finding_document(one) for one in found],
    }


def _rendered(kept: StoredDefinition, asked: RunRequest) -> Document:
    if kept.kind == PYTHON:
        message = f"{asked} is written in Python: there is nothing to render"
        hint = f"see its files: tidewheel workflows show {asked}"
        raise validation.refusal(str(asked), "python-definition", message, hint)
    findings = Findings()
    with _loaded(kept, asked, _values(asked), findings) as (loaded, _, found):
        text = loaded.source.text
        stages = {name: rendered_document(one) for name, one in found.items()}
    if findings.has_errors:
        raise InvalidDefinition(str(asked), findings.sorted())
    return {"text": text, "stages": stages}


def _staged(kept: StoredDefinition, asked: RunRequest) -> Document:
    """Returns the stages, even of a workflow that could not run."""
    if kept.kind != SIP:
        message = f"{asked} has tasks, and no stages"
        hint = f"list the tasks: tidewheel list {asked}"
        raise validation.refusal(str(asked), "no-stages", message, hint)
    findings = Findings()
    told = stages_document(kept, _values(asked) or None, findings)
    if told is None:
        raise InvalidDefinition(str(asked), findings.sorted())
    return told | {"findings": [finding_document(one) for one in findings.sorted()]}


def _drawn(
    kept: StoredDefinition, asked: RunRequest, start: str, stop: str, *, counted: bool
) -> Document:
    """Returns the graph between two points, even of a workflow that could not run; ``counted``:
    that of a run that could, with its points and tasks."""
    findings, drawn = Findings(), None
    check_options(kept.kind, asked.options)
    if kept.kind == PYTHON:
        _check_python(kept, asked, findings)
    else:
        with _loaded(kept, asked, _values(asked) or None, findings) as (loaded, _, _):
            if loaded.graph is not None and loaded.graph.nodes:
                if counted and not start and not stop:
                    shown = drawing.run_window(loaded.graph)
                else:
                    most = drawing.TASKS_READ_MAX
                    window = partial(drawing.read_window, tasks_max=most, suicides=True)
                    shown = window(loaded, start, stop)
                drawn = drawing.graph_document(shown, drawing.drawn_in(loaded))
                if counted:
                    drawn["range"] = drawing.range_document(loaded.graph)
    if drawn is None or (counted and findings.has_errors):
        raise InvalidDefinition(str(asked), findings.sorted())
    return drawn | {"findings": [finding_document(one) for one in findings.sorted()]}
