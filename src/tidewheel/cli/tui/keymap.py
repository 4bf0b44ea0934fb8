"""Maps each key to the next state, and to a wish if it needs the store or the server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidewheel.cli.tui.panes import (
    CHOICE_HELP,
    Choice,
    Pane,
    Question,
    State,
    help_pane,
    takes_ids,
)
from tidewheel.cli.tui.tree import FAMILY, POINT, Tree
from tidewheel.cli.verbs import ROWS
from tidewheel.lazy_dataclasses import NamedTuple

BY_KEY = {verb.key: verb for verb in ROWS if verb.key}
FILES = {"o": "out", "e": "err", "J": "job"}
QUERY_MAX = 200


class Leave(NamedTuple):
    """Asks to leave the interface."""


class LookAgain(NamedTuple):
    """Asks to look at the run again, now."""


class ShowTask(NamedTuple):
    """Asks to show a task; `again` asks to refresh its pane, if that is still open."""

    id: str
    again: bool = False


class ShowLog(NamedTuple):
    """Asks for the log of the job of a task, or without an id for that of the run."""

    id: str | None
    file: str
    submit: int | None
    attempt: int | None = None


class ShowCauses(NamedTuple):
    """Asks for all that keeps the run back, with the commands that help."""


class ListRuns(NamedTuple):
    """Asks for a list of runs, to choose another."""


class WatchRun(NamedTuple):
    run: str


class AskFirst(NamedTuple):
    """Asks to show what a command would do, and to let the user confirm it."""

    question: Question


class Do(NamedTuple):
    question: Question
    mode: str


Wish = Leave | LookAgain | ShowTask | ShowLog | ShowCauses | ListRuns | WatchRun | AskFirst | Do
Pressed = tuple[State, Wish | None]

_MOVES = {"up": -1, "k": -1, "down": 1, "j": 1}


def pressed(state: State, key: str) -> Pressed:
    """Returns the state after one key, and what the key asks for; None if nothing.

    A question, a choice or a text that is being typed gets the key first.
    """
    if key == "redraw":
        return state, LookAgain()
    if state.typed is not None:
        return _typing(state, key), None
    if state.question is not None:
        return _answering(state, key)
    if state.choice is not None:
        return _choosing(state, state.choice, key)
    state = replace(state, said="")
    if state.pane is not None and (not state.is_wide or key in ("esc", "f", "pgup", "pgdn")):
        return _reading(state, key)
    return _looking(state, key)


def _typing(state: State, key: str) -> State:
    assert state.typed is not None
    if key in ("enter", "esc"):
        tree = state.tree.changed(query="") if key == "esc" else state.tree
        return replace(state, typed=None, tree=tree)
    text = state.typed[:-1] if key == "backspace" else state.typed
    if len(key) == 1 and len(text) < QUERY_MAX:
        text += key
    return replace(state, typed=text, tree=state.tree.changed(query=text))


def _answering(state: State, key: str) -> Pressed:
    question = state.question
    assert question is not None
    answers = dict(question.answers)
    if key not in answers and (step := _step(state, key)):
        pane = state.pane and state.pane.moved(step, state.pane_size)
        return replace(state, pane=pane), None
    asked = replace(state, question=None, pane=None)
    if key not in answers:
        return replace(asked, said=f"{question.verb}: nothing was done"), None
    return replace(asked, is_busy=True), Do(question, answers[key])


def _choosing(state: State, choice: Choice, key: str) -> Pressed:
    if choice.help is not None and key != "q":
        return replace(state, choice=_reading_help(state, choice, choice.help, key)), None
    if key == "?":
        return replace(state, choice=choice._replace(help=help_pane(CHOICE_HELP))), None
    if step := _step(state, key):
        at = min(max(choice.at + step, 0), max(0, len(choice.names) - 1))
        return replace(state, choice=choice._replace(at=at)), None
    if key == "enter" and choice.names:
        return replace(state, choice=None), WatchRun(choice.names[choice.at])
    if key == "q" or (key == "esc" and not state.run):
        return state, Leave()
    return (replace(state, choice=None) if key in ("esc", "b") else state), None


def _reading_help(state: State, choice: Choice, shown: Pane, key: str) -> Choice:
    """Scrolls the help over the list; any key that is not a move closes it."""
    step = _step(state, key)
    size = state.size[0], state.height - 1
    return choice._replace(help=shown.moved(step, size) if step else None)


def _reading(state: State, key: str) -> Pressed:
    """Handles a key for a pane that covers the tree, or one for a pane that is beside it."""
    pane = state.pane
    assert pane is not None
    if step := _step(state, key):
        return replace(state, pane=pane.moved(step, state.pane_size)), None
    if key in ("esc", "left", "h", "enter"):
        return replace(state, pane=None), None
    if key == "f":
        return replace(state, pane=replace(pane, follows=not pane.follows)), None
    return _looking(state, key)


def _looking(state: State, key: str) -> Pressed:
    tree = state.tree
    if step := _step(state, key):
        return replace(state, tree=tree.moved(step)), None
    if key in _JUMPS:
        return _JUMPS[key](state)
    if key in _TREE_CHANGES:
        return replace(state, tree=_TREE_CHANGES[key](tree)), None
    if key in _CHANGES:
        return _CHANGES[key](state), None
    if key in _WISHES:
        return state, _WISHES[key]
    question = _question(state, key)
    return _on_row(state, key) if question is None else _asking(state, question)


def _at_failure(state: State, step: int) -> Pressed:
    """Goes to another task that failed; a pane about a task is then about that one."""
    tree = state.tree.at_failure(step)
    if tree is None:
        where = " among the shown tasks" if state.tree.is_narrowed else ""
        older = "; press a to see all points" if state.tree.page["left_out"] else ""
        return replace(state, said=f"no task has failed{where}{older}"), None
    is_about_task = state.task is not None
    pane = state.pane if state.is_wide or is_about_task else None
    state, row = replace(state, tree=tree, pane=pane), tree.row
    if is_about_task and row is not None and row.task is not None:
        return state, ShowTask(row.task)
    return state, None


def _asking(state: State, question: Question) -> Pressed:
    if question.filter and not question.ids:
        return replace(state, said=f"{question.verb}: the filter hides all marked tasks"), None
    return replace(state, is_busy=True), AskFirst(question)


def _question(state: State, key: str) -> Question | None:
    """Returns the command that a key stands for, to be confirmed; None if it stands for
    none."""
    verb, tree = BY_KEY.get(key), state.tree
    if verb is not None and not takes_ids(verb):
        return Question(verb.name, (), verb.confirm)
    if verb is None or not tree.rows:
        return None
    which = " ".join(filter(None, ("pool" if tree.pool_only else "", tree.query)))
    of = tree.chosen_of if which else 0
    return Question(verb.name, tree.chosen, verb.confirm, which, of, tree.hidden)


def _on_row(state: State, key: str) -> Pressed:
    row = state.tree.row
    if row is None:
        return state, None
    if key in FILES and row.task is not None:
        return state, ShowLog(row.task, FILES[key], row.submit, row.attempt)
    if key == "enter" and row.kind in (POINT, FAMILY):
        return replace(state, tree=state.tree.turned_at(row)), None
    if key == "enter" and row.task is not None:
        return replace(state, is_busy=True), ShowTask(row.task)
    return state, None


def _back(state: State) -> State:
    """Closes the pane if one is open; else removes the filter, or the marks if there is
    none."""
    if state.pane is not None:
        return replace(state, pane=None)
    tree = state.tree
    undone = tree.changed(query="") if tree.query else replace(tree, marked=frozenset())
    return replace(state, tree=undone)


_JUMPS: dict[str, Callable[[State], Pressed]] = {
    "a": lambda state: (replace(state, everything=not state.everything), LookAgain()),
    "n": lambda state: _at_failure(state, 1),
    "N": lambda state: _at_failure(state, -1),
}
_TREE_CHANGES: dict[str, Callable[[Tree], Tree]] = {
    "right": Tree.opened,
    "l": Tree.opened,
    "left": Tree.closed,
    "h": Tree.closed,
    " ": Tree.marks,
    "tab": lambda tree: tree.changed(pool_only=not tree.pool_only),
}
_CHANGES: dict[str, Callable[[State], State]] = {
    "/": lambda state: replace(state, typed=state.tree.query, pane=None),
    "?": lambda state: replace(state, pane=help_pane()),
    "esc": _back,
}
_WISHES: dict[str, Wish] = {
    "q": Leave(),
    "r": LookAgain(),
    "b": ListRuns(),
    "w": ShowCauses(),
    "L": ShowLog(None, "out", None),
}


def _step(state: State, key: str) -> int:
    """Returns how many lines a key goes down, less than 0 for up; 0 if it does not move."""
    far = 10**9
    pages = {"pgup": -state.height, "pgdn": state.height, "home": -far, "end": far}
    return (_MOVES | pages | {"g": -far, "G": far}).get(key, 0)
