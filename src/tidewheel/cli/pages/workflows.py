"""Prints what the registry answers, and scheduling block instances, blocks and objects."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidewheel.cli.output import (
    ColumnsOf,
    coloured,
    note,
    plural,
    safe,
    safe_lines,
    say,
    say_columns,
    say_found,
)
from tidewheel.cli.pages.findings import refuse, show_findings
from tidewheel.cli.pages.format import at, fact, moment, section, state_cell, status_cell
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

Columns = ColumnsOf[Any]
INDENT = 2


def tell_refusal(error: InvalidDefinition, *, as_json: bool) -> int:
    """Shows every finding of a definition that was refused, and returns the exit status."""
    findings = Findings()
    for one in error.findings:
        findings.add(one)
    return refuse(findings, None, as_json=as_json)


def say_registered(document: Document) -> None:
    """Prints for each definition whether it is new in the registry, and whether it can run.

    Findings go to standard error.
    """
    for one in parts(document, "workflows"):
        show_findings(remarks(one), None, note)
        said = "registered" if one["is_new"] else "registered already, unchanged"
        say(f"{_name(one)}: {said}; {verdict(one)}")


def verdict(one: Mapping[str, Any]) -> str:
    """Returns the part of a sentence that says whether a workflow can run."""
    if not one["runnable"]:
        return "it cannot run as it is"
    needed = needs(one)
    return f"it can run, given {', '.join(needed)}" if needed else "it can run"


def say_workflow(one: Document) -> None:
    """Prints everything about one version of a workflow."""
    say(f"{_name(one)}  {safe(one['kind'])}; {verdict(one)}")
    say(f"registered {safe(moment(one, 'registered_at'))} by {safe(one['registered_by'])}")
    others = [text for text in _texts(one["versions"]) if text != one["version"]]
    if others:
        say(f"other versions: {', '.join(others)}")
    if found := parts(one, "parameters"):
        say("parameters")
        columns: Columns = {
            "NAME": "name",
            "DEFAULT": _value,
            "STAGES": lambda each: ", ".join(_texts(each["stages"])),
        }
        say_columns(found, columns, indent=INDENT)
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


def say_removed(one: Document) -> None:
    say(f"removed {_name(one)}")


def say_rendered(document: Document, stage: str | None) -> None:
    """Prints the rendered text and what each stage executes, or only what the named stage
    does."""
    found: Any = document["stages"]
    if stage is None:
        say(safe_lines(str(document["text"])).rstrip("\n"))
    for name, one in found.items():
        if stage in (None, name):
            whole = "" if one["is_whole"] else ", with values still to come"
            say(f"# stage {safe(name)}{whole}")
            for key in ("compose", "script"):
                if key in one:
                    say(safe_lines(str(one[key])).rstrip("\n"))
            if "command" in one:
                say(safe(shlex.join(map(str, one["command"]))))


def check_stage(document: Document, stage: str) -> None:
    """Raises Refused if what was rendered has no such stage; else nothing would be printed."""
    found: Any = document["stages"]
    if stage not in found:
        there = ", ".join(map(safe, found)) or "none"
        raise Refused(f"{_name(document)} has no stage {safe(stage)!r}; it has {there}")


def needs(one: Mapping[str, Any]) -> list[str]:
    """Returns the names of the parameters that every request must give."""
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


def _texts(found: Any) -> list[str]:  # noqa: ANN401 - a list of a document
    return [safe(one) for one in found]


# ---- scheduling block instances, processing blocks and objects ----


def say_submitted(document: Document) -> None:
    """Prints what was accepted; findings about it go to standard error."""
    show_findings(remarks(document), None, note)
    count = plural(len(parts(document, "blocks")), "block")
    said = "accepted" if document["is_new"] else "accepted before, unchanged"
    say(f"{safe(document['id'])}: {said}, {count}")
    say_columns(parts(document, "blocks"), BLOCK_COLUMNS)


def say_sbi(document: Document) -> None:
    say(safe(document["id"]))
    fact("requested", f"{moment(document, 'requested_at')} by {document['requested_by']}")
    say_columns(parts(document, "blocks"), BLOCK_COLUMNS)


def _workflow(one: Mapping[str, Any]) -> str:
    version = one["version"]
    return safe(one["workflow"] + (f"/{version}" if version else ""))


BLOCK_COLUMNS: Columns = {
    "BLOCK": "id",
    "STATUS": lambda one: status_cell(one["status"]),
    "PRIORITY": "priority",
    "WORKFLOW": _workflow,
    "CHANGED": at("updated_at"),
    "WAITS FOR": lambda one: (
        ("never begins: " if one["never"] else "") + "; ".join(one["waits"])
    ),
}
LISTS: dict[str, tuple[Columns, str]] = {
    "workflows": (
        {
            "WORKFLOW": "name",
            "VERSION": "version",
            "KIND": "kind",
            "RUNS": lambda one: "yes" if one["runnable"] else "no",
            "NEEDS": lambda one: ", ".join(needs(one)),
            "REGISTERED": at("registered_at"),
            "BY": "registered_by",
        },
        "no workflow is registered; register some: tidewheel register PATH",
    ),
    "sbis": (
        {"INSTANCE": "id", "REQUESTED": at("requested_at"), "BY": "requested_by"},
        "nothing was asked for yet: tidewheel sbi submit FILE",
    ),
    "blocks": (BLOCK_COLUMNS, "there are no blocks; ask for some: tidewheel sbi submit FILE"),
    "objects": (
        {
            "OBJECT": "name",
            "POSTED": at("posted_at"),
            "BY": "posted_by",
            "FACTS": lambda one: ", ".join(f"{name}={it}" for name, it in one["facts"].items()),
        },
        "no object is there; post one: tidewheel objects post NAME",
    ),
}


def say_list(document: Document) -> None:
    """Prints the workflows, instances, blocks or objects that a document lists."""
    [name] = LISTS.keys() & document.keys()
    say_found(parts(document, name), *LISTS[name])


STAGE_COLUMNS: Columns = {
    "STAGE": lambda one: one["stage"] or f"(object {one['object']})",
    "STATE": state_cell,
    "SUBMIT": lambda one: str(one["submit"] or ""),
    "STARTED": at("started_at"),
    "ENDED": at("ended_at"),
    "BECAUSE": lambda one: one["error"] or "; ".join(one["why"]),
}


def say_block(one: Document) -> None:
    """Prints everything about one processing block."""
    say(f"block {safe(one['id'])}  {coloured(status_cell(one['status']))}")
    fact("because", one["reason"])
    fact("instance", one["sbi"])
    fact("workflow", _workflow(one))
    fact("type", one["type"])
    fact("priority", str(one["priority"]))
    for text in parts(one, "waits"):
        fact("never" if one["never"] else "waits for", text)
    fact("asked for", moment(one, "created_at"))
    fact("ended", moment(one, "ended_at"))
    section("stages")
    say_columns(parts(one, "stages"), STAGE_COLUMNS, indent=INDENT)
    handed_on = [stage for stage in parts(one, "stages") if stage["values"]]
    if handed_on:
        section("values")
        for stage in handed_on:
            for name, value in stage["values"].items():
                say(f"  {safe(stage['stage'])}: {safe(name)} = {safe(value)}")


def say_aborted(one: Document) -> None:
    status, name = safe(one["status"]), safe(one["id"])
    if not one["changed"]:
        say(f"{name} was {status} already")
    elif one["status"] == "stopped":
        say(f"{name} is stopped: {safe(one['reason'])}")
    else:
        say(f"{name} is being aborted: its stages are ended, nothing else starts")


def say_names(document: Document, became: str) -> None:
    """Prints the names of objects, and what became of them."""
    found = [safe(one["name"]) for one in parts(document, "objects")]
    say(f"{', '.join(found)}: {became}")
