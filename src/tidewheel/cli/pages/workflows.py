"""Prints what the registry answers, and scheduling block instances, blocks and objects."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidewheel.cli.output import (
    ColumnsOf,
    StyledWord,
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
from tidewheel.cli.pages.format import at, diff_lines, fact, moment, section
from tidewheel.cli.palette import BLOCK_STATUSES
from tidewheel.core.graph.findings import (
    WORKER_NEEDS,
    Finding,
    Findings,
    InvalidDefinition,
    Severity,
    finding_of,
)
from tidewheel.core.operator.views import undone_in
from tidewheel.errors import Refused
from tidewheel.quantities import show_size

if TYPE_CHECKING:
    from tidewheel.ports.runs import Document

Columns = ColumnsOf[Any]
INDENT = 2


def tell_refusal(
    error: InvalidDefinition, *, as_json: bool, left: str = "", folder: str = ""
) -> int:
    """Shows every finding of a definition that was refused, as `refuse` does; people are told
    its file in `folder`."""
    findings = Findings()
    for one in error.findings:
        findings.add(one if as_json else one.inside(folder))
    return refuse(findings, None, as_json=as_json, left=left)


def say_registered(document: Document, folder: str) -> None:
    """Prints for each definition whether it is new in the registry, and whether it can run.

    Findings go to standard error, with their files in `folder`.
    """
    for one in parts(document, "workflows"):
        show_findings([each.inside(folder) for each in remarks(one)], None, note)
        said = "registered" if one["is_new"] else "registered already, unchanged"
        say(f"{_name(one)}: {said}; {verdict(one)}")
        if source := one.get("source"):
            say(f"  from {source_text(source)}")


def source_text(source: Mapping[str, str]) -> str:
    """Returns where the files of a workflow were fetched from, and which they were."""
    at = f"@{source['ref']}" if source["ref"] else ""
    folder = f"#{source['folder']}" if source["folder"] else ""
    which = {"commit": source["commit"], "sha256": source["sha256"][:16]}
    known = ", ".join(f"{name} {text}" for name, text in which.items() if text)
    return safe(f"{source['url']}{at}{folder}" + (f" ({known})" if known else ""))


def verdict(one: Mapping[str, Any]) -> str:
    """Returns the part of a sentence that says whether a workflow can run."""
    if not one["runnable"]:
        return "it cannot run as it is"
    needed = needs(one)
    given = f"; each request must give {', '.join(needed)}" if needed else ""
    return f"it can run{given}{_worker_needs(one)}"


def _worker_needs(one: Mapping[str, Any]) -> str:
    """Returns what stages need of their workers, as the rest of a sentence; "" if nothing."""
    found = [
        safe(each["message"])
        for each in one.get("findings", ())
        if each["code"] == WORKER_NEEDS
    ]
    return f"; {'; '.join(found)}" if found else ""


def say_diff(told: Document) -> None:
    """Prints in which lines two versions differ, as `diff -u` does."""
    files = parts(told, "files")
    for line in diff_lines(files, str(told["version"]), str(told["against"])):
        say(line)
    if not files:
        note("both versions have the same files")


def say_versions(told: Document) -> None:
    """Prints the definitions that a run had, newest first, and the findings in its own."""
    columns: Columns = {
        "VERSION": "version",
        "TIME": at("at"),
        "RELOADED BY": "who",
        "DEFINITION": lambda one: str(one["definition"])[:12],
    }
    say_columns(parts(told, "versions"), columns)
    if found := remarks(told):
        say("findings")
        show_findings(found, None, say)


def say_workflow(one: Document) -> None:
    """Prints everything about one version of a workflow."""
    say(f"{_name(one)}  {safe(one['kind'])}; {verdict(one)}")
    say(f"registered {safe(moment(one, 'registered_at'))} by {safe(one['registered_by'])}")
    source: Any = one.get("source")
    if source:
        say(f"from {source_text(source)}")
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
    with_these += _worker_needs(one) if good else ""
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
            whole = "" if one["is_whole"] else ", some values are not known yet"
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


def _is_told(one: Finding) -> bool:
    """Says whether somebody who asks for blocks is told of a finding of their workflows."""
    return one.severity is not Severity.NOTE or one.code == WORKER_NEEDS


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
    told = [one for one in map(finding_of, parts(document, "findings")) if _is_told(one)]
    show_findings(told, None, note)
    count = plural(len(parts(document, "blocks")), "block")
    said = "accepted" if document["is_new"] else "already accepted, unchanged"
    if document["dry_run"] and document["is_new"]:
        said, count = "would be accepted", f"{count}; nothing was stored"
    say(f"{safe(document['id'])}: {said}, {count}")
    say_columns(parts(document, "blocks"), BLOCK_COLUMNS)


def say_sbi(document: Document) -> None:
    say(f"{safe(document['id'])}  {coloured(block_cell(document))}")
    fact("requested", f"{moment(document, 'requested_at')} by {document['requested_by']}")
    fact("instance of", document["scheduling_block"])
    fact("subarray", document["subarray_id"])
    fact("scans", str(document["scans"] or ""))
    fact("blocks", _counts(document))
    say_columns(parts(document, "blocks"), BLOCK_COLUMNS)


def _counts(one: Mapping[str, Any]) -> str:
    return ", ".join(f"{number} {plain_words(word)}" for word, number in one["counts"].items())


def plain_words(status: object) -> str:
    """Returns a status of SIP as people read it: waiting for resources."""
    return str(status).replace("_", " ")


# Statuses of runs that say no more than those of their blocks.
_USUAL = frozenset(("created", "running", "stalled", "stopped", "completed"))


def block_cell(one: Mapping[str, Any]) -> StyledWord:
    """Returns the status of a block or an instance; with that of a run where it says more."""
    status, run_status = str(one["status"]), str(one.get("run_status", "created"))
    more = "" if run_status in _USUAL else f" ({run_status})"
    undone = undone_in(str(one.get("reason", ""))).text
    words = [plain_words(status) + more, *([undone] if undone else [])]
    return StyledWord(", ".join(words), BLOCK_STATUSES.get(status))


def stage_cell(one: Mapping[str, Any]) -> StyledWord:
    """Returns the status of a stage, with how many of its elements have which state."""
    status, remarks = str(one["status"]), one["remarks"] if one["submit"] == 0 else ()
    told = [each for each in remarks if each[:1].isdigit() or each.startswith("of no")]
    word = plain_words(status) + (f" ({', '.join(told)})" if told else "")
    return StyledWord(word, BLOCK_STATUSES.get(status))


def _workflow(one: Mapping[str, Any]) -> str:
    version = one["version"]
    return safe(one["workflow"] + (f"/{version}" if version else ""))


BLOCK_COLUMNS: Columns = {
    "BLOCK": "id",
    "STATUS": block_cell,
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
        {
            "INSTANCE": "id",
            "STATUS": block_cell,
            "BLOCKS": _counts,
            "SUBARRAY": lambda one: one["subarray_id"] or "",
            "REQUESTED": at("requested_at"),
            "BY": "requested_by",
        },
        "there are no scheduling block instances; submit one: tidewheel sbi submit FILE",
    ),
    "blocks": (BLOCK_COLUMNS, "there are no blocks; submit some: tidewheel sbi submit FILE"),
    "objects": (
        {
            "OBJECT": "name",
            "POSTED": at("posted_at"),
            "BY": "posted_by",
            "FACTS": lambda one: ", ".join(f"{name}={it}" for name, it in one["facts"].items()),
        },
        "there are no objects; post one: tidewheel objects post NAME",
    ),
}


def say_list(document: Document) -> None:
    """Prints the workflows, instances, blocks or objects that a document lists."""
    [name] = LISTS.keys() & document.keys()
    say_found(parts(document, name), *LISTS[name])


def say_filtered(document: Document) -> None:
    """Prints what a filter has left; there may be others."""
    [name] = LISTS.keys() & document.keys()
    say_found(parts(document, name), LISTS[name][0], f"no {FILTERED[name]} match the filter")


FILTERED = {"sbis": "instances", "blocks": "blocks"}


def _because(one: Mapping[str, Any]) -> str:
    if one["error"] and one["status"] == "failed":
        return str(one["error"])
    return "; ".join([one["error"]] * bool(one["error"]) + one["why"])


STAGE_COLUMNS: Columns = {
    "STAGE": lambda one: one["stage"] or f"(object {one['object']})",
    "STATUS": stage_cell,
    "SUBMIT": lambda one: str(one["submit"] or ""),
    "STARTED": at("started_at"),
    "ENDED": at("ended_at"),
    "BECAUSE": _because,
}


def say_block(one: Document) -> None:
    """Prints everything about one processing block."""
    say(f"block {safe(one['id'])}  {coloured(block_cell(one))}")
    fact("because", "" if one["reason"] == one["status"] else one["reason"])
    for text in parts(one, "why"):
        fact("because", text)
    fact("instance", one["sbi"])
    fact("workflow", _workflow(one))
    fact("type", one["type"])
    fact("priority", str(one["priority"]))
    for text in parts(one, "waits"):
        fact("never" if one["never"] else "waits for", text)
    fact("requested", moment(one, "created_at"))
    fact("ended", moment(one, "ended_at"))
    section("stages")
    say_columns(parts(one, "stages"), STAGE_COLUMNS, indent=INDENT)
    handed_on = [stage for stage in parts(one, "stages") if stage["values"]]
    if handed_on:
        section("values")
        for stage in handed_on:
            for name, value in stage["values"].items():
                say(f"  {safe(stage['stage'])}: {safe(name)} = {safe(value)}")


EVENT_COLUMNS: Columns = {
    "AT": at("at"),
    "STAGE": lambda one: one["stage"] or "",
    "EVENT": lambda one: plain_words(one["event"]),
    "SUBMIT": lambda one: str(one["submit"] or ""),
    "": "text",
}


def say_history(document: Document) -> None:
    say(f"block {safe(document['id'])}  {coloured(block_cell(document))}")
    say_columns(parts(document, "events"), EVENT_COLUMNS, indent=INDENT)


def say_aborted(one: Document) -> None:
    status, name = safe(plain_words(one["status"])), safe(one["id"])
    if not one["changed"]:
        say(f"{name} was already {status}; nothing was changed")
    elif one["status"] == "aborted":
        say(f"{name} is {safe(one['reason'])}")
    else:
        say(f"{name} is being aborted: its running stages are being ended, and no others start")


def say_aborted_sbi(document: Document) -> None:
    """Prints for each block of an instance what became of it."""
    for one in parts(document, "blocks"):
        if one["refused"]:
            note(f"{safe(one['id'])} is not aborted: {safe(one['refused'])}")
        else:
            say_aborted(one)


def say_names(document: Document, became: str) -> None:
    """Prints the names of objects, and what became of them."""
    found = [safe(one["name"]) for one in parts(document, "objects")]
    say(f"{', '.join(found)}: {became}")
