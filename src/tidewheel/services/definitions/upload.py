"""Takes in definitions from the network: nothing is trusted, none of their code runs here.

A text is rendered in a child process with limits, as every template is, and without the code
that could lie beside it. What was captured elsewhere is sealed anew: its digest is what it
holds, not what somebody said. Python is not taken: to read such a definition is to execute it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from tidewheel.core.graph.findings import Findings, InvalidDefinition
from tidewheel.core.operator.definition import (
    FLOW_CYLC,
    PYTHON,
    SIP,
    RunOptions,
    StoredDefinition,
    StoredFile,
    sealed,
)
from tidewheel.formats.flow_cylc.source_loader import FLOW_FILE
from tidewheel.formats.flow_cylc.template_variables import VariableTexts, read_variables
from tidewheel.services.definitions.snapshot import (
    MADE_BY_RUNS,
    GraphCheck,
    capture,
    check_new,
    load_flow,
)

NAME_BYTES_MAX = 255  # of a folder or file
FOLDERS_DEEP_MAX = 64  # one in another
FINDINGS_MAX = 20


def definition_of_text(
    text: str,
    workflow: str,
    variables: Mapping[str, object],
    options: RunOptions,
    check: GraphCheck,
) -> StoredDefinition:
    """Returns the text of a flow.cylc as a definition to keep, rendered.

    Raises InvalidDefinition, with all findings, if it has errors, or if ``check`` finds some.
    """
    findings = Findings()
    files = (StoredFile(FLOW_FILE, text.encode(), False),)
    kept = StoredDefinition(
        digest="", workflow=workflow, kind=FLOW_CYLC, text=text, files=files
    )
    with load_flow(kept, options, findings, variables, code_trusted=False) as (loaded, folder):
        check_new(FLOW_CYLC, options, loaded.graph, findings, check)
        if loaded.graph is None or findings.has_errors:
            raise InvalidDefinition(workflow, findings.sorted())
        given = read_variables(VariableTexts(values=variables), findings)
        return capture(loaded, folder, given).definition


def sealed_definition(sent: StoredDefinition) -> StoredDefinition:
    """Returns a definition that was captured elsewhere, with a digest that is made here.

    Raises InvalidDefinition if it is in Python, or has a path that leads out of its folder.
    """
    findings = Findings()
    if sent.kind == PYTHON:
        findings.error(
            "python-definition",
            "servers do not accept Python workflows, because loading one executes its code",
            "execute it on your own machine, which sends only the finished definition: "
            "tidewheel run "
            "FILE.py --server URL",
        )
    for message in path_findings(one.path for one in sent.files):
        findings.error("bad-path", message, "send paths such as bin/plot")
    if sent.kind == SIP and all(one.path != sent.text for one in sent.files):
        findings.error(
            "no-definition",
            f"the definition {sent.text[:100]!r} is not among the files",
            "text must be the path of the definition file; send this file with the files of "
            "the stages",
        )
    if findings.has_errors:
        raise InvalidDefinition(sent.workflow, findings.sorted())
    return sealed(sent)


def path_findings(paths: Iterable[str]) -> list[str]:
    """Returns what is wrong with the first FINDINGS_MAX bad paths; empty if all are right."""
    found: list[str] = []
    seen: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        found += (f"{path[:100]!r} {words}" for words in _wrong(path))
        if path in seen:
            found.append(f"{path[:100]!r} is there twice; include each path once")
        seen.add(path)
        if path.count("/") <= FOLDERS_DEEP_MAX:
            folders |= {str(above) for above in PurePosixPath(path).parents} - {"."}
        if len(found) >= FINDINGS_MAX:
            return found
    found += (f"{path[:100]!r} is both a file and a folder" for path in sorted(seen & folders))
    return found[:FINDINGS_MAX]


def _wrong(path: str) -> Iterator[str]:
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        yield "leads somewhere else, or is not a plain relative path"
    elif parts[0] in MADE_BY_RUNS:
        yield f"lies in {parts[0]}, which the run makes itself"
    if len(parts) > FOLDERS_DEEP_MAX + 1:
        yield f"lies more than {FOLDERS_DEEP_MAX} folders deep"
    if not path.isprintable():
        yield "has characters that cannot be printed"
    elif any(len(part.encode()) > NAME_BYTES_MAX for part in parts):
        yield f"has a name of more than {NAME_BYTES_MAX} bytes"
