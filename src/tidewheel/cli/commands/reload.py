"""``tidewheel reload``: a run goes on with the definition as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidewheel.cli.definitions import Definition
    from tidewheel.client.runs import Runs
    from tidewheel.core.operator.verbs import Reload
    from tidewheel.core.operator.views import RunView
    from tidewheel.ports.runs import Answer, Document
    from tidewheel.services.definitions.snapshot import Captured

EPILOG = """\b
Examples:
  tidewheel reload forecast
  tidewheel reload forecast ~/flows/forecast -s MEMBERS=8
"""


@session_command("reload", epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[RUN] [DIR]")
@click.option(
    "-s",
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A template variable; all others stay as they are.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Only show what would change.")
def command(
    session: Session, words: tuple[str, ...], settings: tuple[str, ...], *, dry_run: bool
) -> int:
    """Give a run its definition anew: from DIR, or from the folder that it came from.

    The new definition replaces the old one whole. If there is an error in it, nothing changes.
    """
    from tidewheel.cli.runs.access import Given, this_job, with_runs
    from tidewheel.cli.verb_command import say_given, say_tried
    from tidewheel.core.operator.verbs import Reload

    if this_job(session) is not None:
        return _reload_from_job(session, words, dry_run=dry_run)

    async def ask(runs: Runs) -> Answer | Document | int:
        saved = await _save_new(runs, words, settings, as_json=session.as_json)
        if isinstance(saved, int):
            return saved
        run, reload = saved
        return await (runs.dry_run(run, reload) if dry_run else runs.give(run, reload))

    made = with_runs(session, ask)
    if isinstance(made, int):
        return made
    if isinstance(made, dict):
        say_tried(session, made)
        return 0
    say_given(session, Given(made.run, Reload(), made.number, made.document))
    return 0


def _reload_from_job(session: Session, words: tuple[str, ...], *, dry_run: bool) -> int:
    """The scheduler reads the folder: a job cannot put a definition into the store."""
    from tidewheel.cli.runs.access import give
    from tidewheel.cli.verb_command import say_given, try_verb
    from tidewheel.core.operator.verbs import Reload

    if dry_run:
        return try_verb(session, words, lambda _: Reload())
    say_given(session, give(session, words, lambda _: Reload()))
    return 0


async def _save_new(
    runs: Runs, words: Sequence[str], settings: tuple[str, ...], *, as_json: bool
) -> tuple[str, Reload] | int:
    """Stores the definition as it is now; returns the run and what to ask of it, or the exit
    status if the definition has errors."""
    import json
    from pathlib import Path

    from tidewheel.cli.definitions import Definition
    from tidewheel.cli.runs.access import find_target
    from tidewheel.cli.runs.remote import folder_here
    from tidewheel.core.operator.verbs import Reload
    from tidewheel.errors import NotRunning, Refused

    target = await find_target(runs, words)
    if len(target.rest) > 1:
        raise click.UsageError(f"one folder, not {len(target.rest)}")
    view = await runs.find(target.run)
    facts = await runs.look("facts", run=view.name)
    if not facts["run"]["driven"]:  # type: ignore[index]  # a document
        raise NotRunning(view.name, view.status)
    path = Path(target.rest[0] if target.rest else folder_here(view.folder))
    if not str(path) or not path.exists():
        raise Refused(
            f"there is no {str(path)!r} to read {view.name} from; "
            f"say where it is: tidewheel reload {view.name} DIR"
        )
    known = json.loads((await runs.definition(view.name)).variables)
    definition = Definition(path, as_json, settings=(*known, *settings))
    captured = _captured(definition, view)
    if isinstance(captured, int):
        return captured
    digest = await runs.save_definition(view.name, captured.definition)
    return view.name, Reload(definition=digest)


def _captured(definition: Definition, view: RunView) -> Captured | int:
    from tidewheel.cli.output import note
    from tidewheel.cli.pages.findings import refuse, show_findings
    from tidewheel.core.graph.findings import Findings, Severity

    findings = Findings()
    # A folder may be called differently; the run keeps the name of its workflow.
    loaded, captured, _ = definition.load_for_run(view.options, findings, view.workflow)
    if captured is None:
        status = refuse(findings, loaded.source, as_json=definition.as_json)
        if not definition.as_json:
            note(f"{view.name} goes on with the definition that it has")
        return status
    if not definition.as_json:
        worse = [one for one in findings.sorted() if one.severity is not Severity.NOTE]
        show_findings(worse, loaded.source, note)
    return captured
