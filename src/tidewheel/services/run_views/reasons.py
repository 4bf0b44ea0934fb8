"""Why a task does not run, with the commands that would change it, ready to be copied."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tidewheel.core.sched.explain import Reason, why
from tidewheel.core.sched.states import Key
from tidewheel.services.run_views.loading import Looked
from tidewheel.services.run_views.run_facts import Document
from tidewheel.services.run_views.task_words import words_of


def why_document(looked: Looked, key: Key) -> Document:
    """Every reason, those of the run as a whole first."""
    words = words_of(looked.pool, key)
    reasons = [*_of_the_run(looked), *why(looked.pool, key)]
    return {
        "run": looked.view.name,
        "id": looked.id_of(key),
        "state": words.state,
        "remarks": list(words.remarks),
        "flows": sorted(words.flows),
        "reasons": [reason_document(looked.view.name, one) for one in reasons],
    }


def reason_document(run: str, reason: Reason) -> Document:
    return {
        "text": reason.text,
        "passes": reason.passes,
        "commands": command_lines(run, reason.command),
        "actions": actions(reason.command),
    }


# How the core's words for a command are fields of one (core.runs.commands).
_OPTIONS = {"--pre": "prerequisites", "--flow": "flow", "--reflow": "flow"}


def actions(command: str) -> list[Document]:
    """The same commands as values of REST: a verb and its fields; `run` carries a run on."""
    return [_action(one.split()) for one in command.split(", or ") if one]


def _action(words: Sequence[str]) -> Document:
    found: Document = {"verb": words[0]}
    rest = iter(words[1:])
    for word in rest:
        match _OPTIONS.get(word):
            case None:
                found["ids"] = [word]
            case "prerequisites":
                found["prerequisites"] = [next(rest)]
            case _:
                found["flow"] = "new" if word == "--reflow" else next(rest)
    return found


def command_lines(run: str, command: str) -> list[str]:
    """The core says `trigger 1/a, or set 1/a`; people need the whole line."""
    lines = []
    for one in command.split(", or "):
        verb, _, rest = one.partition(" ")
        if verb == "run":
            lines.append(f"tidewheel run {shlex.quote(run)}")
        elif verb:
            lines.append(f"tidewheel {verb} {shlex.quote(run)} {rest}".rstrip())
    return lines


def _of_the_run(looked: Looked) -> list[Reason]:
    view, run = looked.view, looked.pool.run
    if not looked.started:
        return [Reason(f"{view.name} has not been started", passes=False, command="run")]
    over = {
        "error": Reason(f"{view.name} is in quarantine: {view.reason}", False, "run"),
        "completed": Reason(f"{view.name} is completed; a later --fcp continues it", False, ""),
        "stopped": Reason(f"{view.name} is stopped", False, "run"),
    }
    if view.status in over:
        return [over[view.status]]
    if not view.is_driven(looked.now):
        gone = view.ended_at is None or view.ended_at < view.updated_at
        seen = "the last one is gone" if gone else f"it was let go, {view.status}"
        text = f"no scheduler drives {view.name}: {seen}"
        return [Reason(text, passes=False, command="run")]
    if run.paused:
        return [Reason(f"{view.name} is paused", passes=False, command="resume")]
    return []
