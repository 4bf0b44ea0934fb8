"""Makes the text of a definition from its folder: includes, rendered templates, joined lines.

The order is Cylc's: `%include` first, then Jinja2 over the whole, then continuation lines. A
definition without `#!jinja2` starts no other process and loads no template engine.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.core.graph.checks.names import some
from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.flow_cylc.source_text import (
    LINE_LENGTH_MAX,
    LINE_UNIT,
    LINES_MAX,
    Inlined,
    SourceFolder,
    SourceText,
    join_continued,
    origin,
)
from tidewheel.formats.flow_cylc.template_variables import (
    VariableTexts,
    read_variables,
    warn_of_unused,
)
from tidewheel.lazy_dataclasses import dataclass, pattern

if TYPE_CHECKING:
    from tidewheel.formats import templates

FLOW_FILE = "flow.cylc"
OLD_FLOW_FILE = "suite.rc"
# The version of Cylc whose language this is; templates ask for it.
CYLC_VERSION = "8.5.4"

_JINJA2 = pattern(r"#!jinja2", re.IGNORECASE)
_EMPY = pattern(r"#!empy", re.IGNORECASE)
_SIP_NAME = pattern(r"\.(yaml|yml|json)(\.j2)?$")
_PYTHON_NAME = pattern(r"\.py$")
_PYTHON_KEY = pattern(rb"\btidewheel\b[^\0]*\bWorkflow\(")
_OTHER_KINDS = {
    "a SIP definition": (
        re.compile(r"\s*[\"']?(schema_version|stages)[\"']?\s*:"),
        "NAME.yaml, NAME.yml or NAME.json, and add .j2 for a template",
    ),
    "Python": (re.compile(r"(from|import)\s+tidewheel\b"), "NAME.py"),
}
_SIP_KEY = pattern(rb"""(^|[\s{,])["']?(schema_version|stages)["']?\s*:""", re.MULTILINE)
_READ_MAX = 64 * 1024  # bytes
_LOOKED_AT_MAX = 100  # lines: a definition says early what it is
_LISTED_MAX = 1_000
_NAMED_MAX = 5
_TEMPLATE_TEXT = pattern(r"\{\{.*\}\}|\{%.*%\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Holds what a person may say about reading a definition."""

    variables: VariableTexts = field(default_factory=VariableTexts)
    workflow_name: str = ""  # for templates; the folder's name by default
    # Whether code in the folder (custom filters, Python modules) may run while rendering.
    # It runs in a limited process either way; only that of a folder whose owner named it may.
    code_trusted: bool = False


def read_source(folder_or_file: Path, options: SourceOptions, findings: Findings) -> SourceText:
    """Returns the text to parse; empty, with a finding, where nothing can be read."""
    found = find_flow_file(folder_or_file, findings)
    if found is None:
        return SourceText(folder_or_file, (folder_or_file.name,), [], [])
    folder, name = found
    inlined = Inlined(SourceFolder(folder.resolve()), findings)
    inlined.add(name, Position(name))
    source = SourceText(
        folder, tuple(inlined.folder.names) or (name,), inlined.lines, inlined.origins
    )
    if _is_another_kind(source, findings):
        return replace(source, lines=[], origins=[])
    first_line = source.lines[0] if source.lines else ""
    if _EMPY.match(first_line):
        seen = "EmPy templates are not supported, as in Cylc 8.4 and later"
        hint = "write the template in Jinja2 and begin the file with #!jinja2"
        findings.error("empy", seen, hint, source.position(0))
        return replace(source, lines=[], origins=[])
    if source.is_plain:
        return _within_limits(source, findings)
    if _JINJA2.match(first_line):
        source = _render(source, options, findings)
    elif given := read_variables(options.variables, findings):
        seen = f"nothing uses {some(given)}: {source.files[0]} is not a template"
        hint = "begin it with a line #!jinja2"
        findings.warning("unused-variable", seen, hint, source.position(0))
    else:
        _check_untemplated(source, findings)
    return join_continued(_within_limits(source, findings), findings)


def find_flow_file(folder_or_file: Path, findings: Findings) -> tuple[Path, str] | None:
    """Returns a folder and the name of the definition in it; None after a finding."""
    where = Position(str(folder_or_file))
    if folder_or_file.name == OLD_FLOW_FILE and folder_or_file.is_file():
        _refuse_old_file(where, findings)
        return None
    if folder_or_file.is_file():
        return folder_or_file.parent, folder_or_file.name
    if not folder_or_file.is_dir():
        findings.error("no-such-file", f"there is no file or folder {folder_or_file}")
        return None
    if (folder_or_file / FLOW_FILE).exists():
        return folder_or_file, FLOW_FILE
    if (folder_or_file / OLD_FLOW_FILE).exists():
        _refuse_old_file(Position(str(folder_or_file / OLD_FLOW_FILE)), findings)
    else:
        hint = _other_definitions(folder_or_file) or _folder_below(folder_or_file)
        findings.error("no-such-file", f"there is no {FLOW_FILE} in {folder_or_file}", hint)
    return None


def _folder_below(folder: Path) -> str:
    """Returns the hint to name a folder with a definition, if possible one in this folder."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        names = sorted(entry.name for entry in itertools.islice(entries, _LISTED_MAX))
        for name in names:
            if (folder / name / FLOW_FILE).is_file():
                return f"name a folder that contains a {FLOW_FILE}, such as {folder / name}"
    return f"name a folder that contains a {FLOW_FILE}, or make one: tidewheel init NAME"


def _other_definitions(folder: Path) -> str:
    """Returns the hint to name one of the SIP or Python definitions in a folder; "" if there
    are none."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        present = sorted(entry.name for entry in itertools.islice(entries, _LISTED_MAX))
        name, key = (
            (_SIP_NAME, _SIP_KEY) if "stages" in present else (_PYTHON_NAME, _PYTHON_KEY)
        )
        files = (one for one in present if name.search(one) and _has(folder / one, key))
        named = [*itertools.islice(files, _NAMED_MAX)]
        paths = ", ".join(str(folder / one) for one in named)
        return f"name the definition: {paths}" if named else ""
    return ""


def _has(path: Path, key: re.Pattern[bytes]) -> bool:
    """Says whether a file has what every definition of its kind has; requests of SIP runs and
    other Python files lack it."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return key.search(file.read(_READ_MAX)) is not None
    return False


def _is_another_kind(source: SourceText, findings: Findings) -> bool:
    """Says whether a text is a SIP definition or Python and no flow.cylc, and reports it."""
    for index, line in enumerate(source.lines[:_LOOKED_AT_MAX]):
        if line.startswith("["):
            return False
        for kind, (looks, ending) in _OTHER_KINDS.items():
            if looks.match(line):
                taken = f"a file called {source.files[0]} is read as a {FLOW_FILE}"
                seen = f"this reads like {kind}, but {taken}"
                hint = f"call it {ending}"
                findings.error("definition-file-kind", seen, hint, source.position(index))
                return True
    return False


def _refuse_old_file(position: Position, findings: Findings) -> None:
    seen = f"{OLD_FLOW_FILE} is a file of Cylc 7, whose rules are not supported"
    later = "the other changes are then reported line by line"
    hint = f"rename the file to {FLOW_FILE}; {later}"
    findings.error("old-file-name", seen, hint, position)


def _check_untemplated(source: SourceText, findings: Findings) -> None:
    if not _TEMPLATE_TEXT.search("\n".join(source.lines)):
        return
    for index, line in enumerate(source.lines):
        if "{" in line and _TEMPLATE_TEXT.search(line) and not line.lstrip().startswith("#"):
            seen = "this looks like Jinja2, but the file does not begin with #!jinja2"
            hint = f"make #!jinja2 the first line of {source.files[0]}"
            findings.warning("template-not-rendered", seen, hint, source.position(index))
            return


def _within_limits(source: SourceText, findings: Findings) -> SourceText:
    """Returns the text up to the first line that exceeds a limit, which is reported."""
    longest = max(map(len, source.lines), default=0)
    if len(source.lines) <= LINES_MAX and longest <= LINE_LENGTH_MAX:
        return source
    kept = min(len(source.lines), LINES_MAX)
    if len(source.lines) > LINES_MAX:
        seen = f"the definition has more than {LINES_MAX} lines"
        hint = "use parameters or families instead of repeated sections"
        findings.error("too-many-lines", seen, hint, source.position(LINES_MAX))
    for index in range(kept):
        if (length := len(source.lines[index])) > LINE_LENGTH_MAX:
            seen = f"this line has {length} characters; at most {LINE_LENGTH_MAX} are accepted"
            findings.error("line-too-long", seen, "", source.position(index))
            kept = index
            break
    return replace(source, lines=source.lines[:kept], origins=source.origins[:kept])


def _render(source: SourceText, options: SourceOptions, findings: Findings) -> SourceText:
    """Returns the rendered template; empty, with a finding, if that fails. Blank lines are
    removed, as in Cylc: statements leave them behind."""
    from tidewheel.formats import templates  # noqa: PLC0415 - a plain file never needs it

    name = options.workflow_name or source.folder.resolve().name
    given = read_variables(options.variables, findings)
    job = templates.TemplateJob(
        # The first line is no part of the template; an empty one keeps the numbers.
        text="\n".join(["", *source.lines[1:]]),
        folder=source.folder.resolve(),
        variables={**given, "CYLC_VERSION": CYLC_VERSION},
        names={"CYLC_WORKFLOW_NAME": name, "CYLC_WORKFLOW_NAME_BASE": name.rpartition("/")[2]},
        code_trusted=options.code_trusted,
    )
    outcome = templates.render(job)
    if isinstance(outcome, templates.RenderFailure):
        findings.error(outcome.code, outcome.message, outcome.hint, _failed_at(outcome, source))
        return replace(source, lines=[], origins=[], templated=True)
    warn_of_unused(given, outcome.names, findings)
    return _rendered(source, outcome)


def _rendered(source: SourceText, rendered: templates.Rendered) -> SourceText:
    files = list(source.files)
    numbers = [0]
    for name in rendered.files[1:]:
        if name not in files:
            files.append(name)
        numbers.append(files.index(name))
    lines: list[str] = []
    origins: list[int] = []
    for line, (file_number, number) in zip(rendered.lines, rendered.origins, strict=True):
        if not line or line.isspace():
            continue
        lines.append(line)
        if file_number:
            origins.append(origin(numbers[file_number], number))
        else:
            known = 1 <= number <= len(source.origins)
            origins.append(source.origins[number - 1] if known else origin(0, 0))
    return replace(source, files=tuple(files), lines=lines, origins=origins, templated=True)


def _failed_at(failure: templates.RenderFailure, source: SourceText) -> Position:
    if failure.file:
        return Position(failure.file, failure.line)
    if 1 <= failure.line <= len(source.origins):
        file_number, line = divmod(source.origins[failure.line - 1], LINE_UNIT)
        return Position(source.files[file_number], line)
    return Position(source.files[0])
