"""Keeps definitions of runs by their content, and makes graphs of them without their folder.

What is kept is the text as it was rendered, so that a template which asks the clock or the
environment says the same at every restart, and the files that lay beside it, so that jobs find
their scripts on a machine that has never seen the folder. Options are kept with the run.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidewheel.core.graph.checks.names import IMPLICIT_TASKS, RUN_WITHOUT_JOB
from tidewheel.core.graph.definition import POLICIES, TIDEWHEEL
from tidewheel.core.graph.findings import Finding, Findings, InvalidDefinition, Severity
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.definition import (
    FLOW_CYLC,
    PYTHON,
    PYTHON_SUFFIX,
    SIP,
    RunOptions,
    StoredDefinition,
    StoredFile,
    check_options,
    sealed,
)
from tidewheel.core.operator.selection import read_point, select
from tidewheel.core.sched.step import new_pool
from tidewheel.errors import NotFound, Refused
from tidewheel.formats.cycling.reader import CyclingReader
from tidewheel.formats.flow_cylc.node_checks import BAD_HANDLER
from tidewheel.formats.flow_cylc.settings import FlowSettings
from tidewheel.formats.flow_cylc.source_loader import FLOW_FILE, SourceOptions
from tidewheel.formats.flow_cylc.source_text import SourceText
from tidewheel.formats.flow_cylc.template_variables import VariableTexts
from tidewheel.formats.flow_cylc.workflow import (
    UNKNOWN_TASK,
    LoadedWorkflow,
    LoadOptions,
    PointTexts,
    folders_run,
    load_source,
    load_workflow,
)
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.runners.job_directory import write_whole

if TYPE_CHECKING:
    from tidewheel.services.definitions.sip import StageSource, ValidatedSip

FILE_BYTES_MAX = 1024 * 1024
FOLDER_BYTES_MAX = 32 * 1024 * 1024
FILES_MAX = 10_000
# What tools leave, and what is never part of a workflow.
LEFT_OUT = frozenset({".git", ".svn", "__pycache__", ".venv"})
MADE_BY_RUNS = frozenset({"log", "share", "work"})  # at the top of their folder


# Mistakes with which a run works all the same: a run that has begun goes on with them.
_JUDGED_AT_FIRST = frozenset({IMPLICIT_TASKS, BAD_HANDLER, RUN_WITHOUT_JOB, UNKNOWN_TASK})


# Finds, beside what is wrong with the definition itself, what keeps a run from beginning.
GraphCheck = Callable[[RunOptions, Graph, Findings], None]


@dataclass(frozen=True, slots=True)
class Captured:
    """Holds a definition, and names the files that are too large to be kept with it."""

    definition: StoredDefinition
    too_large: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredDefinition:
    """Holds what a run needs of a stored definition that was read again."""

    graph: Graph
    settings: FlowSettings
    reader: CyclingReader
    stages: StageSource | None = None  # of a SIP definition
    findings: tuple[Finding, ...] = ()  # of a flow.cylc at the lines of its rendered text


def load_options(options: RunOptions, name: str = "") -> LoadOptions:
    """Returns how a definition is read for a run with these options."""
    bounds = ("initial", "final", "start", "stop")
    return LoadOptions(
        now=options.now,
        name=name,
        points=PointTexts(**{one: getattr(options, one) for one in bounds}),
        policy=POLICIES[options.compat] if options.compat else TIDEWHEEL,
    )


def capture(
    loaded: LoadedWorkflow,
    path: Path,
    variables: Mapping[str, object] = MappingProxyType({}),
    *,
    trusted: bool = False,
) -> Captured:
    """Returns everything that a run needs of a definition that was read from ``path``.

    Template variables are kept as people write them, for a text that is rendered again.
    ``trusted`` says whether code of the definition may run then.
    """
    texts = [f"{name}={value!r}" for name, value in variables.items()]
    return _captured(loaded, path, json.dumps(texts), trusted=trusted)


def _captured(loaded: LoadedWorkflow, path: Path, variables: str, *, trusted: bool) -> Captured:
    assert loaded.workflow is not None, "a definition with errors is not kept"
    text = loaded.source.text
    files, too_large = files_of(path.parent if path.is_file() else path)
    if loaded.kept_text is not None:
        assert loaded.graph is not None
        text, belongs = loaded.kept_text(), belongs_to_python(loaded.graph)
        files = [one for one in files if belongs(one.path) and one.path != FLOW_FILE]
        files = sorted((*files, StoredFile(FLOW_FILE, text.encode())), key=lambda one: one.path)
        too_large = [one for one in too_large if belongs(one)]
    definition = sealed(
        StoredDefinition(
            digest="",
            workflow=loaded.workflow.name,
            text=text,
            variables=variables,
            files=tuple(files),
        ),
        trusted=trusted,
    )
    return Captured(definition, tuple(too_large))


def belongs_to_python(graph: Graph) -> Callable[[str], bool]:
    """Returns what says whether a path belongs to a definition in Python.

    It lies in a folder of programs: only the file, the modules beside it, and the folders of
    which its tasks are runs belong to it.
    """
    folders = tuple(folders_run(graph))
    return lambda path: path.endswith(PYTHON_SUFFIX) or path.startswith(folders)


def files_of(folder: Path) -> tuple[list[StoredFile], list[str]]:
    """Returns the files of a folder, and the names of those that are too large to be kept."""
    kept: list[StoredFile] = []
    too_large: list[str] = []
    total = 0
    for path in _walk(folder):
        relative = PurePosixPath(path.relative_to(folder)).as_posix()
        size = path.stat().st_size
        if size > FILE_BYTES_MAX or total + size > FOLDER_BYTES_MAX or len(kept) >= FILES_MAX:
            too_large.append(relative)
            continue
        total += size
        kept.append(StoredFile(relative, path.read_bytes(), os.access(path, os.X_OK)))
    return kept, too_large


def _walk(folder: Path) -> Iterator[Path]:
    """Yields plain files in a steady order; links that lead out of the folder are left out."""
    inside = folder.resolve()
    for where, folders, names in os.walk(folder):
        passed_over = LEFT_OUT | MADE_BY_RUNS if where == str(folder) else LEFT_OUT
        folders[:] = sorted(set(folders) - passed_over)
        for name in sorted(set(names) - passed_over):
            path = Path(where, name)
            if path.is_file() and path.resolve().is_relative_to(inside):
                yield path


def unpack(definition: StoredDefinition, directory: Path, *, anew: bool = False) -> None:
    """Puts the files of a definition where its jobs look for them.

    A file that is there stays, since jobs may have changed it, unless the definition is a new
    one (``anew``): then its content and whether it can be executed are those of the definition.
    """
    for one in definition.files:
        path = directory / one.path
        if not path.resolve().is_relative_to(directory.resolve()):
            raise Refused(f"the definition has a file outside of its folder: {one.path!r}")
        if path.is_file() and (not anew or _is_same(path, one)):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whole: half a file would be taken for one that jobs have changed.
        write_whole(path, one.content, mode=0o700 if one.executable else 0o600)


def _is_same(path: Path, file: StoredFile) -> bool:
    is_executable = bool(path.stat().st_mode & stat.S_IXUSR)
    return is_executable == file.executable and path.read_bytes() == file.content


def restore(
    definition: StoredDefinition, options: RunOptions, directory: Path, *, is_new: bool = False
) -> RestoredDefinition:
    """Returns graph and settings of a stored definition; ``directory`` is that of its run.

    Raises Refused if it cannot be used with these options. A run goes on with what was accepted
    when it began, even if it was accepted by an earlier version; ``is_new``: this is a
    definition to which a run is about to change.
    """
    findings = Findings()
    loaded, stages = _load_stored(definition, options, directory, findings, is_new=is_new)
    errors = [one for one in findings if one.severity is Severity.ERROR]
    wrong = [one.message for one in errors if is_new or one.code not in _JUDGED_AT_FIRST]
    if loaded.graph is None or loaded.reader is None or wrong:
        raise Refused(
            f"the stored definition of {definition.workflow} cannot be used with these "
            f"options: {'; '.join(wrong[:3])}"
        )
    return RestoredDefinition(
        graph=loaded.graph,
        settings=loaded.settings,
        reader=loaded.reader,
        stages=stages,
        findings=tuple(findings.sorted()),
    )


def check_definition(
    definition: StoredDefinition,
    options: RunOptions,
    check: GraphCheck | None = None,
) -> None:
    """Raises InvalidDefinition, with all findings, if no run with these options can begin."""
    findings = Findings()
    with TemporaryDirectory() as folder:  # it has none of its own yet
        loaded, _ = _load_stored(definition, options, Path(folder), findings, is_new=True)
    check_new(definition.kind, options, loaded.graph, findings, check)
    if loaded.graph is None or findings.has_errors:
        raise InvalidDefinition(definition.workflow, findings.sorted())


def check_new(
    kind: str,
    options: RunOptions,
    graph: Graph | None,
    findings: Findings,
    check: GraphCheck | None = None,
) -> None:
    """Judges the options of a new run, whose definition has just been read.

    Raises Refused for those that the run could never begin with, or would ignore: they are
    kept with it. What ``check`` says is added to the findings.
    """
    check_options(kind, options)
    if graph is not None:
        check_start(graph, options)
        if check is not None:
            check(options, graph, findings)


def check_start(graph: Graph, options: RunOptions) -> None:
    """Raises Refused for tasks and points in the options that the graph does not have."""
    if options.start_tasks:
        select(new_pool(graph), options.start_tasks)
    if options.hold_after:
        read_point(graph.cycling, options.hold_after)


def _load_stored(
    definition: StoredDefinition,
    options: RunOptions,
    directory: Path,
    findings: Findings,
    *,
    is_new: bool,
) -> tuple[LoadedWorkflow, StageSource | None]:
    if definition.kind == SIP:
        from tidewheel.formats.sip.validation import ELEMENTS_CHECKED_MAX
        from tidewheel.services.definitions import sip

        request = sip.read_request(options.parameters)
        files = sip.source_of(definition.text, definition.files)
        checked_max = ELEMENTS_CHECKED_MAX if is_new else 0  # else it was done before
        validated = sip.load_sip(
            files, directory, request, findings, elements_checked_max=checked_max
        )
        return validated.loaded, validated.stages
    how = load_options(options, definition.workflow)
    if definition.kind == PYTHON:
        unpack(definition, directory)
        return _load_python(directory / definition.text, how, findings), None
    lines = definition.text.splitlines()
    source = SourceText.as_written(directory, (FLOW_CYLC,), lines)
    return load_source(source, how, findings), None


@contextmanager
def load_flow(
    definition: StoredDefinition,
    options: RunOptions,
    findings: Findings,
    parameters: Mapping[str, object],
    *,
    code_trusted: bool,
) -> Iterator[tuple[LoadedWorkflow, Path]]:
    """Loads a flow.cylc as it was written, in a folder that holds nothing else.

    Code of the definition runs only if the caller trusts it (``code_trusted``), and the one who
    brought the definition was trusted, too.
    """
    source = SourceOptions(
        variables=VariableTexts(values=parameters),
        workflow_name=definition.workflow,
        code_trusted=code_trusted and definition.is_trusted,
    )
    how = replace(load_options(options, definition.workflow), source=source)
    with TemporaryDirectory() as folder:
        unpack(definition, Path(folder))
        yield load_workflow(Path(folder), how, findings), Path(folder)


def check_same_workflow(new: StoredDefinition, old: StoredDefinition) -> None:
    """Raises NotFound for a definition that was not saved for the workflow of the old one: who
    knows its digest may not see it for that."""
    if new.workflow != old.workflow:
        raise NotFound("definition", new.digest)


def reread(old: StoredDefinition, options: RunOptions, directory: Path) -> StoredDefinition:
    """Returns the definition as it lies in the run's directory now; jobs may have changed it.

    Its code runs only if the old definition was trusted: it came from its owner's folder.
    Raises InvalidDefinition if it has errors now.
    """
    findings = Findings()
    if old.kind == SIP:
        return read_sip(directory / old.text, options, findings, old.workflow).definition
    how = load_options(options, old.workflow)
    if old.kind == PYTHON:
        path = directory / old.text
        loaded = _load_python(path, how, findings)
    else:
        path = directory
        variables = VariableTexts(settings=tuple(json.loads(old.variables)))
        source = SourceOptions(
            variables=variables, workflow_name=old.workflow, code_trusted=old.is_trusted
        )
        loaded = load_workflow(path, replace(how, source=source), findings)
    if loaded.graph is None or findings.has_errors:
        raise InvalidDefinition(old.workflow, findings)
    return _captured(loaded, path, old.variables, trusted=old.is_trusted).definition


def read_sip(path: Path, options: RunOptions, findings: Findings, workflow: str) -> Captured:
    """Returns a SIP definition as its file is now, to be kept.

    Raises InvalidDefinition if no run with the parameters of these options could begin.
    """
    from tidewheel.services.definitions import sip

    request = sip.read_request(options.parameters)
    validated = sip.load_sip_request(path, request, findings)
    if validated.source is None or validated.stages is None or findings.has_errors:
        raise InvalidDefinition(workflow, findings)
    return captured_sip(validated, workflow)


def captured_sip(validated: ValidatedSip, workflow: str) -> Captured:
    """Returns everything that a run needs of a SIP definition that can run."""
    from tidewheel.services.definitions import sip

    assert validated.source is not None, "a definition with errors is not kept"
    return Captured(sealed(sip.stored_sip(validated.source, workflow)), ())


def _load_python(path: Path, how: LoadOptions, findings: Findings) -> LoadedWorkflow:
    from tidewheel.services.definitions.python import load_python_file

    return load_python_file(path, how, findings)
