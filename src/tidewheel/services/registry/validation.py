"""Validates bundles of files: each definition in them gets two verdicts and all findings.

The verdicts are whether it can be registered, and whether it can run. Only the files of the
bundle count, not the folder that they came from: what is validated is what is kept. One bundle
may hold several SIP definitions, or one flow.cylc; that of a Python file is what it amounts to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

from tidewheel.core.graph.findings import (
    NOWHERE,
    Finding,
    Findings,
    InvalidDefinition,
    Position,
    Severity,
    finding_document,
)
from tidewheel.core.operator.definition import (
    FLOW_CYLC,
    PYTHON_SUFFIX,
    RunOptions,
    StoredDefinition,
    sealed,
    stored_files,
)
from tidewheel.core.operator.registry import (
    NO_VERSION,
    Bundle,
    NewWorkflow,
    WorkflowSource,
    name_problem,
    version_problem,
)
from tidewheel.formats.flow_cylc.source_loader import FLOW_FILE
from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow
from tidewheel.formats.sip.bundle import is_definition, sources_in
from tidewheel.formats.sip.definition import definitions_among
from tidewheel.formats.sip.parameters import ParameterSpec
from tidewheel.formats.sip.text_files import SipSource
from tidewheel.formats.sip.validation import Validation, validate
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runs import Document
from tidewheel.services.definitions.sip import compiled, note_needs, stored_sip, warn_of_scripts
from tidewheel.services.definitions.snapshot import load_flow
from tidewheel.services.definitions.upload import path_findings

# A definition that was validated: whether it can be registered, and whether it can run.


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """Holds a definition; says whether it can be registered, and whether it can run."""

    name: str
    version: str
    file: str
    definition: StoredDefinition
    registrable: bool
    runnable: bool
    findings: tuple[Finding, ...] = ()
    parameters: tuple[Document, ...] = ()
    folder: str = ""  # see Bundle
    source: WorkflowSource | None = None

    @property
    def path(self) -> str:
        """Returns the path of its file, as the person who registers it knows it."""
        return f"{self.folder}/{self.file}" if self.folder else self.file

    @property
    def told(self) -> tuple[Finding, ...]:
        """Returns the findings, with paths as the person who registers the bundle knows them.

        In the registry they are kept with paths inside the bundle.
        """
        return tuple(one.inside(self.folder) for one in self.findings)

    def __str__(self) -> str:
        """Returns what people call the definition: name and version, else its file."""
        return self.file if self.name == self.file else f"{self.name}/{self.version}"

    def new(self, who: str, sees: tuple[str, ...] | None) -> NewWorkflow:
        """Returns the row that the registry keeps; ``sees`` is what who brings it may see."""
        return NewWorkflow(
            name=self.name,
            version=self.version,
            definition=self.definition,
            runnable=self.runnable,
            findings=json.dumps([finding_document(one) for one in self.findings]),
            parameters=json.dumps(self.parameters),
            registered_by=who,
            sees=sees,
            source="" if self.source is None else json.dumps(self.source_document),
        )

    @property
    def source_document(self) -> Document | None:
        """Returns where the files were fetched from, as JSON."""
        return None if self.source is None else asdict(self.source)

    def document(self) -> Document:
        """Returns the verdicts and findings as JSON, as a registration or a check answers."""
        return {
            "name": self.name,
            "version": self.version,
            "kind": self.definition.kind,
            "file": self.file,
            "definition": self.definition.digest,
            "registrable": self.registrable,
            "runnable": self.runnable,
            "findings": [finding_document(one) for one in self.told],
            "parameters": list(self.parameters),
        }


def refusal(
    name: str, code: str, message: str, hint: str, position: Position = NOWHERE
) -> InvalidDefinition:
    """Returns the refusal of a definition for one reason."""
    findings = Findings()
    findings.error(code, message, hint, position)
    return InvalidDefinition(name, findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationOptions:
    """Says how strictly definitions are validated, and what the server allows."""

    now: float  # for points that follow a clock
    strict: bool = False  # a warning refuses the registration
    code_trusted: bool = False  # whether code of the definition may run, to read it


def _judged(
    definition: StoredDefinition,
    version: str,
    file: str,
    loaded: LoadedWorkflow,
    findings: Findings,
    manner: ValidationOptions,
) -> Validated:
    """Returns a definition that was loaded, with both verdicts and all findings."""
    refusing = Findings()
    check_name(definition.workflow, version, file, refusing)
    is_right = loaded.graph is not None and not findings.has_errors
    for one in refusing:
        findings.add(one)
    told = findings.sorted()
    if manner.strict:
        told = [
            replace(one, severity=Severity.ERROR) if one.severity is Severity.WARNING else one
            for one in told
        ]
    is_named = not refusing.has_errors and told == findings.sorted()
    return Validated(
        name=definition.workflow,
        version=version or NO_VERSION,
        file=file,
        definition=definition,
        # What a template lacks a request may give; any other mistake is there for ever.
        registrable=is_named and (is_right or loaded.source.templated),
        runnable=is_named and is_right,
        findings=tuple(told),
    )


def check_name(name: str, version: str, file: str, findings: Findings) -> None:
    """Adds findings if a definition cannot be registered under this name and version."""
    if problem := name_problem(name):
        hint = f"{problem}; give it a name: --name NAME"
        findings.error(
            "bad-name", f"a workflow cannot be called {name!r}", hint, Position(file)
        )
    if not version:
        findings.note(
            "no-version",
            f"no version is given, so it is {NO_VERSION}",
            "write it under [meta] of a flow.cylc as version = 1.0.0, or say: --version 1.0.0",
            Position(file),
        )
    elif problem := version_problem(version):
        findings.error(
            "bad-name", f"{version!r} is not a valid version", problem, Position(file)
        )


# The flow.cylc of a bundle, validated: in a folder that holds nothing but the bundle.

_META_VERSION = re.compile(
    r"^\s*\[meta\]\s*$(?:\n(?!\s*\[).*)*?\n\s*version\s*=([^\n#]*)", re.MULTILINE
)


def validate_flow(bundle: Bundle, manner: ValidationOptions) -> Validated:
    """Validates the flow.cylc of a bundle without the parameters of a request."""
    text = bundle.files[FLOW_FILE].decode(errors="replace").replace("\0", "\ufffd")
    definition = sealed(
        StoredDefinition(
            digest="",
            workflow=bundle.name,
            kind=FLOW_CYLC,
            text=text,
            files=stored_files(bundle.files, bundle.executable),
        ),
        trusted=manner.code_trusted,
    )
    findings, options = Findings(), RunOptions(now=manner.now)
    trusted = manner.code_trusted
    with load_flow(definition, options, findings, {}, code_trusted=trusted) as (loaded, _):
        said = dict(loaded.settings.meta).get("version", "")
    version = bundle.version or said
    if not version:  # what stands in a text that only a request can render
        found = _META_VERSION.search(text)
        version = found[1].strip().strip("\"'") if found and "{" not in found[1] else ""
    return _judged(definition, version, FLOW_FILE, loaded, findings, manner)


# A Python file: to read it is to execute it, which who registers it does.


def python_refused(name: str) -> InvalidDefinition:
    """Returns the refusal that a server answers to a Python file."""
    return refusal(
        name,
        "python-definition",
        "servers do not accept Python workflows, because loading one executes its code",
        "execute it on your own machine, which sends only the finished definition: "
        "tidewheel register "
        "FILE.py --server URL, or client.workflows.register",
    )


# The SIP definitions of a bundle, validated: it may hold several.


def validate_sips(
    bundle: Bundle, manner: ValidationOptions, *, is_named: bool
) -> Iterator[Validated]:
    """Yields each SIP definition of a bundle, validated.

    Raises InvalidDefinition if there is none, or if the caller gives a name, which these have
    themselves.
    """
    findings = Findings()
    found = sources_in(bundle.files, findings, bundle.executable)
    if is_named:
        findings.error(
            "name-of-file",
            "a SIP definition contains its name and version, or its file name does",
            "leave out name and version",
        )
    if bundle.file and all(bundle.file != source.file for source in found):
        findings.error(
            "no-definitions",
            f"there is no definition {bundle.file[:100]!r} among the files",
            "give the path of a file that is sent, or no path: then all are registered",
        )
    if findings.has_errors:
        raise InvalidDefinition(bundle.name or "bundle", findings)
    wanted = [one for one in found if one.file == bundle.file]
    for source in wanted or definitions_among(found):
        whole = replace(source, folders=source.folders | bundle.folders)
        validation = validate(whole)
        warn_of_scripts(validation)
        yield validate_sip(whole, validation, strict=manner.strict)


def validate_sip(
    source: SipSource, validation: Validation, *, strict: bool = False
) -> Validated:
    """Returns a SIP definition with both verdicts and all findings of its validation.

    It may have been validated with a request, or without.
    """
    note_needs(validation, source)
    findings = validation.all_findings(strict=strict)
    definition = validation.definition
    name = definition.id if definition is not None else source.file
    version = definition.version if definition is not None else NO_VERSION
    refusing = Findings()
    if definition is not None:
        compiled(validation, refusing)
        check_name(name, version, source.file, refusing)
    for one in refusing:
        findings.add(one)
    warned = any(one.severity is Severity.WARNING for one in validation.findings)
    registrable = validation.registrable and not refusing.has_errors and not (strict and warned)
    return Validated(
        name=name,
        version=version,
        file=source.file,
        definition=sealed(stored_sip(source, name)),
        registrable=registrable,
        runnable=registrable and validation.runnable,
        findings=tuple(findings.sorted()),
        parameters=tuple(map(_parameter, validation.specs)),
    )


def _parameter(spec: ParameterSpec) -> Document:
    told: Document = {
        "name": spec.name,
        "required": spec.is_needed,
        "stages": list(spec.stages),
        "provided_by": list(spec.provided_by),
    }
    return told | ({"default": spec.default} if spec.has_default else {})


# All kinds: bundles of files become definitions, each with two verdicts.


def validate_bundles(bundles: Sequence[Bundle], manner: ValidationOptions) -> list[Validated]:
    """Returns each definition in the bundles, validated.

    Raises InvalidDefinition if a bundle has none, or two that differ have the same name and
    version.
    """
    found: list[Validated] = []
    for bundle in bundles:
        try:
            found += [
                replace(one, folder=bundle.folder, source=bundle.source)
                for one in _validated(bundle, manner)
            ]
        except InvalidDefinition as refused:
            if not bundle.folder:
                raise
            told = [one.inside(bundle.folder) for one in refused.findings]
            raise InvalidDefinition(bundle.folder, told) from refused
    first: dict[str, Validated] = {}
    for one in found:
        other = first.setdefault(str(one), one)
        if other.definition.digest != one.definition.digest:
            both = f"{other.path} and {one.path}"
            if other.path == one.path:
                both = f"two files that are called {one.file}, in different folders,"
            hint = "give one of them another version, or another name"
            message, where = f"{both} both define {one}", Position(one.path)
            raise refusal(str(one), "two-definitions", message, hint, where)
    return list({str(one): one for one in found}.values())


def _validated(given: Bundle, manner: ValidationOptions) -> Iterator[Validated]:
    bundle = _inside(given)
    if given.source is not None:
        manner = replace(manner, code_trusted=False)
    findings = Findings()
    for message in path_findings(bundle.files):
        findings.error("bad-path", message, "paths are relative, such as bin/plot")
    if findings.has_errors:
        raise InvalidDefinition(bundle.name or "bundle", findings)
    if bundle.file.endswith(PYTHON_SUFFIX):
        raise python_refused(bundle.name or bundle.file)
    if FLOW_FILE in bundle.files and bundle.file in ("", FLOW_FILE):
        yield validate_flow(bundle, manner)
    elif not any(map(is_definition, bundle.files)) and any(
        one.endswith(PYTHON_SUFFIX) and "/" not in one for one in bundle.files
    ):
        raise python_refused(bundle.name or "bundle")
    else:
        named = bool(given.name or given.version)
        yield from validate_sips(bundle, manner, is_named=named)


def _inside(bundle: Bundle) -> Bundle:
    """Returns a bundle of one folder as the bundle of what lies in the folder. Without a name
    of its own it is called as the folder is."""
    tops = {path.partition("/")[0] for path in bundle.files}
    if len(tops) != 1 or any("/" not in path for path in bundle.files):
        return bundle
    (top,) = tops
    return replace(
        bundle,
        files={path.partition("/")[2]: one for path, one in bundle.files.items()},
        executable=frozenset(path.partition("/")[2] for path in bundle.executable),
        name=bundle.name or top,
        file=bundle.file.removeprefix(f"{top}/"),
    )
