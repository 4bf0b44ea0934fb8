"""The door to SIP definitions: texts of files in, verdicts, findings and graphs out."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent

from tidewheel.core.graph.checks import check_workflow
from tidewheel.core.graph.compile import compile_workflow
from tidewheel.core.graph.findings import WORKER_NEEDS, Finding, Findings, Severity
from tidewheel.core.graph.graph import Graph
from tidewheel.formats.sip.document import plain_value
from tidewheel.formats.sip.parameters import StagePart
from tidewheel.formats.sip.text_files import SipSource, read_plain
from tidewheel.formats.sip.translation import workflow_of
from tidewheel.formats.sip.validation import Validation, validate
from tidewheel.services.definitions.sip import note_needs

COMPOSE = """
version: '3.7'
services:
  work:
    image: busybox:1.36
"""
HEAD = "schema_version: '2.0'\nstages:\n"
A_STAGE = """\
  - id: a
    version: 1.0.0
    type: setup
    timeout: 60s
    resources_required: []
"""


def stage(name: str, *needs: str, more: str = "") -> str:
    """A stage that needs `other complete` or `object:name present`."""
    lines = [
        f"  - id: {name}",
        "    version: 1.0.0",
        "    type: processing",
        "    timeout: 60s",
        "    resources_required: []",
    ]
    if needs:
        lines.append("    dependencies:")
    for need in needs:
        value, condition = need.split()
        kind = "buffer_object" if value.startswith("object:") else "stage"
        value = value.removeprefix("object:")
        lines.append(f"      - {{type: {kind}, value: {value}, condition: {condition}}}")
    return "\n".join([*lines, *(f"    {line}" for line in more.splitlines())]) + "\n"


def definition(*stages: str) -> str:
    return HEAD + "".join(stages) if stages else "schema_version: '2.0'\nstages: []\n"


def sip(
    text: str,
    folders: Mapping[str, Mapping[str, str]] | None = None,
    *,
    file: str = "flow-1.0.0.yaml",
    version: str = "1.0.0",
) -> SipSource:
    """A definition with the files of its stages: {"a": {"docker_compose.yaml": …}}."""
    files = {file: dedent(text).encode()}
    for name, inside in (folders or {}).items():
        for path, content in inside.items():
            files[f"stages/{name}/{version}/{path}"] = dedent(content).encode()
    return SipSource(file=file, files=files)


def with_compose(*names: str, **others: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Folders with nothing but a compose file, and some with more."""
    folders = {name: {"docker_compose.yaml": COMPOSE} for name in names}
    for name, files in others.items():
        folders[name] = {"docker_compose.yaml": COMPOSE, **files}
    return folders


def judged(text: str, *names: str, request: Mapping[str, object] | None = None) -> Validation:
    """A definition whose stages have compose files."""
    return validate(sip(text, with_compose(*names)), request)


def found(findings: Findings, severity: Severity | None = None) -> list[Finding]:
    return [one for one in findings.sorted() if severity in (None, one.severity)]


def codes(findings: Findings, severity: Severity | None = None) -> list[str]:
    return [one.code for one in found(findings, severity)]


def lines(findings: Findings) -> list[tuple[str, int]]:
    """Code and line of each finding, in the order of the report."""
    return [(one.code, one.position.line) for one in findings.sorted()]


def parts(judgement: Validation, *names: str) -> list[StagePart]:
    """Stages that are due."""
    assert judgement.definition is not None
    found = [judgement.definition.stage(name) for name in names]
    return [StagePart(stage=one) for one in found if one is not None]


def yaml_value(text: str | None) -> object:
    """What a reader of YAML 1.2 sees in a text."""
    findings = Findings()
    assert text is not None
    node = read_plain("text.yaml", text, findings)
    assert node is not None and not list(findings)
    return plain_value(node)


def graph_of(judgement: Validation) -> Graph:
    """What a scheduler runs."""
    findings = Findings()
    assert judgement.runnable, [str(one) for one in judgement.all_findings().sorted()]
    assert judgement.definition is not None
    workflow, _ = workflow_of(judgement.definition, judgement.rendered)
    graph = compile_workflow(workflow, findings)
    check_workflow(workflow, graph, findings)
    assert not list(findings), [str(one) for one in findings]
    return graph


def graph(*stages: str) -> Graph:
    """The graph of stages, each with a compose file."""
    text = definition(*stages)
    names = [line.split()[-1] for line in text.splitlines() if line.startswith("  - id:")]
    return graph_of(judged(text, *names))


def service(*lines: str) -> str:
    """A compose file with one service, work; line 5 is the first of these."""
    own = "".join(f"    {line}\n" for line in lines)
    return f"version: '3.7'\nservices:\n  work:\n    image: busybox\n{own}"


def needed(compose: str, resources: str = "[]", **files: str) -> list[Finding]:
    """What is told of the needs of stage a, which has this compose file and these files."""
    text = stage("a").replace("required: []", f"required: {resources}")
    folder = {"docker_compose.yaml": compose, **files}
    source = sip(definition(text), {"a": folder})
    judgement = validate(source)
    assert judgement.runnable, [str(one) for one in judgement.findings]
    note_needs(judgement, source)
    return [one for one in judgement.findings if one.code == WORKER_NEEDS]


def needs(compose: str, resources: str = "[]") -> list[str]:
    return [one.message for one in needed(compose, resources)]
