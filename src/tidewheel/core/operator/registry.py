"""Describes the registry, which keeps definitions under names and versions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from tidewheel.core.operator.definition import RunOptions, StoredDefinition
from tidewheel.core.queue.task import Instant
from tidewheel.lazy_dataclasses import dataclass, pattern

NO_VERSION = "0.0.0"
NAME_LENGTH_MAX = 200

_NAME = pattern(r"\w[\w.+@%-]*(/\w[\w.+@%-]*)*", re.ASCII)
_VERSION_LIKE = pattern(r"v?\d")  # the beginning of a part that can be no name's last
_VERSION = pattern(r"\w[\w.+-]*", re.ASCII)
_OF_A_RUN = pattern(r"run\d+")
_PARTS = pattern(r"(\d+)|([^\W\d_]+)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSource:
    """Says where the files of a definition were fetched from, as who registers it says."""

    url: str  # of an archive or a repository, without a query and whoever signs in
    ref: str = ""  # as it was asked for, as git calls it; empty: HEAD
    commit: str = ""  # what that was then; empty: the archive does not say
    folder: str = ""  # inside it, or a file; empty: all of it
    sha256: str = ""  # of an archive

    def __str__(self) -> str:
        """Returns the place as people write it; also for `tidewheel register`."""
        ref = f"@{self.ref}" if self.ref else ""
        return f"{self.url}{ref}" + (f"#{self.folder}" if self.folder else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorkflow:
    """Holds a definition that is to be registered under a name and a version."""

    name: str
    version: str
    definition: StoredDefinition
    runnable: bool  # whether it can run, as far as that is known without a request
    findings: str = "[]"  # JSON: what was said about it
    parameters: str = "[]"  # JSON: what a request may or must give
    registered_by: str = ""
    sees: tuple[str, ...] | None = None  # see WorkflowView
    source: str = ""  # JSON of a WorkflowSource; empty: from a folder, or sent as files


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowView:
    """Describes a registered workflow, without its files."""

    name: str
    version: str
    definition: str  # its digest
    kind: str
    runnable: bool
    findings: str
    parameters: str
    registered_at: Instant
    registered_by: str
    # What its code may see, whoever begins a run of it: the names that the token covered which
    # registered it. None: everything, as for somebody who can open the store.
    sees: tuple[str, ...] | None = None
    source: str = ""  # see NewWorkflow

    def __str__(self) -> str:
        return f"{self.name}/{self.version}"


@dataclass(frozen=True, slots=True)
class Registered:
    """Says of a workflow that was registered whether it is new, or was there already."""

    name: str
    version: str
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Holds files that are registered together: definitions and what belongs to them."""

    files: Mapping[str, bytes]  # by path from the folder of the definitions
    executable: frozenset[str] = frozenset()
    folders: frozenset[str] = field(default=frozenset(), compare=False)  # for advice
    # The one that they came from, as people call it; empty: nobody could mistake it.
    folder: str = field(default="", compare=False)
    # Of a flow.cylc or a Python file; others say it themselves. Empty: as the folder is called,
    # as the definition says.
    name: str = ""
    version: str = ""
    file: str = ""  # the definition that is meant; empty: all that are found
    # Somebody else's place that they were fetched from: then no code of theirs is trusted.
    source: WorkflowSource | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Holds the request for a run of a registered workflow."""

    workflow: str
    version: str = ""  # empty: the highest
    # Of a SIP definition its parameters, of a flow.cylc the variables of its template.
    parameters: Mapping[str, object] = field(default_factory=dict)
    name: str = ""  # of the run; empty: the next NAME/runN
    options: RunOptions = field(default_factory=RunOptions)  # without the parameters
    queue: str = ""
    request: str = ""
    sees: tuple[str, ...] | None = None
    # Whether code that came with the definition may run here, to read it.
    code_trusted: bool = False

    def __str__(self) -> str:
        return f"{self.workflow}/{self.version}" if self.version else self.workflow

    @property
    def parameters_text(self) -> str:
        """Returns the parameters as a run of a SIP definition keeps them.

        The same parameters are the same text.
        """
        return json.dumps(dict(self.parameters), sort_keys=True) if self.parameters else ""


def name_problem(name: str) -> str:
    """Returns why a workflow cannot be called so; empty if it can."""
    if not _NAME.fullmatch(name):
        return (
            "names have letters, digits and _ . + @ % -; a / separates the parts of a name, "
            "such as team/nightly; each part begins with a letter, digit or _"
        )
    above, _, last = name.rpartition("/")
    if above and (_VERSION_LIKE.match(last) or _OF_A_RUN.fullmatch(last)):
        return "its last part looks like a version (1.0, v2) or a run (run1); choose another"
    return _too_long(name)


def version_problem(version: str) -> str:
    """Returns why this is no version; empty if it is one."""
    if not _VERSION.fullmatch(version) or ".." in version:
        return (
            "versions have letters, digits and . _ + -, begin with a letter, digit or _, and "
            "do not contain '..'; an example is 1.0.0"
        )
    if _OF_A_RUN.fullmatch(version):
        return "this looks like the name of a run; write a version such as 1.0.0"
    return _too_long(version)


def _too_long(text: str) -> str:
    return f"at most {NAME_LENGTH_MAX} characters" if len(text) > NAME_LENGTH_MAX else ""


def split_reference(text: str) -> tuple[str, str]:
    """Returns name and version of `NAME/VERSION`; the version of `NAME` is empty.

    A name may have parts, `team/nightly`: a version begins with a digit, or with v and a digit.
    Any other has to be given beside the name, see `client.runs.meant_by`.
    """
    name, _, version = text.rpartition("/")
    return (name, version) if name and _VERSION_LIKE.match(version) else (text, "")


def registry_text(reference: str) -> str:
    """Returns the text that tells people that a run's definition came from the registry."""
    return f"{reference} of the registry"


def version_order(version: str) -> tuple[object, ...]:
    """Returns a key to compare versions by: numbers as numbers, 1.0-rc1 before 1.0."""
    found = [
        (2, int(number), "") if number else (0, 0, word.lower())
        for number, word in _PARTS.findall(version.partition("+")[0])
    ]
    # Between a word, which comes before the version itself, and a further number.
    return (*found, (1, 0, "")), version


def highest(workflows: Iterable[WorkflowView]) -> WorkflowView:
    """Returns the highest version, which is meant if none is named."""
    return max(workflows, key=lambda one: version_order(one.version))


def in_order(workflows: Iterable[WorkflowView]) -> Sequence[WorkflowView]:
    """Returns workflows by name, the highest version first."""
    by_version = sorted(workflows, key=lambda one: version_order(one.version), reverse=True)
    return sorted(by_version, key=lambda one: one.name)
