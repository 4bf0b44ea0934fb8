"""The functions that come with tidewheel as xtriggers, and where a person's own ones are."""

from __future__ import annotations

import difflib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.flow_cylc.value_text import BadValue, duration_seconds
from tidewheel.formats.flow_cylc.xtrigger_call import Argument, XtriggerCall

WALL_CLOCK = "wall_clock"
SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True)
class Signature:
    """Names of the arguments in order, how many of them are needed; open: anything goes."""

    names: tuple[str, ...] = ()
    needed: int = 0
    is_open: bool = False


SIGNATURES = {
    WALL_CLOCK: Signature(("offset",)),
    "echo": Signature(is_open=True),
    "xrandom": Signature(("percent", "secs", "_"), 1),
    "workflow_state": Signature(
        (
            "workflow_task_id",
            "offset",
            "flow_num",
            "is_trigger",
            "is_message",
            "alt_cylc_run_dir",
        ),
        1,
    ),
}
# Before Cylc 8.3: workflow, task and point as arguments of their own.
OLD_WORKFLOW_STATE = Signature(
    ("workflow", "task", "point", "offset", "status", "message", "cylc_run_dir"), 3
)


def check_call(
    label: str, call: XtriggerCall, folder: Path, findings: Findings, place: Position
) -> None:
    """The arguments of a function that is known; whether an unknown one can be found."""
    sequential = call.keyword(SEQUENTIAL)
    if sequential is not None and not isinstance(sequential, bool):
        findings.error(
            "bad-xtrigger",
            f"xtrigger {label!r}: sequential is {sequential!r}",
            "write sequential=True or sequential=False",
            place,
        )
    signature = SIGNATURES.get(call.function)
    if signature is None:
        if call.function != "suite_state":
            _check_own_function(label, call, folder, findings, place)
        return
    problem = signature_problem(call, signature)
    is_old = call.function == "workflow_state" and not signature_problem(
        call, OLD_WORKFLOW_STATE
    )
    if problem and is_old:
        findings.warning(
            "obsolete",
            f"xtrigger {label!r} calls workflow_state as before Cylc 8.3",
            "write workflow_state(workflow//point/task:output)",
            place,
        )
    elif problem:
        findings.error(
            "bad-xtrigger",
            f"xtrigger {label!r}: {problem}",
            f"{call.function} takes ({', '.join(signature.names)})",
            place,
        )
    elif call.function == WALL_CLOCK:
        _check_offset(label, call, findings, place)


def signature_problem(call: XtriggerCall, signature: Signature) -> str:
    """Why the call does not fit; empty if it does."""
    if signature.is_open:
        return ""
    if len(call.arguments) > len(signature.names):
        return f"{call.function} is given {len(call.arguments)} arguments"
    given = set(signature.names[: len(call.arguments)])
    for name, _ in call.keywords:
        if name == SEQUENTIAL:
            continue
        if name not in signature.names:
            near = difflib.get_close_matches(name, signature.names, 1)
            nearest = f"; did you mean {near[0]!r}?" if near else ""
            return f"{call.function} has no argument {name!r}{nearest}"
        if name in given:
            return f"argument {name!r} is given twice"
        given.add(name)
    missing = [name for name in signature.names[: signature.needed] if name not in given]
    return f"argument {missing[0]!r} is missing" if missing else ""


def is_sequential(call: XtriggerCall, by_default: bool) -> bool:
    """Checked for one point after the other; a clock always is."""
    given = call.keyword(SEQUENTIAL)
    if isinstance(given, bool):
        return given
    return True if call.function == WALL_CLOCK else by_default


def _check_own_function(
    label: str, call: XtriggerCall, folder: Path, findings: Findings, place: Position
) -> None:
    with suppress(OSError):  # a name that no file can have
        if (folder / "lib" / "python" / f"{call.function}.py").is_file():
            return
    near = difflib.get_close_matches(call.function, SIGNATURES, 1)
    findings.warning(
        "unknown-xtrigger-function",
        f"xtrigger {label!r} calls {call.function}, which is neither built in nor in "
        f"lib/python/{call.function}.py",
        f"did you mean {near[0]!r}?"
        if near
        else "it must be installed where the scheduler runs",
        place,
    )


def _check_offset(label: str, call: XtriggerCall, findings: Findings, place: Position) -> None:
    offset: Argument = call.arguments[0] if call.arguments else call.keyword("offset")
    if offset is None:
        return
    try:
        duration_seconds(str(offset))
    except BadValue as error:
        findings.error("bad-xtrigger", f"xtrigger {label!r}: offset {error}", error.hint, place)
