"""Scheduling block instances, processing blocks and objects, as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidewheel.cli.output import Row, looking_word, note, plural, safe, say, say_table
from tidewheel.cli.pages.findings import show_findings
from tidewheel.cli.pages.format import fact, moment, section, state_cell, status_cell
from tidewheel.cli.pages.workflows import parts, remarks

if TYPE_CHECKING:
    from tidewheel.ports.runs import Document

BLOCK_HEADERS = ("BLOCK", "STATUS", "PRIORITY", "WORKFLOW", "CHANGED", "WAITS FOR")
STAGE_HEADERS = ("STAGE", "STATE", "SUBMIT", "STARTED", "ENDED", "BECAUSE")
INDENT = 2


def say_submitted(document: Document) -> None:
    """Prints what was accepted; findings about it go beside the answer."""
    show_findings(remarks(document), None, note)
    count = plural(len(parts(document, "blocks")), "block")
    said = "accepted" if document["is_new"] else "accepted before, unchanged"
    say(f"{safe(document['id'])}: {said}, {count}")
    _say_blocks(parts(document, "blocks"))


def say_sbis(document: Document) -> None:
    rows: list[Row] = [
        (safe(one["id"]), moment(one, "requested_at"), safe(one["requested_by"]))
        for one in parts(document, "sbis")
    ]
    if rows:
        say_table(("INSTANCE", "REQUESTED", "BY"), rows)
    else:
        note("nothing was asked for yet: tidewheel sbi submit FILE")


def say_sbi(document: Document) -> None:
    say(safe(document["id"]))
    fact("requested", f"{moment(document, 'requested_at')} by {document['requested_by']}")
    _say_blocks(parts(document, "blocks"))


def say_blocks(document: Document) -> None:
    found = parts(document, "blocks")
    if found:
        _say_blocks(found)
    else:
        note("there are no blocks; ask for some: tidewheel sbi submit FILE")


def _say_blocks(found: list[dict[str, Any]]) -> None:
    rows: list[Row] = [
        (
            safe(one["id"]),
            status_cell(one["status"]),
            str(one["priority"]),
            _workflow(one),
            moment(one, "updated_at"),
            _waits(one),
        )
        for one in found
    ]
    say_table(BLOCK_HEADERS, rows)


def _workflow(one: Mapping[str, Any]) -> str:
    version = one["version"]
    return safe(one["workflow"] + (f"/{version}" if version else ""))


def _waits(one: Mapping[str, Any]) -> str:
    never = "never begins: " if one["never"] else ""
    return safe(never + "; ".join(one["waits"]))


def say_block(one: Document) -> None:
    """Everything about one block."""
    say(f"block {safe(one['id'])}  {looking_word(status_cell(one['status']))}")
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
    rows: list[Row] = [_stage_row(stage) for stage in parts(one, "stages")]
    say_table(STAGE_HEADERS, rows, indent=INDENT)
    handed_on = [stage for stage in parts(one, "stages") if stage["values"]]
    if handed_on:
        section("values")
        for stage in handed_on:
            for name, value in stage["values"].items():
                say(f"  {safe(stage['stage'])}: {safe(name)} = {safe(value)}")


def _stage_row(stage: Mapping[str, Any]) -> Row:
    name = stage["stage"] or f"(object {stage['object']})"
    because = stage["error"] or "; ".join(stage["why"])
    return (
        safe(name),
        state_cell(stage),
        str(stage["submit"] or ""),
        moment(stage, "started_at"),
        moment(stage, "ended_at"),
        safe(because),
    )


def say_aborted(one: Document) -> None:
    status, name = safe(one["status"]), safe(one["id"])
    if not one["changed"]:
        say(f"{name} was {status} already")
    elif one["status"] == "stopped":
        say(f"{name} is stopped: {safe(one['reason'])}")
    else:
        say(f"{name} is being aborted: its stages are ended, nothing else starts")


def say_objects(document: Document) -> None:
    rows: list[Row] = [
        (safe(one["name"]), moment(one, "posted_at"), safe(one["posted_by"]), _facts(one))
        for one in parts(document, "objects")
    ]
    if rows:
        say_table(("OBJECT", "POSTED", "BY", "FACTS"), rows)
    else:
        note("no object is there; post one: tidewheel objects post NAME")


def _facts(one: Mapping[str, Any]) -> str:
    return safe(", ".join(f"{name}={value}" for name, value in one["facts"].items()))
