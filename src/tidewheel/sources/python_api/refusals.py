"""The two ways in which a definition in Python is refused, and the line that is to blame.

What Python itself would refuse, such as an operator on the wrong thing, is refused at once.
What a definition says wrongly is collected, and refused all together.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from tidewheel.core.graph.findings import Finding, Position, Severity
from tidewheel.errors import Refused

_PACKAGE = f"{Path(__file__).parent}{os.sep}"
SHOWN_MAX = 20  # findings in the message of an exception


class BadStatement(Refused):
    """A statement that cannot be meant as it is written; nothing was recorded."""

    code = "bad_statement"

    def __init__(self, message: str, hint: str) -> None:
        self.message, self.hint, self.position = message, hint, written_at()
        super().__init__(f"{self.position}: {message}. {hint}")


class InvalidDefinition(Refused):
    """A definition has mistakes; it carries all of them, each with file and line."""

    code = "invalid_definition"

    def __init__(self, workflow: str, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        errors = [str(one) for one in self.findings if one.severity is Severity.ERROR]
        more = [f"… and {len(errors) - SHOWN_MAX} more"] if len(errors) > SHOWN_MAX else []
        listed = "\n".join([*errors[:SHOWN_MAX], *more])
        super().__init__(f"workflow {workflow!r} has {len(errors)} error(s):\n{listed}")


def written_at() -> Position:
    """The line outside of this package that is being executed."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Position(frame.f_code.co_filename, frame.f_lineno)
