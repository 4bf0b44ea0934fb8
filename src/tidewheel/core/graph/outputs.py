"""Names the outputs of a task: the standard ones, their short forms, and what one implies."""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.graph.findings import nearest
from tidewheel.core.queue import dependency

SUBMITTED = "submitted"
SUBMIT_FAILED = "submit-failed"
STARTED = "started"
SUCCEEDED = "succeeded"
FAILED = "failed"
EXPIRED = "expired"

STANDARD = (EXPIRED, SUBMITTED, SUBMIT_FAILED, STARTED, SUCCEEDED, FAILED)

# A task ends with one of these.
ENDS = (SUCCEEDED, FAILED, SUBMIT_FAILED, EXPIRED)

# Not an output but a way to ask for either end, also of a task in a queue.
FINISHED = dependency.FINISHED

SHORT_FORMS = {
    "submit": SUBMITTED,
    "submit-fail": SUBMIT_FAILED,
    "start": STARTED,
    "succeed": SUCCEEDED,
    "fail": FAILED,
    "expire": EXPIRED,
    "finish": FINISHED,
}

OPPOSITE = {
    SUCCEEDED: FAILED,
    FAILED: SUCCEEDED,
    SUBMITTED: SUBMIT_FAILED,
    SUBMIT_FAILED: SUBMITTED,
}

# In the order in which they come true when the later one is reported first.
IMPLIED = {
    STARTED: (SUBMITTED,),
    SUCCEEDED: (SUBMITTED, STARTED),
    FAILED: (SUBMITTED, STARTED),
}


def standard_name(qualifier: str) -> str:
    """Returns the long form of an output's name (`failed` for `fail`), or the name itself."""
    return SHORT_FORMS.get(qualifier, qualifier)


def made_by(name: str) -> tuple[str, ...]:
    """Returns the outputs that a name stands for: either end for `finished`, else itself."""
    return (SUCCEEDED, FAILED) if name == FINISHED else (name,)


def unknown_output_text(task: str, output: str, declared: Iterable[str]) -> str:
    """Returns the message about an output that a task lacks.

    It names the nearest output of the task, and all of them.
    """
    known = list(declared)
    if not known:
        how = f"[runtime] [[{task}]] [[[outputs]]] {output} = a message of its job"
        return f"{task} has no output {output!r}; declare it: {how}"
    parts = (name for name in known if output in name or name in output)
    like = nearest(output, known) or next(parts, None)
    hint = f"did you mean {like}? Its" if like else "its"
    return f"{task} has no output {output!r}; {hint} outputs: {', '.join(known)}"
