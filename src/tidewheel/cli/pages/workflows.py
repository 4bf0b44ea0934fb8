"""Prints what the registry answers."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tidewheel.cli.output import Row, note, safe, safe_lines, say, say_table
from tidewheel.cli.pages.findings import refuse, show_findings
from tidewheel.cli.pages.format import moment
from tidewheel.core.graph.findings import (
    Finding,
    Findings,
    InvalidDefinition,
    Severity,
    finding_of,
)
from tidewheel.errors import Refused
from tidewheel.quantities import show_size

if TYPE_CHECKING:
    from tidewheel.ports.runs import Document

HEADERS = ("WORKFLOW", "VERSION", "KIND", "RUNS", "NEEDS", "REGISTERED", "BY")
INDENT = 2


def tell_refusal(error: InvalidDefinition, *, as_json: bool) -> int:
    """Every finding, and the exit status."""
    findings = Findings()
    for one in error.findings:
        findings.add(one)
    return refuse(findings, None, as_json=as_json)


def say_registered(document: Document) -> None:
    """Each definition with both verdicts; what was found about it goes beside the answer."""
    for one in parts(document, "workflows"):
        show_findings(remarks(one), None, note)
        said = "registered" if one["is_new"] else "registered already, unchanged"
        say(f"{_name(one)}: {said}; {verdict(one)}")


def verdict(one: Mapping[str, Any]) -> str:
    """Returns whether it can run, as a part of a sentence."""
    if not one["runnable"]:
        return "it cannot run as it is"
    needed = needs(one)
    return f"it can run, given {', '.join(needed)}" if needed else "it can run"


def say_list(document: Document) -> None:
    rows: list[Row] = [
        (
            safe(one["name"]),
            safe(one["version"]),
            safe(one["kind"]),
            "yes" if one["runnable"] else "no",
            ", ".join(needs(one)),
            safe(moment(one, "registered_at")),
            safe(one["registered_by"]),
        )
        for one in parts(document, "workflows")
    ]
    if rows:
        say_table(HEADERS, rows)
    else:
        note("no workflow is registered; register some: tidewheel register PATH")


def say_workflow(one: Document) -> None:
    """Everything about one version."""
    say(f"{_name(one)}  {safe(one['kind'])}; {verdict(one)}")
    say(f"registered {safe(moment(one, 'registered_at'))} by {safe(one['registered_by'])}")
    others = [text for text in _texts(one["versions"]) if text != one["version"]]
    if others:
        say(f"other versions: {', '.join(others)}")
    if found := parts(one, "parameters"):
        say("parameters")
        rows = [(safe(each["name"]), _value(each), _stages(each)) for each in found]
        say_table(("NAME", "DEFAULT", "STAGES"), rows, indent=INDENT)
    say("files")
    for file in parts(one, "files"):
        say(f"  {safe(file['path'])}  {show_size(int(file['size']))}")
    if found_here := remarks(one):
        say("findings")
        show_findings(found_here, None, say)


def say_checked(one: Document, *, is_request: bool) -> None:
    show_findings(remarks(one), None, say)
    good = bool(one["runnable"])
    with_these = f"it {'can' if good else 'cannot'} run with these parameters"
    say(f"{_name(one)}: {with_these if is_request else verdict(one)}")


def say_rendered(document: Document, stage: str | None) -> None:
    """The text, then what each stage executes; of a stage that is named, only that."""
    found: Any = document["stages"]
    if stage is None:
        say(safe_lines(str(document["text"])).rstrip("\n"))
    for name, one in found.items():
        if stage in (None, name):
            _say_stage(name, one)


def check_stage(document: Document, stage: str) -> None:
    """Refused if what was rendered has no such stage: nothing would be no answer."""
    found: Any = document["stages"]
    if stage not in found:
        there = ", ".join(map(safe, found)) or "none"
        raise Refused(f"{_name(document)} has no stage {safe(stage)!r}; it has {there}")


def _say_stage(name: str, one: Mapping[str, Any]) -> None:
    say(f"# stage {safe(name)}" + ("" if one["is_whole"] else ", with values still to come"))
    for key in ("compose", "script"):
        if key in one:
            say(safe_lines(str(one[key])).rstrip("\n"))
    if "command" in one:
        say(safe(shlex.join(map(str, one["command"]))))


def needs(one: Mapping[str, Any]) -> list[str]:
    """The names of parameters that every request must give."""
    return [safe(each["name"]) for each in parts(one, "parameters") if each["required"]]


def parts(document: Mapping[str, object], name: str) -> list[dict[str, Any]]:
    found: Any = document.get(name, [])
    return list(found)


def remarks(one: Mapping[str, Any]) -> list[Finding]:
    """Returns the findings that should be read: errors and warnings."""
    found = map(finding_of, parts(one, "findings"))
    return [finding for finding in found if finding.severity is not Severity.NOTE]


def _name(one: Mapping[str, Any]) -> str:
    return f"{safe(one['name'])}/{safe(one['version'])}"


def _value(parameter: Mapping[str, Any]) -> str:
    from tidewheel.exact_json import encode

    if "default" in parameter:
        return safe(encode(parameter["default"]))
    given = _texts(parameter["provided_by"])
    return f"(from {', '.join(given)})" if given else "(must be given)"


def _stages(parameter: Mapping[str, Any]) -> str:
    return ", ".join(_texts(parameter["stages"]))


def _texts(found: object) -> list[str]:
    assert isinstance(found, Iterable)
    return [safe(one) for one in found]
