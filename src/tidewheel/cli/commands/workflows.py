"""Defines commands of the registry and of blocks: register, workflows, sbi, blocks, objects."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import note
from tidewheel.cli.pages import workflows as page
from tidewheel.cli.session import (
    Session,
    Words,
    ask_client,
    check_action,
    option,
    session_command,
)
from tidewheel.core.graph.findings import InvalidDefinition

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.ports.runs import Document

REGISTER_EPILOG = """\b
Examples:
  tidewheel register workflows                 every definition in a folder, or none
  tidewheel register vis-ingest-1.0.0.yaml.j2  one definition, with the folders of its stages
  tidewheel register my-workflow --version 2.1.0      a folder with a flow.cylc
  tidewheel register workflows --server https://tide.example.org
  tidewheel register git+https://git.example.org/team/imaging.git@v1.2#workflows
  tidewheel register https://git.example.org/team/imaging-1.2.tar.gz#workflows
Then: tidewheel workflows, tidewheel run NAME
"""


@session_command("register", epilog=REGISTER_EPILOG)
@click.argument("paths", nargs=-1, required=True, metavar="PATH|URL...", type=click.Path())
@option("--strict", "Treat warnings as errors.")
@option(
    "--name TEXT",
    "The name of a flow.cylc or Python workflow. [default: the name of the folder, or "
    "of the Workflow object]",
    default="",
)
@option(
    "--version TEXT",
    "The version of a flow.cylc or Python workflow. [default: `version` of [meta], else 0.0.0]",
    default="",
)
def register_command(
    session: Session, paths: Words, *, strict: bool, name: str, version: str
) -> int:
    """Register workflows: SIP definitions with their stages, flow.cylc folders, Python files.

    PATH is a file, or a folder with several definitions. URL is an archive (.tar.gz, .zip) or,
    with git+ before it, a repository. @REF names a branch, tag or commit of the repository.
    #FOLDER names a folder or a file in the archive or repository. This command, not a server,
    fetches the files, and executes none of their code.
    Either all definitions are registered or none. The store keeps copies of all their files, so
    a run no longer needs the originals. Registering the same content again changes
    nothing; other content under the same name and version is refused. A definition that cannot
    run as it is can still be registered; the output says what would have to change.
    """
    from tidewheel.cli.definitions import told_if_slow
    from tidewheel.client.runs import bundles_at

    folder = _only_folder(paths)
    try:
        # In this thread, the only one that Ctrl-C ends: a Python file may have no end.
        with told_if_slow(*map(Path, paths)):
            found = bundles_at(paths, name, version)
        told = session.ask_or_make(
            lambda client: client.workflows.register_bundles(found, strict=strict)
        )
    except InvalidDefinition as error:
        left = "nothing was registered"
        return page.tell_refusal(error, as_json=session.as_json, left=left, folder=folder)
    return session.answer(told, partial(page.say_registered, folder=folder))


def _only_folder(paths: Words) -> str:
    """Returns the one folder of this machine that these files are in, as it was typed, else
    "": findings name the folder themselves where there are several."""
    found = {one if one.is_dir() else one.parent for one in map(Path, paths) if one.exists()}
    return str(*found) if len(found) == 1 else ""


WORKFLOW_OPTIONS = {"texts": "check and render", "stage": "render"}  # and what takes them
ACTIONS = ("list", "show", "check", "render", "diff", "remove")


@session_command(
    "workflows",
    "workflows",
    "workflows show vis-ingest",
    "workflows check vis-ingest/1.0.0 -p nodes=4",
    "workflows render vis-ingest -p nodes=4 --stage ingest",
    "workflows diff vis-ingest/1.0.0 1.1.0",
    "workflows remove vis-ingest/1.0.0",
)
@click.argument("action", type=click.Choice(ACTIONS), default="list")
@click.argument("name", metavar="[NAME[/VERSION]]", default="")
@click.argument("against", metavar="[VERSION]", default="")
@option("-p --parameter texts NAME=VALUE...", "A parameter of a request: JSON, else a string.")
@option(
    "-P --parameters file",
    "A JSON or YAML file of parameters.",
    type=click.Path(path_type=Path),
)
@option("--stage ID", "Render only this stage.")
def workflows_command(  # noqa: PLR0913 - each an option
    session: Session,
    action: str,
    name: str,
    against: str,
    *,
    texts: Words,
    file: Path | None,
    stage: str | None,
) -> int:
    """List registered workflows, or show, check, render, compare or remove one.

    Without a version, the highest version is used; to remove one of several versions, name the
    version. `check` says whether a run could start with the given parameters; `render` prints
    what this run would execute; `diff` prints in which lines another version differs. Removing
    a workflow does not affect its runs. Exit 2 if `check` finds that no run could start.
    """
    if action != "list" and not name:
        raise click.UsageError(f"say which: tidewheel workflows {action} NAME[/VERSION]")
    if action == "diff" and not against:
        raise click.UsageError(
            "diff takes two versions: tidewheel workflows diff NAME/VERSION VERSION"
        )
    if action != "diff" and against:
        raise click.UsageError(
            f"{action} takes one name; write the version behind a slash: tidewheel workflows "
            f"{action} NAME/VERSION"
        )
    check_action(action, WORKFLOW_OPTIONS)
    given: dict[str, object] | None = None  # no request, which lacks nothing
    if texts or file is not None:
        from tidewheel.formats.sip.parameters import read_parameters

        given = read_parameters(texts, file)
    shows: dict[str, Callable[[Document], None]] = {
        "list": page.say_list,
        "show": page.say_workflow,
        "check": partial(page.say_checked, is_request=given is not None),
        "render": partial(page.say_rendered, stage=stage),
        "diff": page.say_diff,
        "remove": page.say_removed,
    }
    # NAME/VERSION is understood as well, as it is printed elsewhere.
    other = against.removeprefix(f"{name.partition('/')[0]}/")
    more = {"check": (given,), "render": (given,), "diff": (other,)}
    asked = (name, *more.get(action, ()))
    told: Document = session.ask(lambda one: getattr(one.workflows, action)(*asked))
    if action == "render" and stage is not None:
        page.check_stage(told, stage)
    session.answer(told, shows[action])
    return ExitCode.REFUSED if action == "check" and not told["runnable"] else ExitCode.DONE


# ---- `sbi` (scheduling block instances), `blocks` and `objects` ----

STDIN = "-"
LIMIT = click.IntRange(1, 1_000)
# The actions that take an option, by its parameter.
SBI_OPTIONS = {
    **dict.fromkeys(("status", "subarray", "limit"), "list"),
    "dry_run": "submit",
    "reason": "abort",
}
BLOCK_OPTIONS = {
    **dict.fromkeys(("sbi", "status", "workflow"), "list"),
    "history": "show",
    "reason": "abort",
}
OBJECT_OPTIONS = {"facts": "post", "after": "list", "limit": "list"}


@session_command(
    "sbi",
    "sbi submit observation.json --dry-run",
    "sbi submit observation.json",
    "sbi --status running",
    "sbi show SBI-20261115-sip-0001",
    'sbi abort SBI-20261115-sip-0001 --reason "wrong field"',
)
@click.argument(
    "action", type=click.Choice(("list", "submit", "show", "abort")), default="list"
)
@click.argument("what", metavar="[FILE|ID]", default="")
@option("--status TEXT", "List only scheduling block instances with this status.")
@option("--subarray ID", "List only scheduling block instances of this subarray.")
@option("--dry-run", "Check the file, and store nothing.")
@option(
    "--reason TEXT",
    "With abort: the reason; all users who can see the scheduling block instance can read it.",
    default="",
)
@option("--limit", "The maximum number of instances to list.", type=LIMIT, default=100)
def sbi_command(  # noqa: PLR0913 - each an option
    session: Session,
    action: str,
    what: str,
    *,
    status: str | None,
    subarray: str | None,
    dry_run: bool,
    reason: str,
    limit: int,
) -> int:
    """List, show or abort scheduling block instances, or submit one from a JSON or YAML file.

    `submit` accepts all processing blocks of FILE or none, and reports every mistake at once.
    Submitting the same content again changes nothing. Each block is a run of a registered
    workflow; it needs a scheduler: tidewheel up, or tidewheel scheduler. FILE may be - for
    standard input. `abort` ends every block that has not ended; exit 1 if a block could not be
    aborted.
    """
    if action != "list" and not what:
        missing = "FILE" if action == "submit" else "ID"
        raise click.UsageError(f"say which: tidewheel sbi {action} {missing}")
    if action == "list" and what:
        raise click.UsageError(f"list takes no id; write: tidewheel sbi show {what}")
    check_action(action, SBI_OPTIONS)
    if action == "submit":
        from tidewheel.wiring.stores import is_remote

        told = _submit(session, what, dry_run=dry_run)
        code = session.answer(told, page.say_submitted)
        if told["is_new"] and not (dry_run or session.as_json or is_remote(session.store)):
            note("blocks need a scheduler and a worker; start both: tidewheel up")
        return code
    if action == "show":
        return session.answer(session.ask(lambda one: one.blocks.sbi(what)), page.say_sbi)
    if action == "abort":
        told = session.ask(lambda one: one.blocks.abort_sbi(what, reason))
        session.answer(told, page.say_aborted_sbi)
        is_refused = any(one["refused"] for one in page.parts(told, "blocks"))
        return ExitCode.FAILED if is_refused else ExitCode.DONE
    told = session.ask(lambda one: one.blocks.sbis(limit, status=status, subarray=subarray))
    is_any = status is None and subarray is None
    return session.answer(told, page.say_list if is_any else page.say_filtered)


def _submit(session: Session, what: str, *, dry_run: bool) -> Document:
    """Submits a scheduling block instance from a file or from standard input.

    If there is no store yet, an empty one is asked first and thrown away, so that no store is
    made for what is refused.
    """
    from tidewheel.wiring.stores import empty_store, store_exists

    if what == STDIN:
        content = sys.stdin.buffer.read()
        name = "stdin.json" if content.lstrip().startswith(b"{") else "stdin.yaml"
    else:
        name = what
        try:
            content = Path(name).read_bytes()
        except OSError as error:
            reason = (error.strerror or "no such file").lower()
            raise click.UsageError(f"{name} cannot be read: {reason}") from None

    async def submit(client: AsyncClient) -> Document:
        return await client.blocks.submit_text(name, content, dry_run=dry_run)

    if not store_exists(session.store):
        with empty_store() as where:
            told = ask_client(where, submit)
        if dry_run:
            return told
    return session.ask_or_make(submit)


@session_command(
    "blocks",
    "blocks --status failed",
    "blocks show PB-20261115-sip-0001 --history",
    'blocks abort PB-20261115-sip-0001 --reason "wrong field"',
)
@click.argument("action", type=click.Choice(("list", "show", "abort")), default="list")
@click.argument("block", metavar="[ID]", default="")
@option("--sbi ID", "List only the blocks of this scheduling block instance.")
@option("--status TEXT", "List only blocks with this status.")
@option("--workflow NAME", "List only blocks of this workflow.")
@option("--history", "Show what happened to the block and its stages, oldest first.")
@option(
    "--reason TEXT",
    "With abort: the reason; all users who can see the block can read it.",
    default="",
)
@option("--limit", "The maximum number of blocks to list.", type=LIMIT, default=100)
def blocks_command(  # noqa: PLR0913 - each an option
    session: Session,
    action: str,
    block: str,
    *,
    sbi: str | None,
    status: str | None,
    workflow: str | None,
    history: bool,
    reason: str,
    limit: int,
) -> int:
    """List processing blocks, newest first, or show or abort one.

    `show` says what a block waits for, and for each stage its status, times, how it ended, its
    values and why it waits. `abort` ends the running stages, and no other stages of the block
    start; this cannot be undone. A block is also a run, and its id is the name of the run:
    tidewheel show, why, log, trigger and the other commands about runs accept it.
    """
    if action != "list" and not block:
        raise click.UsageError(f"say which: tidewheel blocks {action} ID")
    if action == "list" and block:
        raise click.UsageError(f"list takes no id; write: tidewheel blocks show {block}")
    check_action(action, BLOCK_OPTIONS)
    if history:
        told = session.ask(lambda one: one.blocks.history(block))
        return session.answer(told, page.say_history)
    if action == "show":
        return session.answer(session.ask(lambda one: one.blocks.show(block)), page.say_block)
    if action == "abort":
        told = session.ask(lambda one: one.blocks.abort(block, reason))
        return session.answer(told, page.say_aborted)
    which = {"sbi": sbi, "status": status, "workflow": workflow}
    told = session.ask(lambda one: one.blocks.list(**which, count=limit))
    is_any = not any(which.values())
    return session.answer(told, page.say_list if is_any else page.say_filtered)


@session_command(
    "objects",
    "objects",
    "objects post visibilities-0815 calibration-7",
    "objects post visibilities-0815 --fact size=2TB",
    "objects remove visibilities-0815",
)
@click.argument("action", type=click.Choice(("list", "post", "remove")), default="list")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@option("--fact facts KEY=VALUE...", "A fact about the objects, such as size=2TB; repeatable.")
@option("--after NAME", "List only objects whose names come after this one.", default="")
@option("--limit", "The maximum number of objects to list.", type=LIMIT, default=1_000)
def objects_command(
    session: Session, action: str, names: Words, *, facts: Words, after: str, limit: int
) -> int:
    """List buffer objects, or report that objects exist (post) or no longer exist (remove).

    Stages that depend on an object wait until it is posted. One post is enough: later runs find
    the object, too.
    """
    if (action == "list") == bool(names):
        raise click.UsageError(
            "post and remove need names, list takes none: tidewheel objects post NAME…"
        )
    check_action(action, OBJECT_OPTIONS)
    known: dict[str, str] = {}
    for text in facts:
        key, sign, known[key] = text.partition("=")
        if not key or not sign:
            raise click.UsageError(f"--fact is {text!r}; expected KEY=VALUE")

    async def remove(client: AsyncClient) -> Document:
        return {"objects": [await client.blocks.remove_object(name) for name in names]}

    if action == "list":
        told = session.ask(lambda client: client.blocks.objects(after=after, count=limit))
        return session.answer(told, page.say_list)
    if action == "remove":
        return session.answer(session.ask(remove), lambda told: page.say_names(told, "removed"))
    told = session.ask_to_write(lambda client: client.blocks.post_objects(*names, facts=known))
    return session.answer(told, lambda told: page.say_names(told, "posted"))
