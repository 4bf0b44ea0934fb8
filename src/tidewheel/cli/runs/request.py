"""Reads the words of ``tidewheel run``: a definition, a run, or a registered workflow.

What is wanted is the same whether it is then run in this process (`local`) or through a server
(`remote`); so are the notes that the user gets about it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeGuard

from tidewheel.cli.capacity_options import lacking, offered
from tidewheel.cli.definitions import Definition, possible_name
from tidewheel.cli.output import note, safe
from tidewheel.cli.pages.findings import check_places_here, note_findings, refuse
from tidewheel.cli.pages.format import reached
from tidewheel.cli.pages.workflows import parts
from tidewheel.cli.runs.result import words_of
from tidewheel.cli.session import is_said
from tidewheel.client.local_run import RunHereSettings
from tidewheel.config import CONTAINER_RUNNERS, CONTAINERS
from tidewheel.core.graph.definition import RunMode
from tidewheel.core.graph.findings import Findings, InvalidDefinition, nearest
from tidewheel.core.operator.definition import (
    SIP,
    NewRun,
    RunOptions,
    StoredDefinition,
    is_same_content,
)
from tidewheel.core.operator.registry import RunRequest, registry_text
from tidewheel.core.operator.views import RunView, UndoneKind
from tidewheel.core.queue.requests import PAGE_COUNT_MAX
from tidewheel.errors import AmbiguousRun, NotFound, Refused
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.ports.store import Store
from tidewheel.services.definitions.snapshot import Captured, check_start, restore
from tidewheel.wiring.stores import is_remote

if TYPE_CHECKING:
    from tidewheel.client.runs import Workflows
    from tidewheel.services.definitions.sip import StageSource

STAGES_TOLD_MAX = 5
FOLDERS_MAX = 1_000
TellOfStages = Callable[["StageSource"], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Says what is to be run: a definition that was read, or the name of a run."""

    captured: Captured | None
    folder: str
    options: RunOptions
    name: str
    is_new: bool
    given: RunOptions  # what counts for a run that is carried on: a default is not given
    registered: RunRequest | None = None  # what the same words would ask of the registry
    fail_on: tuple[UndoneKind, ...] = ()  # of a completed run
    other_name: str = ""  # given beside a name: the run that it stands for has its own
    sees: tuple[str, ...] | None = None  # what jobs of a new run may see; None: everything

    @property
    def is_another(self) -> bool:
        """Says whether a name is not to mean a run that exists."""
        return self.is_new or bool(self.other_name)

    @property
    def words(self) -> str:
        """Returns a digest of the call; the result of a run is owed to the same call."""
        if self.captured is not None:
            variables = self.captured.definition.variables
            return words_of(self.folder, self.options, variables)
        variables = "" if self.registered is None else self.registered.parameters_text
        return words_of(self.name, self.options, variables)

    @property
    def request(self) -> str | None:
        """Returns the parameters if this is a SIP definition, else None."""
        is_sip = self.captured is not None and self.captured.definition.kind == SIP
        return self.options.parameters if is_sip else None


def named_request(path: Path) -> RunRequest | None:
    """Returns the request for a registered workflow of this name; None if no workflow can be
    called so."""
    if (found := possible_name(path)) is None:
        return None
    workflow, version = found
    return RunRequest(workflow=workflow, version=version, code_trusted=True)


def unknown_name(name: str, known: Iterable[str] = ()) -> Refused:
    """Returns the refusal of a word that names nothing, with the nearest of the known names and
    of the folders beside the one that it would name."""
    near = nearest(name, [*known, *_folders_beside(name)])
    advice = (
        f"did you mean {near!r}?"
        if near is not None
        else "give a folder with a flow.cylc, a file, a run (see tidewheel runs) or a "
        "registered workflow (see tidewheel workflows)"
    )
    return Refused(
        f"there is neither a folder, nor a run, nor a registered workflow {name!r}; {advice}"
    )


def _folders_beside(name: str) -> list[str]:
    """Returns the folders with a definition, written as the name is, that it may mean."""
    from tidewheel.formats.flow_cylc.source_loader import FLOW_FILE

    with suppress(OSError):
        found = islice(Path(name).parent.iterdir(), FOLDERS_MAX)
        return [str(one) for one in found if (one / FLOW_FILE).is_file()]
    return []


async def found_run(
    find: Callable[[str], Awaitable[RunView]], wanted: Wanted
) -> RunView | Refused:
    """Returns the run that the words may mean, or a refusal which says why there is none.

    A caller who gives parameters means no run that exists.
    """
    asked = wanted.registered
    if asked is not None and asked.parameters:
        return unknown_name(wanted.name)
    try:
        return await find(wanted.name)
    except AmbiguousRun as several:
        return several
    except NotFound:
        return unknown_name(wanted.name)


def refuse_another(run: RunView, wanted: Wanted) -> None:
    """Raises Refused if a run was named to be resumed, with an option that starts another."""
    if wanted.is_another:
        option = "--new" if wanted.is_new else "--run-name"
        raise Refused(
            f"{run.name} is a run, and {option} starts another one; give the folder, file or "
            f"registered workflow, or leave {option} out to resume {run.name}"
        )


def is_exactly(run: RunView | Refused, text: str) -> TypeGuard[RunView]:
    """Says whether a text names this very run, not only its workflow or a part of its name."""
    return not isinstance(run, Refused) and text in (run.name, str(run.number))


async def the_run(
    found: RunView | Refused, wanted: Wanted, workflows: Callable[[], Awaitable[Iterable[str]]]
) -> RunView:
    """Returns the run that was found; raises the refusal, with the nearest name of a workflow,
    if there is none."""
    if not isinstance(found, Refused):
        return found
    if isinstance(found, AmbiguousRun):
        raise found
    raise unknown_name(wanted.name, await workflows())


# ---- in this process ----


async def registered_here(store: Store, wanted: Wanted, tell: TellOfStages) -> Wanted | None:
    """Returns what is wanted with the registered definition in place of its name.

    None if no workflow of this name is registered. ``tell`` is called with the stages of a SIP
    definition.
    """
    asked = wanted.registered
    if asked is None or not await _is_registered(store, asked.workflow):
        return None
    from tidewheel.client.runs import meant_by
    from tidewheel.services.registry.service import request_run

    async def versions_of(name: str) -> Sequence[str]:
        return [one.version for one in await store.workflows(name, PAGE_COUNT_MAX)]

    workflow, version = await meant_by(str(asked), versions_of)
    asked = replace(asked, workflow=workflow, version=version)
    findings = Findings()
    new, definition = await request_run(store, asked, findings)
    if definition.kind == SIP:
        _refuse_unused(asked, findings)
        stages = restore(definition, new.options, Path()).stages
        assert stages is not None
        tell(stages)
    return replace(
        wanted,
        captured=Captured(definition, ()),
        folder=new.folder,
        options=new.options,
        name=asked.name,
        sees=new.sees,
        # The variables of a template are no part of what a run can be found by.
        is_new=wanted.is_new or (definition.kind != SIP and bool(asked.parameters)),
    )


async def _is_registered(store: Store, name: str) -> bool:
    """Says whether a workflow is registered under a name, or with the last part as version."""
    names = {name, name.rpartition("/")[0] or name}
    return any([await store.workflows(one, 1) for one in names])


def _refuse_unused(asked: RunRequest, findings: Findings) -> None:
    """Raises InvalidDefinition if a parameter that the user gave is not used anywhere."""
    from tidewheel.formats.sip.parameters import refused_unused

    if refused := refused_unused(findings):
        raise InvalidDefinition(str(asked), refused)


async def tell_of_namesake(store: Store, wanted: Wanted) -> None:
    """Tells the user if a registered workflow has the name of the path that is run."""
    if asked := wanted.registered:
        found = await store.workflows(asked.workflow)
        if any(asked.version in ("", one.version) for one in found):
            _tell_of_path(asked)


def _tell_of_path(asked: RunRequest) -> None:
    note(
        f"this runs the file or folder {safe(asked)}, not the registered workflow; to run "
        "the registered workflow, repeat the command in another folder"
    )


# ---- through a server ----


async def tell_of_namesake_far(workflows: Workflows, wanted: Wanted) -> None:
    """Tells the user if a server has registered a workflow with the name of the path.

    One that the user may not see is not mentioned.
    """
    if wanted.registered is not None:
        with suppress(Refused):
            await workflows.show(str(wanted.registered))
            _tell_of_path(wanted.registered)


class Origin(NamedTuple):
    """Holds the properties by which earlier runs of a registered workflow are found."""

    folder: str
    request: str | None  # of a SIP definition the parameters; with others it is another run
    is_new: bool  # whether none that was stopped can be meant


async def registered_far(
    workflows: Workflows, asked: RunRequest
) -> tuple[Origin, RunRequest] | None:
    """Returns how runs of a workflow at a server are found, and the request for a new one, with
    its version apart; None if it is not registered.

    Raises InvalidDefinition if a parameter that was given is not used anywhere.
    """
    try:
        found = await workflows.show(str(asked))
    except NotFound:  # also from a server that has no registry
        return None
    reference = f"{found['name']}/{found['version']}"
    is_sip = found["kind"] == SIP
    if is_sip:
        from tidewheel.formats.sip.parameters import report_unused

        findings = Findings()
        declared = parts(found, "parameters")
        known = [str(one["name"]) for one in declared]
        ids = {str(stage) for one in declared for stage in one["stages"]}
        report_unused(asked.parameters, known, ids, findings)
        _refuse_unused(asked, findings)
    request = asked.parameters_text if is_sip else None
    is_new = not is_sip and bool(asked.parameters)
    if asked.workflow != found["name"]:  # its last part is a version
        asked = replace(asked, workflow=str(found["name"]), version=str(found["version"]))
    return Origin(registry_text(reference), request, is_new), asked


# ---- from the words of the command line ----


def wanted_from(definition: Definition, options: dict[str, Any]) -> Wanted | int:
    """Returns what the command line asks for, or the exit status if the definition has
    errors."""
    given = _options(definition, options)
    wanted = Wanted(
        None,
        "",
        given,
        str(definition.path),
        is_new=options["is_new"],
        given=given if is_said("mode") else replace(given, mode=""),
        registered=named_request(definition.path),
        fail_on=options["fail_on"],
    )
    if not definition.path.exists():
        return _wanted_by_name(definition, wanted, options["name"])
    findings = Findings()
    loaded, captured, stages = definition.load_for_run(given, findings)
    is_near = not is_remote(options["store"])  # else the server says what is known there
    if is_near and loaded.graph is not None and given.mode == RunMode.LIVE:
        check_places_here(loaded.graph, findings)
    if loaded.graph is not None:
        check_start(loaded.graph, given)  # now: of a stored run they are fixed
    if captured is None or findings.has_errors:
        return refuse(
            findings, loaded.source, as_json=definition.as_json, left="nothing was started"
        )
    if not definition.as_json:
        note_findings(findings, loaded.source)
    if captured.too_large:
        names = ", ".join(captured.too_large[:3])
        note(
            "these files are too large to be stored with the run, and stay where they are: "
            f"{names}"
        )
    if stages is not None and is_near:
        tell_of_needs(stages, settings_here(options))
    folder = str(definition.path.resolve())
    return replace(wanted, captured=captured, folder=folder, name=options["name"])


def _wanted_by_name(definition: Definition, wanted: Wanted, name: str) -> Wanted:
    asked = wanted.registered
    if definition.is_python or definition.is_sip:
        raise Refused(f"there is no file or folder {definition.path}")
    wanted = replace(wanted, other_name=name)
    findings = Findings()
    parameters = definition.variables(findings)
    if findings.has_errors:
        raise InvalidDefinition(str(definition.path), findings.sorted())
    if asked is None:
        if parameters:
            raise Refused(
                f"there is no file or folder {definition.path}; if it is a run, it keeps its "
                "variables: leave out -s, -z, -S, -p and -P, or change the variables: "
                "tidewheel reload RUN -s NAME=VALUE"
            )
        return wanted
    asked = replace(asked, parameters=parameters, options=wanted.options, name=name)
    return replace(wanted, registered=asked)


def tell_of_needs(stages: StageSource, settings: RunHereSettings) -> None:
    """Tells which stages would wait, as nothing here can run them, until another worker
    takes them."""
    from tidewheel.config import EVERYWHERE, read_allowances
    from tidewheel.scheduler.container_stage import (
        asked_of_workers,
        stages_denied,
        stages_without,
    )

    for runner, names in stages_without(stages, settings.runners).items():
        option = CONTAINER_RUNNERS[0] if runner == CONTAINERS else runner
        note(
            "this process runs no containers; these stages need them, and wait for another "
            f"worker unless you add --runner {option}: {_some(names)}"
        )
    allowed = read_allowances(settings.allow_compose).get(EVERYWHERE, frozenset())
    for denied, names in stages_denied(stages, allowed).items():
        say_so = " ".join(f"--allow-compose {one}" for one in denied)
        note(
            f"this process does not allow {', '.join(denied)}; these stages ask for it, and "
            f"wait for another worker unless you add {say_so}: {_some(names)}"
        )
    assert settings.capacity is not None, "the options say it"
    short: dict[str, list[str]] = {}
    for stage in stages.parameters.definition.stages:
        asked = asked_of_workers(stages, stage)
        if stage.is_on and (options := lacking(asked, settings.capacity)):
            short.setdefault(options, []).append(stage.id)
    for options, names in short.items():
        note(
            "these stages need more than this process offers, and wait for another worker "
            f"unless you add {options}: {_some(names)}"
        )


def _some(names: Sequence[str]) -> str:
    more = len(names) - STAGES_TOLD_MAX
    return ", ".join(names[:STAGES_TOLD_MAX]) + (f" and {more} more" if more > 0 else "")


def _options(definition: Definition, options: dict[str, Any]) -> RunOptions:
    # Bad JSON of parameters is told when the definition is read.
    given = definition.variables(Findings()) if definition.is_sip else {}
    own = {one.name: options[one.name] for one in fields(RunOptions) if one.name in options}
    return RunOptions(
        **own,
        compat=definition.compat or "",
        initial=definition.icp,
        final=definition.fcp,
        now=time.time_ns() / 1e9,
        parameters=json.dumps(given, default=str, sort_keys=True) if given else "",
    )


def settings_here(options: dict[str, Any]) -> RunHereSettings:
    own = {name: options[name] for name in ("slots", "tie_jobs", "trigger_log")}
    return RunHereSettings(**own, **offered(options))


# ---- which run is meant ----


class Chosen(NamedTuple):
    """Holds the run that is meant: to be driven or followed, or only its result to be told."""

    run: RunView
    is_new: bool = False
    is_ours: bool = False  # begun in the same words, by a process that was killed
    is_over: bool = False  # it has ended, and its result is owed


def new_run(wanted: Wanted, definition: StoredDefinition, folder: str, name: str) -> NewRun:
    """Returns the run to begin with a definition that came from a folder."""
    return NewRun(
        workflow=definition.workflow,
        definition=definition.digest,
        name=name,
        options=wanted.options,
        folder=folder,
        sees=wanted.sees,
    )


def tell_of_changed_folder(
    run: RunView, folder: str, definition: StoredDefinition, option: str = ""
) -> None:
    """Tells the user if the folder of a run has changed since its definition was stored."""
    from tidewheel.services.definition_sync import differs_from_folder

    if folder and differs_from_folder(definition, Path(folder)):
        text = (
            f"{folder} has changed. {run.name} continues with the old definition; to apply "
            f"the changes once it runs: tidewheel reload {quote(run.name)}; to start another "
            f"run: tidewheel run {quote(folder)} --new"
        )
        note(reached(text, run.name, option))


def tell_of_change(run: RunView, digest: str, when: str = "", option: str = "") -> None:
    """Tells the user if a run goes on with an older definition, and how it gets the new one."""
    if not is_same_content(run.definition, digest):
        text = (
            f"the definition has changed. {run.name} continues with the old one; to apply the "
            f"changes{when}: tidewheel reload {quote(run.name)}"
        )
        note(reached(text, run.name, option))
