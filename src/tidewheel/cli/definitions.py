"""Reads definitions for commands: the options they share, the definition, and its findings."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidewheel.cli.output import note
from tidewheel.cli.session import (
    AS_JSON,
    Session,
    examples_text,
    option,
    options,
    refuse_said,
    stop_writing,
)
from tidewheel.core.graph.findings import Findings, InvalidDefinition
from tidewheel.core.operator.definition import (
    FLOW_CYLC,
    IDLE_OPTIONS,
    PYTHON,
    SIP,
    kinds_with,
    not_for,
)
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tidewheel.client import AsyncClient
    from tidewheel.core.operator.definition import RunOptions, StoredDefinition
    from tidewheel.formats.flow_cylc.source_loader import SourceOptions
    from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow, LoadOptions
    from tidewheel.services.definitions.sip import StageSource, Verdicts
    from tidewheel.services.definitions.snapshot import Captured

HERE = "."
# The fields of a Definition that are options of every command about one.
_SAID = (
    *("settings", "lists", "set_file", "parameter_texts", "parameter_file"),
    *("compat", "icp", "fcp"),
)
_CALLED = {"initial": "icp", "final": "fcp"}  # where a parameter is not called as the option
SLOW_SECONDS = 5.0  # until a Python file that is being executed is told
PATH = click.Path(path_type=Path)


class UnknownName(Refused):
    """A name that the definition does not have."""

    code = "unknown_name"

    def __init__(self, kind: str, name: str, known: Iterable[str], advice: str) -> None:
        from tidewheel.core.graph.findings import nearest

        near = nearest(name, known)
        do = f"did you mean {near!r}?" if near else advice
        super().__init__(f"there is no {kind} {name!r} in this workflow; {do}")


class Definition(NamedTuple):
    """Holds which definition the command line names, and the options that say how to read
    it."""

    path: Path
    as_json: bool
    settings: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    set_file: Path | None = None
    parameter_texts: tuple[str, ...] = ()
    parameter_file: Path | None = None
    compat: str | None = None
    icp: str = ""
    fcp: str = ""
    registered: StoredDefinition | None = None  # what lies at `path`, if it is of a registry
    origin: str = ""  # of what is registered: where its runs come from, in words

    def source_options(self) -> SourceOptions:
        from tidewheel.formats.flow_cylc.source_loader import SourceOptions
        from tidewheel.formats.flow_cylc.template_variables import VariableTexts

        texts = VariableTexts(
            values=self.parameters(),
            settings=self.settings,
            lists=self.lists,
            file=self.set_file,
        )
        # A user who types a folder's name may run what lies in it.
        trusted = self.registered is None or self.registered.is_trusted
        return SourceOptions(variables=texts, workflow_name=self.workflow, code_trusted=trusted)

    @property
    def workflow(self) -> str:
        """Returns the name that the definition has wherever it lies; "": its own."""
        return "" if self.registered is None else self.registered.workflow

    def parameters(self) -> dict[str, object]:
        """Returns the parameters that -p and -P give; -p wins over -P.

        Raises Refused for a definition that is not of SIP: it has no parameters.
        """
        if not self.parameter_texts and self.parameter_file is None:
            return {}
        if self.kind not in ("", SIP):
            instead = "give template variables with -s NAME=VALUE"
            raise Refused(
                f"{self.path} is not a SIP definition and has no parameters; "
                f"{'leave them out' if self.is_python else instead}"
            )
        from tidewheel.formats.sip.parameters import read_parameters

        return read_parameters(self.parameter_texts, self.parameter_file)

    @property
    def kind(self) -> str:
        """Returns the kind of the definition; "" if what is named may be anything.

        A folder of SIP definitions is answered with their names, when it is read.
        """
        if self.is_sip or self.is_python:
            return SIP if self.is_sip else PYTHON
        is_flow = self.path.is_file() or (self.path / "flow.cylc").exists()
        return FLOW_CYLC if is_flow else ""

    def refuse_idle(self) -> None:
        """Raises a usage error for an option that this kind of definition cannot follow."""
        kind = self.kind
        texts = {name: [FLOW_CYLC, SIP] for name in ("settings", "lists", "set_file")}
        bounds = {_CALLED.get(name, name): kinds_with(name) for name in IDLE_OPTIONS[SIP]}
        for name, kinds in (texts | bounds).items():
            if kind and kind not in kinds:
                refuse_said((name,), not_for(kind, kinds))

    @property
    def is_python(self) -> bool:
        from tidewheel.services.definitions import is_python_file

        return is_python_file(self.path)

    @property
    def is_sip(self) -> bool:
        from tidewheel.services.definitions import is_sip_file

        return is_sip_file(self.path)

    def refuse_python(self, command: str) -> None:
        """Raises Refused for a definition in Python, for commands that show the text of a
        flow.cylc."""
        if self.is_python:
            raise Refused(
                f"{command} cannot show {self.path}, a workflow in Python; use validate, "
                "graph or list"
            )

    def load(self, findings: Findings, how: LoadOptions | None = None) -> LoadedWorkflow:
        """Reads, compiles and checks the definition; adds what is wrong to the findings."""
        from tidewheel.services.definitions import load_definition

        with told_if_slow(self.path):
            return load_definition(self.path, how or self.load_options(), findings)

    def load_judged(self, findings: Findings) -> tuple[LoadedWorkflow, Verdicts | None]:
        """Loads the definition; judges whether one of SIP can be registered and run.

        The verdicts are None for any other definition.
        """
        if not self.is_sip:
            return self.load(findings), None
        from tidewheel.core.graph.findings import InvalidDefinition
        from tidewheel.services.definitions.sip import load_sip_file

        try:
            how = self.load_options()
        except InvalidDefinition as refused:  # the file of parameters: it hides nothing else
            for one in refused.findings:
                findings.add(one)
            without = self._replace(parameter_texts=(), parameter_file=None)
            how = without.load_options()
        judged = load_sip_file(self.path, how, findings)
        return judged.loaded, judged.verdicts

    def load_for_run(
        self, options: RunOptions, findings: Findings, workflow: str = ""
    ) -> tuple[LoadedWorkflow, Captured | None, StageSource | None]:
        """Loads the definition with the options of a run, and captures it unless it has errors.

        Returns what was loaded, what was captured (None after errors) and, for a SIP
        definition, its stages. ``workflow`` is the name that it gets whatever its folder or
        file says; "" keeps its own.
        """
        from tidewheel.services.definitions.snapshot import capture, captured_sip, load_options

        if self.is_sip:
            from tidewheel.services.definitions.sip import load_sip_request, read_request

            request = read_request(options.parameters)
            judged = load_sip_request(self.path, request, findings, is_typed=True)
            loaded = judged.loaded
            if loaded.workflow is None or findings.has_errors:
                return loaded, None, None
            name = workflow or loaded.workflow.name
            return loaded, captured_sip(judged, name), judged.stages
        how = replace(load_options(options), source=self.source_options())
        loaded = self.load(findings, how)
        if loaded.graph is None or loaded.workflow is None or findings.has_errors:
            return loaded, None, None
        if workflow:
            loaded = replace(loaded, workflow=replace(loaded.workflow, name=workflow))
        variables = self.variables(findings)
        return loaded, capture(loaded, self.path, variables, trusted=True), None

    def variables(self, findings: Findings) -> dict[str, object]:
        """Returns the template variables, or the parameters of a request, by name."""
        from tidewheel.formats.flow_cylc.template_variables import read_variables

        return dict(read_variables(self.source_options().variables, findings))

    def load_options(self) -> LoadOptions:
        from tidewheel.core.graph.definition import POLICIES, TIDEWHEEL
        from tidewheel.formats.flow_cylc.workflow import LoadOptions, PointTexts

        return LoadOptions(
            # Here the clock comes in; below it is an argument.
            now=time.time_ns() / 1e9,
            name=self.workflow,
            source=self.source_options(),
            points=PointTexts(initial=self.icp, final=self.fcp),
            policy=POLICIES[self.compat] if self.compat else TIDEWHEEL,
        )


@contextmanager
def told_if_slow(*paths: Path) -> Iterator[None]:
    """Says which Python file is still being executed after a while, and where it is.

    Nobody else can end it: it may wait for something, or have no end.
    """
    from tidewheel.services.definitions import is_python_file

    files = [str(one) for one in paths if is_python_file(one)]
    main = threading.get_ident()

    def tell() -> None:
        frame = sys._current_frames().get(main)
        while frame is not None and frame.f_code.co_filename not in files:
            frame = frame.f_back
        if frame is not None:
            place = f"{frame.f_code.co_filename}, line {frame.f_lineno}"
            note(f"still executing {place}; Ctrl-C ends it")

    timer = threading.Timer(SLOW_SECONDS, tell)
    timer.daemon = True
    if files:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


# ---- definitions of a registry, by their names ----

Meant = Callable[["Definition", Session], "AbstractContextManager[Definition]"]


@contextmanager
def by_path(definition: Definition, session: Session) -> Iterator[Definition]:
    """Yields the definition as it was named, for a command that knows other names, too."""
    del session
    yield definition


def possible_name(path: Path) -> tuple[str, str] | None:
    """Returns the name and the version of a registered workflow that may be meant by a path;
    None if no workflow can be called so."""
    from tidewheel.core.operator.registry import (
        name_problem,
        split_reference,
        version_problem,
    )

    workflow, version = split_reference(str(path))
    is_one = not name_problem(workflow) and not (version and version_problem(version))
    return (workflow, version) if is_one else None


@contextmanager
def by_path_or_name(definition: Definition, session: Session) -> Iterator[Definition]:
    """Yields the definition itself, or what a registry has under its name where there is no
    such file or folder.

    Raises InvalidDefinition, with the nearest name, if there is neither.
    """
    path = definition.path
    if path.exists() or definition.is_python or definition.is_sip or not possible_name(path):
        if _is_empty_folder(path):
            _tell_of_namesake(path, session)
        yield definition
        return
    from tempfile import TemporaryDirectory

    from tidewheel.cli.pages.findings import UNPACKED
    from tidewheel.core.operator.registry import registry_text
    from tidewheel.errors import UnknownWorkflow
    from tidewheel.services.definitions.snapshot import unpack
    from tidewheel.wiring.stores import is_remote

    async def find(client: AsyncClient) -> tuple[str, StoredDefinition]:
        found = await client.workflows.show(str(path))
        reference = f"{found['name']}/{found['version']}"
        return reference, await client.workflows.definition(reference)

    try:
        reference, kept = session.ask(find)
    except UnknownWorkflow as unknown:
        raise _neither(path, unknown.advice) from None
    if is_remote(session.store):
        if kept.kind == PYTHON:
            raise Refused(
                f"{path} is a Python workflow, which is not loaded from a server, because that "
                "would execute its code here; give the path of its Python file"
            )
        kept = replace(kept, digest="")  # nobody there can say that it may be trusted here
    if kept.kind != FLOW_CYLC and kept.text not in {one.path for one in kept.files}:
        raise Refused(f"the definition of {reference} is not among its files")
    with TemporaryDirectory(prefix=UNPACKED) as folder:
        unpack(kept, Path(folder))
        file = Path(folder) if kept.kind == FLOW_CYLC else Path(folder, kept.text)
        yield definition._replace(path=file, registered=kept, origin=registry_text(reference))


def _neither(path: Path, advice: str) -> InvalidDefinition:
    findings = Findings()
    seen = f"there is no file or folder {path}, and no registered workflow of that name"
    findings.error("no-such-file", seen, advice)
    return InvalidDefinition(str(path), findings)


def _is_empty_folder(path: Path) -> bool:
    """Says whether a path is a folder without a definition of its own."""
    return str(path) != HERE and path.is_dir() and not (path / "flow.cylc").exists()


def _tell_of_namesake(path: Path, session: Session) -> None:
    """Tells the user of a registered workflow with the name of a folder that is none."""
    if not possible_name(path):
        return
    from tidewheel.errors import TidewheelError

    try:
        found = session.ask(lambda client: client.workflows.show(str(path)))
    except TidewheelError:
        return
    named = f"{found['name']}/{found['version']}"
    note(f"this command uses the folder {path}, not the registered workflow {named}")


def definition_command(
    name: str, *examples: str, epilog: str | None = None, meant: Meant = by_path_or_name
) -> Callable[[Callable[..., object]], click.Command]:
    """Makes a click command of a function, for a folder or file and the options to read it.

    The function gets a Definition as its first argument: what is ``meant`` by the word that
    was typed.
    """
    epilog = epilog or examples_text(examples)

    def build(function: Callable[..., object]) -> click.Command:
        def call(*args: object, **options: object) -> object:
            outer = click.get_current_context().find_object(Session) or Session()
            path = Path(str(options.pop("path")))
            as_json = bool(options.pop("as_json")) or outer.as_json
            given = {key: options.pop(key) for key in _SAID}
            definition = Definition(path, as_json, **given)  # type: ignore[arg-type]
            store = options["store"] if has_store else options.pop("store")
            session = Session(store=str(store) if store else outer.store, as_json=as_json)
            try:
                with meant(definition, session) as found:
                    found.refuse_idle()
                    return function(found, *args, **options)
            except BrokenPipeError:  # here, as click would call it a failure
                return stop_writing()

        command = click.command(name, epilog=epilog)(update_wrapper(call, function))
        has_store = any("--store" in one.opts for one in command.params)
        # As a path, so that shells complete it.
        path = click.Argument(["path"], metavar="[DIR|FILE|NAME]", default=HERE, type=PATH)
        # In two commands `-p` is already another option of Cylc's.
        short = "" if any("-p" in one.opts for one in command.params) else "-p "
        names = f"{short}--parameter parameter_texts NAME=VALUE..."
        parameter = option(names, "A parameter of a SIP definition: JSON, else a string.")
        command.params.insert(0, path)
        of_registry = () if has_store else (_STORE,)
        return options(*_TEMPLATE_OPTIONS, parameter, *_READING_OPTIONS, *of_registry)(command)

    return build


_STORE = option(
    "--store --server store URL",
    "The store or server with NAME (or set TIDEWHEEL_STORE or TIDEWHEEL_SERVER).",
)
_TEMPLATE_OPTIONS = (
    option(
        "-s --set settings NAME=VALUE...",
        "A template variable; VALUE is a Python literal: -s N=3 -s \"SITE='x'\".",
    ),
    option("-z --set-list lists NAME=A,B...", "A template variable that is a list of strings."),
    option(
        "-S --set-file", "A file of template variables, NAME=VALUE on each line.", type=PATH
    ),
)
_READING_OPTIONS = (
    option("-P --parameters parameter_file", "A JSON or YAML file of parameters.", type=PATH),
    option(
        "--compat",
        "Follow Cylc 8's rules where tidewheel's differ.",
        type=click.Choice(["cylc8"]),
    ),
    option(
        "--icp --initial-cycle-point icp POINT",
        "Begin at this point, whatever the definition says.",
        default="",
    ),
    option(
        "--fcp --final-cycle-point fcp POINT",
        "End at this point, whatever the definition says.",
        default="",
    ),
    AS_JSON,
)
