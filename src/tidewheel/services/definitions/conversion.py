"""Converts files of SIP's version 1 to 2.0: definitions with their stages, and requests.

Nothing is written here. What would be written is validated as if it lay on a disk already, so
that whoever converts knows whether it can be registered and run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path, PurePosixPath

from tidewheel.core.graph.findings import Finding, Findings, Position, Severity
from tidewheel.formats.sip import version_1
from tidewheel.formats.sip.bundle import find_definitions, read_beside, sources_in
from tidewheel.formats.sip.definition import is_instance
from tidewheel.formats.sip.document import Fields, Node, plain_value
from tidewheel.formats.sip.scheduling_block import read_sbi
from tidewheel.formats.sip.text_files import decoded, file_name, read_plain
from tidewheel.formats.sip.validation import validate
from tidewheel.formats.sip.version_1_definition import (
    TEMPLATES_FOLDER,
    FilesBeside,
    convert_definition,
    written,
)
from tidewheel.formats.sip.version_1_request import request_2
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.services.definitions.sip import Verdicts

DEFINITION, REQUEST = "definition", "request"
WORKFLOWS_MAX = 1_000  # folders templates/WORKFLOW/VERSION that are looked through


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """Holds what one file of version 1 becomes."""

    source: str
    kind: str
    name: str  # of the workflow with its version, or of the instance
    files: Mapping[str, bytes]  # by path, the definition or the request first
    is_valid: bool
    verdict: str  # a part of a sentence
    problems: Sequence[Finding] = ()  # the errors of what it becomes, in its files

    @property
    def file(self) -> str:
        return next(iter(self.files))


@dataclass(slots=True)
class Conversion:
    """Holds what a file, or every file of a folder, becomes."""

    converted: list[Converted] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)  # those of 2.0
    others: list[str] = field(default_factory=list)  # those that are of neither kind
    findings: Findings = field(default_factory=Findings)

    def files(self) -> dict[str, bytes]:
        """Returns all files that are to be written, by path."""
        return {path: one for part in self.converted for path, one in part.files.items()}


def convert(path: Path) -> Conversion:
    """Returns what a file, or every file of a folder, becomes in 2.0."""
    made = Conversion()
    for one in find_definitions(path, made.findings):
        own = Findings()
        part = _converted(one, made, own, is_alone=path.is_file())
        folder = str(one.parent) if not path.is_file() else ""
        for found in own:
            made.findings.add(found.inside(folder))
        if part is not None:
            made.converted.append(_in_its_place(part, made))
    return made


def _converted(
    path: Path, made: Conversion, findings: Findings, *, is_alone: bool
) -> Converted | None:
    """Returns what a file becomes; None if nothing, of which the reason is told or noted."""
    root = _read(path, findings)
    if root is None:
        return None
    if isinstance(root, Fields) and _is_request(root):
        if not version_1.is_request_1(root):
            made.unchanged.append(path.name)
            return None
        return _request(path.name, root, findings)
    if isinstance(root, Fields) and root.get(version_1.STAGES) is not None:
        if root.get("schema_version") is not None and not version_1.is_definition_1(root):
            made.unchanged.append(path.name)
            return None
        return _definition(path, root, findings)
    if is_alone:
        seen = "this is neither a workflow definition nor a request for blocks"
        hint = "a definition has stages; a request has processing_blocks, or a workflow"
        findings.error("no-definition", seen, hint, root.position)
    made.others.append(path.name)
    return None


def _is_request(root: Fields) -> bool:
    return is_instance(root) or version_1.is_block_alone(root)


def _read(path: Path, findings: Findings) -> Node | None:
    """Returns the nodes of a file as it is written; templates are not rendered.

    Version 1 knew the values of a definition's template only in tests of its own: where they
    stand in quotes, they are kept as they are.
    """
    content = read_beside(path.parent, path.name, findings)
    text = None if content is None else decoded(path.name, content, findings)
    if text is None:
        return None
    found = Findings()
    root = read_plain(path.name, text, found)
    if root is None and ("{{" in text or "{%" in text):
        seen = "this is a template whose values are not in quotes"
        hint = (
            "render the template, and convert the result; in 2.0 stages do not depend on "
            "parameters"
        )
        findings.error("template-failed", seen, hint, Position(path.name))
        return None
    for one in found:
        findings.add(one)
    return None if findings.has_errors else root


def _definition(path: Path, root: Fields, findings: Findings) -> Converted:
    def look(name: str) -> bytes | None:
        return read_beside(path.parent, name, findings)

    source = FilesBeside(look=look, workflows=tuple(_workflows(path.parent)))
    made = convert_definition(path.name, root, source, findings)
    found = Findings()
    sources = sources_in(made.files, found)
    validated = validate(sources[0]) if sources else None
    problems = _errors(validated.all_findings() if validated is not None else found)
    verdict = "it cannot be registered yet"
    if findings.has_errors:
        problems = [one for one in problems if one.code not in _FOLLOWS]
    elif validated is not None:
        verdict = Verdicts(validated, is_request=False).sentence(strict=False)
    return Converted(
        source=path.name,
        kind=DEFINITION,
        name=f"{made.name}/{made.version}",
        files=made.files,
        is_valid=validated is not None and validated.registrable,
        verdict=verdict,
        problems=problems,
    )


# What is true of the result of a definition whose templates were not all found.
_FOLLOWS = frozenset({"no-stages-folder", "no-stage-folder", "no-compose-file"})


def _request(file: str, root: Fields, findings: Findings) -> Converted:
    changes, lost = Findings(), Findings()
    document = plain_value(request_2(root, changes, lost))
    for one in lost:
        findings.add(one)
    text = written(file, document).encode()
    found = Findings()
    read = read_sbi(file, text, found)
    problems = _errors(found)
    verdict = "it can be submitted as soon as its workflows are registered"
    return Converted(
        source=file,
        kind=REQUEST,
        name=read.id if read is not None else "",
        files={file: text},
        is_valid=not problems,
        verdict="it cannot be submitted yet" if problems else verdict,
        problems=problems,
    )


def _errors(found: Findings) -> list[Finding]:
    """Returns the errors of what was converted; its warnings are for `validate` to tell."""
    return [one for one in found.sorted() if one.severity is Severity.ERROR]


def _workflows(folder: Path) -> Iterator[str]:
    """Yields templates/WORKFLOW/VERSION, for each that is there."""
    found = sorted(folder.glob(f"{TEMPLATES_FOLDER}/*/*"))[:WORKFLOWS_MAX]
    yield from (one.relative_to(folder).as_posix() for one in found if one.is_dir())


def _in_its_place(part: Converted, made: Conversion) -> Converted:
    """Returns what was converted with its paths: in a folder of its own, if others of the same
    name are different. Version 1 kept the stages of each workflow apart."""
    known = made.files()
    if all(known.get(path, content) == content for path, content in part.files.items()):
        return part
    folder = PurePosixPath(part.name.replace("/", "-") or file_name(part.source).stem)
    seen = (
        f"{part.source} has stages that differ from other stages of the same name and version"
    )
    hint = f"they are put into a separate folder: {folder}"
    made.findings.note("own-folder", seen, hint, Position(part.source))
    moved = {str(folder / path): content for path, content in part.files.items()}
    problems = [one.inside(str(folder)) for one in part.problems]
    return replace(part, files=moved, problems=problems)


def document_of(made: Conversion) -> dict[str, object]:
    """Returns a conversion as JSON has it."""
    return {
        "converted": [
            {
                "file": one.source,
                "kind": one.kind,
                "name": one.name,
                "valid": one.is_valid,
                "files": list(one.files),
            }
            for one in made.converted
        ],
        "unchanged": made.unchanged,
        "others": made.others,
    }
