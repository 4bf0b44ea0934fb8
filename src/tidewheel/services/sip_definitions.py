"""SIP definitions, as the commands about definitions want them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tidewheel.core.graph.checks import check_workflow
from tidewheel.core.graph.compile import compile_workflow
from tidewheel.core.graph.definition import WorkflowDef
from tidewheel.core.graph.findings import Findings, Severity
from tidewheel.core.graph.graph import Graph
from tidewheel.core.runs.definition import StoredFile
from tidewheel.sources.cycling.reader import CyclingReader
from tidewheel.sources.flow_cylc.families import ROOT, Families
from tidewheel.sources.flow_cylc.settings import FlowSettings
from tidewheel.sources.flow_cylc.source_text import SourceText, origin
from tidewheel.sources.flow_cylc.template_variables import read_variables
from tidewheel.sources.flow_cylc.workflow import LoadedWorkflow, LoadOptions
from tidewheel.sources.sip.definition_text import DefinitionText
from tidewheel.sources.sip.document import filled_text
from tidewheel.sources.sip.folder_reading import read_folder
from tidewheel.sources.sip.judging import Judgement, judge
from tidewheel.sources.sip.parameters import Values
from tidewheel.sources.sip.sip_source import SipSource
from tidewheel.sources.sip.translation import workflow_of


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Whether a definition can be registered, and whether it can run."""

    judgement: Judgement

    def document(self, *, strict: bool) -> dict[str, bool]:
        registrable = self._registrable(strict=strict)
        return {
            "registrable": registrable,
            "runnable": registrable and self.judgement.runnable,
        }

    def sentence(self, *, strict: bool) -> str:
        said = self.document(strict=strict)
        if not said["registrable"]:
            return "it cannot be registered"
        if not said["runnable"]:
            return "it can be registered, but it cannot run"
        needed = [one.name for one in self.judgement.specs if one.is_needed]
        given = f", given {', '.join(needed)}" if needed else ""
        return f"it can be registered and run{given}"

    def _registrable(self, *, strict: bool) -> bool:
        warned = any(one.severity is Severity.WARNING for one in self.judgement.findings)
        return self.judgement.registrable and not (strict and warned)


@dataclass(frozen=True, slots=True)
class JudgedSip:
    """A SIP definition as any other one, with what is known of it beside."""

    loaded: LoadedWorkflow
    verdicts: Verdicts | None = None
    judgement: Judgement | None = field(default=None, compare=False)


def load_sip_file(path: Path, how: LoadOptions, findings: Findings) -> JudgedSip:
    """Read, compiled and checked; template variables are the parameters of a request."""
    source = _read(path, findings)
    if source is None:
        return JudgedSip(LoadedWorkflow(source=_no_text(path), settings=FlowSettings()))
    judgement = judge(source, _request(how, findings))
    for one in judgement.all_findings():
        findings.add(one)
    text = _source_text(path, source, judgement.text)
    return JudgedSip(_loaded(text, judgement, findings), Verdicts(judgement), judgement)


def compiled(judgement: Judgement, findings: Findings) -> tuple[WorkflowDef, Graph] | None:
    """Definition and graph of what was judged; None if it cannot be registered."""
    if judgement.definition is None or not judgement.registrable:
        return None
    workflow, _ = workflow_of(judgement.definition, judgement.rendered)
    graph = compile_workflow(workflow, findings)
    check_workflow(workflow, graph, findings)
    return workflow, graph


def stored_files(source: SipSource) -> tuple[StoredFile, ...]:
    """All files of a definition, as they are kept with it."""
    return tuple(
        StoredFile(path, content, path in source.executable)
        for path, content in sorted(source.files.items())
    )


def source_of(file: str, files: Iterable[StoredFile]) -> SipSource:
    """A definition from what is kept of it."""
    kept = tuple(files)
    return SipSource(
        file=file,
        files={one.path: one.content for one in kept},
        executable=frozenset(one.path for one in kept if one.executable),
    )


def sip_text(path: Path, how: LoadOptions, findings: Findings) -> SourceText:
    """The text of a definition with its values."""
    return load_sip_file(path, how, findings).loaded.source


def sip_text_as_written(path: Path, findings: Findings) -> SourceText | None:
    source = _read(path, findings)
    if source is None:
        return None
    written = source.files[source.file].decode(errors="replace")
    return _source_text(path, source, DefinitionText(None, written))


def _read(path: Path, findings: Findings) -> SipSource | None:
    if not path.is_file():
        findings.error("no-such-file", f"there is no file {path}")
        return None
    return read_folder(path, findings)


def _request(how: LoadOptions, findings: Findings) -> Values | None:
    given = read_variables(how.source.variables, findings)
    return given or None  # type: ignore[return-value]  # checked by the judge


def _loaded(text: SourceText, judgement: Judgement, findings: Findings) -> LoadedWorkflow:
    found = compiled(judgement, findings)
    if found is None:
        return LoadedWorkflow(source=text, settings=FlowSettings())
    workflow, graph = found
    names = tuple(workflow.nodes)
    lineages = {name: node.lineage for name, node in workflow.nodes.items()}
    first = {name: ROOT for name in names}
    families = Families({name: (ROOT,) for name in names}, lineages, first, {ROOT: names})
    return LoadedWorkflow(
        source=text,
        settings=FlowSettings(nodes={**workflow.nodes, ROOT: workflow.root}, families=families),
        reader=CyclingReader(),
        workflow=workflow,
        graph=graph,
    )


def _source_text(path: Path, source: SipSource, text: DefinitionText) -> SourceText:
    files = (source.file, *(name for name in source.files if name != source.file))
    if text.rendered is None:
        lines = text.text.removesuffix("\n").split("\n")
        origins = [origin(0, number) for number in range(1, len(lines) + 1)]
        return SourceText(path.parent, files, lines, origins)
    rendered = text.rendered
    lines = [filled_text(line, rendered.values).replace("\n", "\\n") for line in rendered.lines]
    kept = [number for number, line in enumerate(lines) if line.strip()]
    return SourceText(
        path.parent,
        files,
        [lines[number] for number in kept],
        [origin(0, rendered.origins[number]) for number in kept],
        templated=True,
    )


def _no_text(path: Path) -> SourceText:
    return SourceText(path.parent, (path.name,), [], [])
