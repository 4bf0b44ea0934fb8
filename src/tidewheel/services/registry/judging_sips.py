"""The SIP definitions of a bundle, judged: it may hold several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidewheel.core.graph.findings import Findings, InvalidDefinition, Severity
from tidewheel.core.operator.definition import sealed
from tidewheel.core.operator.registry import NO_VERSION, Bundle
from tidewheel.formats.sip.bundle import sources_in
from tidewheel.formats.sip.definition_text import definitions_among
from tidewheel.formats.sip.judging import Judgement, judge
from tidewheel.formats.sip.parameters import ParameterSpec
from tidewheel.formats.sip.sip_source import SipSource
from tidewheel.ports.registry import Document
from tidewheel.services.definitions.sip import compiled, stored_sip
from tidewheel.services.definitions.stage_scripts import warn_of_scripts
from tidewheel.services.registry.judged import Judged, Manner, check_name


def judged_sips(bundle: Bundle, manner: Manner, *, is_named: bool) -> Iterator[Judged]:
    """Each of them; InvalidDefinition if there is none, or they are named from outside."""
    findings = Findings()
    found = sources_in(bundle.files, findings, bundle.executable)
    if is_named:
        findings.error(
            "name-of-file",
            "a SIP definition says its name and version itself, or its file's name does",
            "leave out name and version",
        )
    if bundle.file and all(bundle.file != source.file for source in found):
        findings.error(
            "no-definitions",
            f"there is no definition {bundle.file[:100]!r} among the files",
            "name a file that is sent, by its path, or none: then all are registered",
        )
    if findings.has_errors:
        raise InvalidDefinition(bundle.name or "bundle", findings)
    wanted = [one for one in found if one.file == bundle.file]
    for source in wanted or definitions_among(found):
        whole = replace(source, folders=source.folders | bundle.folders)
        judgement = judge(whole)
        warn_of_scripts(judgement)
        yield judged_sip(whole, judgement, strict=manner.strict)


def judged_sip(source: SipSource, judgement: Judgement, *, strict: bool = False) -> Judged:
    """What was found about a SIP definition, with or without a request."""
    findings = judgement.all_findings(strict=strict)
    definition = judgement.definition
    name = definition.id if definition is not None else source.file
    version = definition.version if definition is not None else NO_VERSION
    refusing = Findings()
    if definition is not None:
        compiled(judgement, refusing)
        check_name(name, version, source.file, refusing)
    for one in refusing:
        findings.add(one)
    warned = any(one.severity is Severity.WARNING for one in judgement.findings)
    registrable = judgement.registrable and not refusing.has_errors and not (strict and warned)
    return Judged(
        name=name,
        version=version,
        file=source.file,
        definition=sealed(stored_sip(source, name)),
        registrable=registrable,
        runnable=registrable and judgement.runnable,
        findings=tuple(findings.sorted()),
        parameters=tuple(map(_parameter, judgement.specs)),
    )


def _parameter(spec: ParameterSpec) -> Document:
    told: Document = {
        "name": spec.name,
        "required": spec.is_needed,
        "stages": list(spec.stages),
        "provided_by": list(spec.provided_by),
    }
    return told | ({"default": spec.default} if spec.has_default else {})
