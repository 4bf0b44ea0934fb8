"""Loads SIP definitions as `LoadedWorkflow`, the form that all definitions have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from shlex import quote
from typing import Any

from tidewheel.config import COMPOSE, CONTAINERS, SWARM
from tidewheel.core.graph.checks import check_workflow
from tidewheel.core.graph.compile import compile_workflow
from tidewheel.core.graph.definition import WorkflowDef
from tidewheel.core.graph.findings import WORKER_NEEDS, Findings, Position, Severity
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.definition import (
    RUN_DIRECTORY,
    SIP,
    StoredDefinition,
    StoredFile,
    stored_files,
)
from tidewheel.core.queue.resources import COMPOSE_2_LABEL, runner_label
from tidewheel.errors import BadSetting
from tidewheel.formats.cycling.reader import CyclingReader
from tidewheel.formats.flow_cylc.settings import FlowSettings, WorkflowEvents
from tidewheel.formats.flow_cylc.source_text import SourceText, origin
from tidewheel.formats.flow_cylc.template_variables import read_variables
from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow, LoadOptions, as_loaded
from tidewheel.formats.sip.bundle import read_folder
from tidewheel.formats.sip.definition import DefinitionText
from tidewheel.formats.sip.document import filled_text
from tidewheel.formats.sip.model import Stage
from tidewheel.formats.sip.parameters import REQUEST, ParameterSource, Values
from tidewheel.formats.sip.stage_folder import StageFolder
from tidewheel.formats.sip.stage_renderer import RenderedStage
from tidewheel.formats.sip.text_files import SipSource
from tidewheel.formats.sip.translation import workflow_of
from tidewheel.formats.sip.validation import ELEMENTS_CHECKED_MAX, Validation, validate
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.runners.containers.needs import (
    asked_of_host,
    compose_2_keys,
    externals,
    folders_of_job,
    handed_by_swarm,
    log_receivers,
    made_by_swarm,
    mounted_of_host,
    node_labels_of,
    nodes_named,
    published_ports,
    runner_for,
)
from tidewheel.runners.containers.placement import said_constraints
from tidewheel.runners.containers.stage_spec import node_labels
from tidewheel.runners.containers.swarm_keys import refused, swarm_troubles
from tidewheel.runners.shell.bash_syntax import bash_syntax_problem
from tidewheel.services.explain import label_option, node_options

# Scripts of stages are read by bash before any stage runs, so that a mistake has its line. It
# gives a warning, no error: the bash of the worker may be newer than the one here.

SCRIPTS_READ_MAX = 200  # of one definition; each costs a process
NAMED_MAX = 20  # of what must exist; the compose file has them all


def warn_of_scripts(validation: Validation) -> None:
    """Warns of each script that bash cannot read."""
    folders = validation.parameters.folders if validation.parameters is not None else {}
    scripts = [(one.stage, one.script) for one in folders.values() if one.script is not None]
    for stage, script in scripts[:SCRIPTS_READ_MAX]:
        problem = bash_syntax_problem(script.text)
        if problem is not None:
            validation.findings.warning(
                "script-syntax",
                f"stage {stage}: bash cannot read the script: {problem.words}",
                "the stage would fail before its first command; check that quotes, brackets, "
                "here-documents, if … fi and do … done are closed, here or in an earlier line",
                Position(script.path, problem.line),
            )


def note_needs(validation: Validation, source: SipSource) -> None:
    """Notes what each stage asks of its worker beyond what every worker with containers has,
    and where its containers find nothing at first."""
    folders = validation.parameters.folders if validation.parameters is not None else {}
    for stage, rendered in validation.rendered.items():
        compose = folders[stage].compose
        definition = validation.definition
        told = definition.stage(stage) if definition is not None else None
        asks_swarm = told is not None and told.is_for_swarm and rendered.compose is not None
        runner = runner_for(rendered.document, is_for_swarm=asks_swarm)
        is_for_swarm = runner == SWARM
        allow = asked_of_host(rendered.document, stage, is_for_swarm=is_for_swarm)
        place = Position(compose.path) if compose is not None else Position("")
        if allow:
            options = " ".join(f"--allow-compose {one}" for one in allow)
            needs = f"needs a worker that allows {', '.join(allow)}"
            seen = f"stage {stage} {needs} ({options})"
            hint = "start the worker with this option, or remove this key from the compose file"
            validation.findings.note(WORKER_NEEDS, seen, hint, place)
        newer = compose_2_keys(rendered.document, rendered.newer, is_for_swarm=is_for_swarm)
        if newer:
            keys = ", ".join(newer)
            seen = f"stage {stage} needs a worker with docker compose 2, because of {keys}"
            hint = f"such a worker offers the label {COMPOSE_2_LABEL}; or remove {keys}"
            validation.findings.note(WORKER_NEEDS, seen, hint, place)
        if told is not None and is_for_swarm:
            _note_swarm(told, rendered, place, validation.findings)
        for words in must_exist(rendered, stage, runner):
            hint = "tidewheel does not arrange this: without it, the stage fails"
            validation.findings.note(WORKER_NEEDS, f"stage {stage}: {words}", hint, place)
        _note_new_folders(folders[stage], rendered, source, validation.findings)
        if told is not None and told.is_on and rendered.compose is not None:
            _judge_for_swarm(told, rendered, place, validation)


def _note_new_folders(
    folder: StageFolder, rendered: RenderedStage, source: SipSource, findings: Findings
) -> None:
    """Notes which mounted folders are new and empty, and warns if files of the stage have such
    a name: it could succeed without having seen its data."""
    new, place = [], Position(folder.compose.path if folder.compose is not None else "")
    seen = f"stage {folder.stage}: containers find a new, empty folder at"
    for path, inner in folders_of_job(rendered.document).items():
        written, kept = "." if path == "." else f"./{path}", f"{folder.folder}/{path}"
        if kept in source.files or kept in source.folders:
            said = f"{seen} {inner} ({written}), not {kept}"
            own = f"${{{RUN_DIRECTORY}}}/{kept}:{inner}:ro"
            hint = f"put it into the image; or mount {own}, if the worker allows bind-mounts"
            findings.warning(WORKER_NEEDS, said, hint, place)
        else:
            new.append(f"{inner} ({written})")
    if new:
        hint = (
            "what they write is kept with the job; to let them read existing files, mount the "
            "full path"
        )
        findings.note(WORKER_NEEDS, f"{seen} {_listed(new)}", hint, place)


def must_exist(rendered: RenderedStage, stage: str, runner: str) -> list[str]:
    """Says what must be on the engine or Swarm before a stage runs, since nothing makes it."""
    found = [one.sentence(runner) for one in externals(rendered.document)]
    found += log_receivers(rendered.document)
    if ports := published_ports(rendered.document):
        found.append(
            f"{_ports_asked(ports)} {_HOSTS[runner]}; only one such stage can run at a time"
        )
    long = mounted_of_host(rendered.document, stage, is_long=True)
    if long and runner != SWARM:
        found.append(f"{_listed(long)} must exist {_HOSTS[runner]}")
    if runner == COMPOSE:
        return found
    nodes = (
        "each node that runs the stage"
        if runner == SWARM
        else "each Swarm node that runs the stage"
    )
    paths = mounted_of_host(rendered.document, stage, is_long=False)
    if runner == SWARM:
        paths = sorted({*paths, *long})
    if paths:
        found.append(f"{_listed(paths)} must exist on {nodes}")
    if labels := node_labels_of(rendered.document):
        found.append(_labels_asked(labels, is_for_swarm=runner == SWARM))
    where = "a node of the Swarm" if runner == SWARM else "on a Swarm, a node"
    found += [f"{where} must meet {one}" for one in nodes_named(rendered.document)]
    return found


_HOSTS = {
    COMPOSE: "on the host of the worker that runs the stage",
    SWARM: "on the nodes of the Swarm that runs the stage",
    CONTAINERS: "on the host of the worker, or the nodes of the Swarm, that runs the stage",
}


def _ports_asked(ports: Sequence[str]) -> str:
    return f"{'port' if len(ports) == 1 else 'ports'} {_listed(ports)} must be free"


def _labels_asked(labels: Sequence[str], *, is_for_swarm: bool) -> str:
    if len(labels) == 1:
        where = "a node of the Swarm" if is_for_swarm else "on a Swarm, a node"
        what, label = f"the label {labels[0]}", quote(labels[0])
    else:
        where = "nodes of the Swarm" if is_for_swarm else "on a Swarm, nodes"
        what, label = f"the labels {_listed(labels)}", "LABEL"
    return f"{where} must have {what} (docker node update --label-add {label} NODE)"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _note_swarm(
    stage: Stage, rendered: RenderedStage, place: Position, findings: Findings
) -> None:
    """Notes that only a worker for a Swarm takes a stage, and with which nodes."""
    asked = stage.asked()
    nodes = node_options(asked) if asked.flavours or asked.nodes > 1 else []
    options = " ".join([label_option(runner_label(SWARM)), *nodes])
    seen = f"stage {stage.id} needs a worker for a Swarm ({options})"
    hint = "or ask for one node, without a label"
    if handed := handed_by_swarm(rendered.document):
        what = ", ".join(map(str, handed))
        hint = f"only a Swarm has external secrets and configs: {what}"
    elif not stage.is_for_swarm:
        hint = f"only a Swarm has {made_by_swarm(rendered.document)}"
    if labels := stage.node_labels:
        hint = f"nodes of that Swarm must have the label {', '.join(labels)}; {hint}"
    findings.note(WORKER_NEEDS, seen, hint, place)


def _judge_for_swarm(
    stage: Stage, rendered: RenderedStage, place: Position, validation: Validation
) -> None:
    """Reports what no Swarm does of a compose file, if the stage is for a Swarm; else notes
    that it is for an engine alone."""
    labels = node_labels(stage.node_labels) if len(stage.node_labels) == 1 else []
    troubles = swarm_troubles(rendered.document, said_constraints(labels))
    handed = handed_by_swarm(rendered.document)
    if not stage.is_for_swarm and not handed:
        if found := refused(troubles):
            option = label_option(runner_label(COMPOSE))
            seen = f"stage {stage.id} needs a worker with a single container engine ({option})"
            hint = f"a Swarm cannot run it: {found[0].message}"
            at = rendered.places.get(found[0].path, place)
            validation.findings.note(WORKER_NEEDS, seen, hint, at)
        return
    for one in troubles:
        seen = f"{one.seen} (stage {stage.id})"
        at = next(
            (
                rendered.places[one.path[:length]]
                for length in range(len(one.path), 0, -1)
                if one.path[:length] in rendered.places
            ),
            place,
        )
        if one.is_refused:
            instead = ONE_ENGINE
            if handed:
                instead = f"remove {handed[0]}, which only a Swarm has"
            hint = f"{one.hint}; or {instead}"
            validation.obstacles.error(SWARM_KEY, seen, hint, at)
        else:
            validation.findings.warning(SWARM_KEY, seen, one.hint, at)


SWARM_KEY = "swarm-key"
ONE_ENGINE = "ask for one node, without a label: then one engine runs the stage"


# SIP definitions, as the commands about definitions want them.

# After a failure that nobody deals with there is nothing to wait for: a request is answered.
ENDS_BY_ITSELF = WorkflowEvents(stall_timeout_seconds=0.0)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Says whether a definition can be registered, and whether it can run."""

    validation: Validation
    is_request: bool  # validated with the parameters of a request, not for any

    def document(self, *, strict: bool) -> dict[str, bool]:
        registrable = self.validation.registrable and not (strict and self._is_warned())
        good = self.validation.runnable and not (strict and self._is_warned(of_request=True))
        return {"registrable": registrable, "runnable": registrable and good}

    def sentence(self, *, strict: bool) -> str:
        said = self.document(strict=strict)
        if not said["registrable"]:
            return "it cannot be registered"
        if not said["runnable"]:
            with_these = " with these parameters" if self.is_request else ""
            return f"it can be registered, but it cannot run{with_these}"
        notes = [one.message for one in self.validation.findings if one.code == WORKER_NEEDS]
        needs = f"; {'; '.join(notes)}" if notes else ""
        if self.is_request:
            return f"it can be registered, and run with these parameters{needs}"
        needed = [one.name for one in self.validation.specs if one.is_needed]
        given = f"; each request must give {', '.join(needed)}" if needed else ""
        return f"it can be registered and run{given}{needs}"

    @property
    def size(self) -> dict[str, int]:
        """Says how many parts a definition has, in the words of its format."""
        definition = self.validation.definition
        stages = definition.stages if definition is not None else ()
        return {
            "stages": len(stages),
            "dependencies": sum(len(one.dependencies) for one in stages),
        }

    def _is_warned(self, *, of_request: bool = False) -> bool:
        """Says whether there are warnings about the definition, or (`of_request`) the request.
        Those about the request do not keep a definition from being registered."""
        return any(
            one.severity is Severity.WARNING and (one.position == REQUEST) == of_request
            for one in self.validation.findings
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSource:
    """Holds what the stages of a run are rendered from.

    A stage that needs values of earlier stages is rendered when those have ended.
    """

    parameters: ParameterSource
    request: Values
    rendered: Mapping[str, RenderedStage]  # with what was known when the run was asked for

    def is_late(self, name: str) -> bool:
        """Says whether a task is a stage that can be rendered only when the stages before it
        have ended, or an element of one."""
        part = self.parameters.definition.part(name)
        if part is not None and part[0].is_mapped:
            return True
        found = self.rendered.get(name)
        return found is not None and not found.is_whole

    @property
    def in_containers(self) -> frozenset[str]:
        """Returns the nodes of stages with a compose file."""
        folders = self.parameters.folders
        return frozenset(
            stage.node
            for stage in self.parameters.definition.stages
            if stage.id in folders and folders[stage.id].compose is not None and stage.is_on
        )

    def whole(self, stage: str) -> RenderedStage | None:
        return None if self.is_late(stage) else self.rendered.get(stage)


@dataclass(frozen=True, slots=True)
class ValidatedSip:
    """Holds a SIP definition in the form that all definitions have, with its verdicts.

    Where its file could not be read, all but ``loaded`` is None.
    """

    loaded: LoadedWorkflow
    verdicts: Verdicts | None = None
    validation: Validation | None = field(default=None, compare=False)
    source: SipSource | None = field(default=None, compare=False)
    request: Values = field(default_factory=dict)

    @property
    def stages(self) -> StageSource | None:
        validated = self.validation
        if validated is None or validated.parameters is None or not validated.runnable:
            return None
        return StageSource(
            parameters=validated.parameters, request=self.request, rendered=validated.rendered
        )


def load_sip_file(path: Path, how: LoadOptions, findings: Findings) -> ValidatedSip:
    """Reads, compiles and checks a file; template variables are the parameters of a request."""
    given: Any = read_variables(how.source.variables, findings) or None  # validated below
    return load_sip_request(path, given, findings, is_typed=True)


def load_sip_request(
    path: Path, request: Values | None, findings: Findings, *, is_typed: bool = False
) -> ValidatedSip:
    """Loads a definition file for a request, or for none (None), which lacks no parameter.

    ``is_typed``: somebody has just typed the request, and can correct a parameter that changes
    nothing.
    """
    refused = Findings()
    source = _read(path, refused)
    if source is None:
        for one in refused:
            findings.add(one)
        nothing = SourceText(path.parent, (path.name,), [], [])
        return ValidatedSip(LoadedWorkflow(source=nothing, settings=FlowSettings()))
    validation = validate(source, request)
    for one in refused:  # files that are not kept: without them it is another definition
        validation.findings.add(one)
    if is_typed:
        validation.refuse_unused()
    warn_of_scripts(validation)
    return _validated(validation, source, path.parent, request, findings)


def load_sip(
    source: SipSource,
    folder: Path,
    request: Values | None,
    findings: Findings,
    *,
    elements_checked_max: int = ELEMENTS_CHECKED_MAX,
) -> ValidatedSip:
    """Loads a definition from the content of its files; ``folder`` is where they lie or lay.

    Scripts are not checked again: bash read them when the definition came.
    """
    validation = validate(source, request, elements_checked_max)
    return _validated(validation, source, folder, request, findings)


def _validated(
    validation: Validation,
    source: SipSource,
    folder: Path,
    request: Values | None,
    findings: Findings,
) -> ValidatedSip:
    note_needs(validation, source)
    for one in validation.all_findings():
        findings.add(one)
    text = _source_text(folder, source, validation.text)
    found = compiled(validation, findings)
    loaded = LoadedWorkflow(source=text, settings=FlowSettings())
    if found is not None:
        loaded = as_loaded(text, *found, CyclingReader(), ENDS_BY_ITSELF)
    return ValidatedSip(
        loaded,
        Verdicts(validation, is_request=request is not None),
        validation,
        source,
        {} if request is None else request,
    )


def read_request(parameters: str) -> Values:
    """Returns the parameters of a run from the JSON that is kept with it; "" means none."""
    if not parameters:
        return {}
    try:
        found = json.loads(parameters)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadSetting("parameters", parameters[:100], 'a JSON object: {"name": value}')
    return found


def stored_sip(source: SipSource, workflow: str) -> StoredDefinition:
    """Returns what is stored of a definition: its files, nothing that a request makes of it."""
    return StoredDefinition(
        digest="",
        workflow=workflow,
        kind=SIP,
        text=source.file,
        files=stored_files(source.files, source.executable),
    )


def compiled(validation: Validation, findings: Findings) -> tuple[WorkflowDef, Graph] | None:
    """Returns definition and graph of what was validated; None if it cannot be registered."""
    if validation.definition is None or not validation.registrable:
        return None
    workflow, _ = workflow_of(validation.definition, validation.rendered)
    graph = compile_workflow(workflow, findings)
    check_workflow(workflow, graph, findings)
    return workflow, graph


def source_of(file: str, files: Iterable[StoredFile]) -> SipSource:
    """Returns a SIP definition from its stored files; ``file`` is the one that defines it."""
    kept = tuple(files)
    return SipSource(
        file=file,
        files={one.path: one.content for one in kept},
        executable=frozenset(one.path for one in kept if one.executable),
    )


def sip_text_as_written(path: Path, findings: Findings) -> SourceText | None:
    source = _read(path, findings)
    if source is None:
        return None
    written = source.files[source.file].decode(errors="replace")
    return _source_text(path.parent, source, DefinitionText(None, written))


def _read(path: Path, findings: Findings) -> SipSource | None:
    if path.is_file():
        return read_folder(path, findings)
    if path.is_dir():
        findings.error("no-such-file", f"{path} is a folder", "name the definition file in it")
    else:
        findings.error("no-such-file", f"there is no file {path}")
    return None


def _source_text(folder: Path, source: SipSource, text: DefinitionText) -> SourceText:
    files = (source.file, *(name for name in source.files if name != source.file))
    if text.rendered is None:
        lines = text.text.removesuffix("\n").split("\n")
        return SourceText.as_written(folder, files, lines)
    rendered = text.rendered
    lines = [filled_text(line, rendered.values).replace("\n", "\\n") for line in rendered.lines]
    kept = [number for number, line in enumerate(lines) if line.strip()]
    return SourceText(
        folder,
        files,
        [lines[number] for number in kept],
        [origin(0, rendered.origins[number]) for number in kept],
        templated=True,
    )
