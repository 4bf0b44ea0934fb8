"""A definition that was judged: whether it can be registered, and whether it can run."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from tidewheel.core.graph.findings import (
    Finding,
    Findings,
    Position,
    Severity,
    finding_document,
)
from tidewheel.core.operator.definition import StoredDefinition
from tidewheel.core.operator.registry import (
    NO_VERSION,
    NewWorkflow,
    name_problem,
    version_problem,
)
from tidewheel.ports.registry import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A definition, whether it can be registered, and whether it can run."""

    name: str
    version: str
    file: str
    definition: StoredDefinition
    registrable: bool
    runnable: bool
    findings: tuple[Finding, ...] = ()
    parameters: tuple[Document, ...] = ()
    folder: str = ""  # see Bundle

    @property
    def path(self) -> str:
        """Of its file, as whoever registers it knows it."""
        return f"{self.folder}/{self.file}" if self.folder else self.file

    @property
    def told(self) -> tuple[Finding, ...]:
        """The findings for whoever registers it; kept are those about its own files."""
        return tuple(one.inside(self.folder) for one in self.findings)

    def __str__(self) -> str:
        """As people call it; what cannot be read at all is called by its file."""
        return self.file if self.name == self.file else f"{self.name}/{self.version}"

    def new(self, who: str) -> NewWorkflow:
        """As it is kept."""
        return NewWorkflow(
            name=self.name,
            version=self.version,
            definition=self.definition,
            runnable=self.runnable,
            findings=json.dumps([finding_document(one) for one in self.findings]),
            parameters=json.dumps(self.parameters),
            registered_by=who,
        )

    def document(self) -> Document:
        """As it is told."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How it is judged."""

    now: float  # for points that follow a clock
    strict: bool = False  # a warning refuses the registration
    code_trusted: bool = False  # whether code of the definition may run, to read it


def verdict(judged: Judged, findings: Findings, refusing: Findings, manner: Manner) -> Judged:
    """With all findings; those of the second kind refuse the registration."""
    for one in refusing:
        findings.add(one)
    told = findings.sorted()
    if manner.strict:
        told = [
            replace(one, severity=Severity.ERROR) if one.severity is Severity.WARNING else one
            for one in told
        ]
    good = judged.registrable and not refusing.has_errors and told == findings.sorted()
    return replace(
        judged, registrable=good, runnable=good and judged.runnable, findings=tuple(told)
    )


def check_name(name: str, version: str, file: str, findings: Findings) -> None:
    """Whether it can be registered under these."""
    if problem := name_problem(name):
        hint = f"{problem}; give it a name: --name NAME"
        findings.error(
            "bad-name", f"a workflow cannot be called {name!r}", hint, Position(file)
        )
    if not version:
        findings.note(
            "no-version",
            f"nothing says which version it is; it is {NO_VERSION}",
            "write it under [meta] of a flow.cylc as version = 1.0.0, or say: --version 1.0.0",
            Position(file),
        )
    elif problem := version_problem(version):
        findings.error("bad-name", f"{version!r} is no version", problem, Position(file))
