"""``tidewheel run NAME[/VERSION]``: runs of registered workflows, here or through a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from tidewheel.cli.output import note, safe
from tidewheel.cli.pages.workflows import parts
from tidewheel.core.graph.findings import Findings, InvalidDefinition
from tidewheel.core.operator.definition import SIP
from tidewheel.core.operator.registry import (
    RunRequest,
    name_problem,
    registry_text,
    split_reference,
    version_problem,
)
from tidewheel.errors import AmbiguousRun, NotFound, Refused
from tidewheel.formats.sip.parameters import refused_unused, report_unused
from tidewheel.services.definitions.kept import Captured

if TYPE_CHECKING:
    from tidewheel.cli.definitions import Definition
    from tidewheel.cli.runs.local import Wanted
    from tidewheel.client.workflows import Workflows
    from tidewheel.core.operator.definition import RunOptions, StoredDefinition
    from tidewheel.core.operator.views import RunView
    from tidewheel.ports.store import Store
    from tidewheel.services.definitions.sip import StageSource

TellOfStages = Callable[["StageSource"], None]


def named_request(path: Path) -> RunRequest | None:
    """What a path would ask of the registry; None if no workflow can be called so."""
    workflow, version = split_reference(str(path))
    if name_problem(workflow) or (version and version_problem(version)):
        return None
    return RunRequest(workflow=workflow, version=version, code_trusted=True)


def with_parameters(
    asked: RunRequest, definition: Definition, options: RunOptions, name: str
) -> RunRequest:
    """With all that was said beside the name."""
    findings = Findings()
    parameters = definition.variables(findings)
    if findings.has_errors:
        raise InvalidDefinition(str(asked), findings.sorted())
    return replace(asked, parameters=parameters, options=options, name=name)


def unknown_name(name: str) -> Refused:
    return Refused(
        f"there is neither a folder, nor a run, nor a registered workflow {name!r}; "
        "name a folder with a flow.cylc, a file, or one of: tidewheel runs, tidewheel workflows"
    )


async def found_run(
    find: Callable[[str], Awaitable[RunView]], wanted: Wanted
) -> RunView | Refused:
    """The run that the words may mean, or why there is none; whoever gives parameters, or asks
    for a new one, means none of them."""
    unknown = unknown_name(wanted.name)
    asked = wanted.registered
    if wanted.is_new or (asked is not None and asked.parameters):
        return unknown
    try:
        return await find(wanted.name)
    except AmbiguousRun as several:
        return several
    except NotFound:
        return unknown


def is_exactly(run: RunView | Refused, text: str) -> TypeGuard[RunView]:
    """Whether a run is named, and not only its workflow or the beginning of its name."""
    return not isinstance(run, Refused) and text in (run.name, str(run.number))


def the_run(found: RunView | Refused) -> RunView:
    if isinstance(found, Refused):
        raise found
    return found


# ---- in this process ----


async def registered_here(store: Store, wanted: Wanted, tell: TellOfStages) -> Wanted | None:
    """The definition from the registry instead of a name; None if none is registered so."""
    asked = wanted.registered
    if asked is None or not await store.workflows(asked.workflow, 1):
        return None
    from tidewheel.services.registry.making_runs import request_run

    findings = Findings()
    new, definition = await request_run(store, asked, findings)
    if definition.kind == SIP:
        _refuse_unused(asked, findings)
        tell(_stages(definition, new.options))
    return replace(
        wanted,
        captured=Captured(definition, ()),
        folder=new.folder,
        options=new.options,
        name=asked.name,
        # The variables of a template are no part of what a run can be found by.
        is_new=wanted.is_new or (definition.kind != SIP and bool(asked.parameters)),
    )


def _refuse_unused(asked: RunRequest, findings: Findings) -> None:
    """Raise if a parameter that was typed here changes nothing."""
    if refused := refused_unused(findings):
        raise InvalidDefinition(str(asked), refused)


def _stages(definition: StoredDefinition, options: RunOptions) -> StageSource:
    from tidewheel.services.definitions.kept import restore

    found = restore(definition, options, Path()).stages
    assert found is not None
    return found


async def tell_of_namesake(store: Store, wanted: Wanted) -> None:
    """A path wins over a name; whoever meant the other is told how to say so."""
    asked = wanted.registered
    if asked is None:
        return
    found = await store.workflows(asked.workflow)
    if any(asked.version in ("", one.version) for one in found):
        _tell_of_path(asked)


def _tell_of_path(asked: RunRequest) -> None:
    note(
        f"{safe(asked)} is the file or folder of that name, not the registered workflow; "
        f"that one, from elsewhere: tidewheel run {safe(asked)}"
    )


# ---- through a server ----


async def tell_of_namesake_far(workflows: Workflows, wanted: Wanted) -> None:
    """The same; whoever may not see it need not be told."""
    if wanted.registered is not None:
        with suppress(Refused):
            await workflows.show(str(wanted.registered))
            _tell_of_path(wanted.registered)


class Origin(NamedTuple):
    """Where runs of a registered workflow come from."""

    folder: str
    request: str | None  # of a SIP definition the parameters; with others it is another run
    is_new: bool  # whether none that was stopped can be meant


async def registered_far(workflows: Workflows, asked: RunRequest) -> Origin | None:
    """None if no workflow is registered so."""
    try:
        found = await workflows.show(str(asked))
    except NotFound:  # also from a server that has no registry
        return None
    reference = f"{found['name']}/{found['version']}"
    is_sip = found["kind"] == SIP
    if is_sip:
        findings = Findings()
        declared = parts(found, "parameters")
        known = [str(one["name"]) for one in declared]
        ids = {str(stage) for one in declared for stage in one["stages"]}
        report_unused(asked.parameters, known, ids, findings)
        _refuse_unused(asked, findings)
    return Origin(
        registry_text(reference),
        asked.parameters_text if is_sip else None,
        not is_sip and bool(asked.parameters),
    )
