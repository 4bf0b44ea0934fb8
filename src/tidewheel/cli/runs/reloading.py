"""Reading a definition again for a run that goes on with it, or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from tidewheel.cli.definitions import Definition
from tidewheel.cli.output import note
from tidewheel.cli.pages.findings import refuse, show_findings
from tidewheel.cli.runs.remote import folder_here
from tidewheel.cli.runs.target import find_target
from tidewheel.client.runs import Runs
from tidewheel.core.graph.findings import Findings, Severity
from tidewheel.core.operator.commands import Reload
from tidewheel.core.operator.views import RunView
from tidewheel.errors import NotRunning, Refused
from tidewheel.services.definitions.kept import Captured


async def save_new(
    runs: Runs, words: Sequence[str], settings: tuple[str, ...], *, as_json: bool
) -> tuple[str, Reload] | int:
    """The run and what to ask of it, or the exit status if the definition has errors."""
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
